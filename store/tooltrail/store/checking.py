"""Is the database itself sound: its pages, its references, its tables, its triggers?"""

from sqlalchemy import Connection, inspect, text

from tooltrail.store._database import Database
from tooltrail.store.tables import metadata

_TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'",
}


def check_database(database: Database) -> list[str]:
    """Every problem found, one sentence each; none means that the database is sound.

    Reads the whole of an SQLite file.

    Raises:
        UnavailableError: the database cannot be read now.
        DamageError: it is too damaged to be asked.
    """
    with database.read() as connection:
        return [
            *_damaged_pages(connection),
            *_broken_references(connection),
            *_missing_columns(connection),
            *_missing_triggers(connection),
        ]


def _damaged_pages(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    answers = connection.scalars(text("PRAGMA integrity_check")).all()
    return [f"integrity check: {answer}" for answer in answers if answer != "ok"]


def _broken_references(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []  # PostgreSQL has no way to turn its checks off for one connection
    rows = connection.execute(text("PRAGMA foreign_key_check")).all()
    return [f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is missing" for row in rows]


def _missing_columns(connection: Connection) -> list[str]:
    found = inspect(connection)
    problems: list[str] = []
    for table in metadata.sorted_tables:
        if not found.has_table(table.name):
            problems.append(f"table {table.name} is missing")
            continue
        names = {column["name"] for column in found.get_columns(table.name)}
        problems.extend(
            f"column {table.name}.{column.name} is missing"
            for column in table.columns
            if column.name not in names
        )
    return problems


def _missing_triggers(connection: Connection) -> list[str]:
    found = set(connection.scalars(text(_TRIGGERS[connection.dialect.name])))
    wanted = {f"{name}_no_{event}" for name in metadata.tables for event in ("update", "delete")}
    return [f"append-only trigger {name} is missing" for name in sorted(wanted - found)]
