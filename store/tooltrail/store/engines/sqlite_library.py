"""The SQLite that is used: the newer one of `pysqlite3` where it is installed, else Python's own.

Python brings the library of the system that it was built on. Those from 3.7.0 to 3.51.2 have a
fault that can corrupt a database in WAL mode which several processes write; the extra `sqlite`
brings a newer one. The whole program uses one library. If a second library in this process closes
a database file, POSIX drops all locks of the process on that file.
"""

import sqlite3 as standard
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["sqlite3"]


def newest() -> ModuleType:
    """The module of the newer library; both are the same code around it, with one interface."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return standard
    return max(standard, other, key=lambda module: module.sqlite_version_info)


if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = newest()
