"""Writes the statements of the head revision from the tables.

    python -m tests.support.schema_scripts

A released script is never written again: a change of the tables is a new revision.
"""

from pathlib import Path
from typing import Literal

from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable
from tests.support import schema
from tests.support.schema_guards import guard_ddl
from tests.support.schema_views import view_ddl

from tooltrail.migrations import HEAD_REVISION

FOLDER = Path(__file__).parents[2] / "migrations" / "tooltrail" / "migrations" / "versions"


def script_of(dialect: Literal["sqlite", "postgresql"]) -> str:
    """The script of the tables as they are now."""
    known = registry.load(dialect)()
    statements = list[str]()
    for table in schema.metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=known)))
        indexes = sorted(table.indexes, key=lambda one: str(one.name))
        statements += [str(CreateIndex(one).compile(dialect=known)) for one in indexes]
    statements += guard_ddl(dialect)
    statements += view_ddl(dialect)
    lines = ("\n".join(line.rstrip() for line in one.strip().splitlines()) for one in statements)
    return "".join(f"{one};\n\n" for one in lines).rstrip("\n") + "\n"


def path_of(dialect: str) -> Path:
    """The script of the head revision."""
    return FOLDER / f"{HEAD_REVISION}.{dialect}.sql"


if __name__ == "__main__":
    path_of("sqlite").write_text(script_of("sqlite"))
    path_of("postgresql").write_text(script_of("postgresql"))
