"""The shape of the newest schema, as each engine tells it of a database that the revisions made.

The program compares stores with these documents; a test compares them with what the revisions make,
or with `TOOLTRAIL_REWRITE_GOLDEN=1` writes them anew.
"""

import json
from pathlib import Path

from tests.support.schema import SCRIPTS

from tooltrail.migrations import VERSION_TABLE
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._schema.shape import Shape, read_shape
from tooltrail.store.tables import metadata


def shape_of(database: str | Path) -> Shape:
    """What the engine tells of a database."""
    opened = open_database(parse_target(database))
    try:
        with opened.read() as connection:
            return read_shape(connection, frozenset({*metadata.tables, VERSION_TABLE}))
    finally:
        opened.close()


def document(shape: Shape) -> str:
    """As it is kept."""
    return json.dumps(shape, indent=1, sort_keys=True) + "\n"


def document_path(dialect: str) -> Path:
    """Where it is kept."""
    return Path(SCRIPTS, "schema", f"{dialect}.json")
