"""Stores of earlier revisions, made with real records by the programs of their time, and kept."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import zstandard

from tooltrail.store._engines.sqlite import sqlite3

KEPT = Path(__file__).parents[1] / "migrations" / "fixtures"
"""One folder for each revision: `trail.db.zst`, its artifacts, and in `rows.json` what every table
held when it was made, bytes as `{"hex": …}`. Made once; nobody makes them again."""

Row = dict[str, Any]


def old_store(revision: str, folder: Path) -> Path:
    """A copy of a kept store, with its artifacts beside it; its database file."""
    kept = KEPT / revision
    shutil.copytree(kept / "artifacts", folder / "artifacts")
    database = folder / "trail.db"
    database.write_bytes(zstandard.decompress((kept / "trail.db.zst").read_bytes()))
    return database


def old_rows(revision: str) -> dict[str, list[Row]]:
    """What every table of a kept store held."""
    tables: dict[str, list[Row]] = json.loads((KEPT / revision / "rows.json").read_text())
    return {
        table: [{name: _plain(value) for name, value in row.items()} for row in rows]
        for table, rows in tables.items()
    }


def rows_of(database: Path, columns: dict[str, list[str]]) -> dict[str, list[Row]]:
    """What tables hold, by SQLite alone."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [
                {name: row[name] for name in names}
                for row in connection.execute(f"SELECT * FROM {table}")
            ]
            for table, names in columns.items()
        }


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return bytes.fromhex(cast("dict[str, str]", value)["hex"])
    return value
