"""The SQLite library in use: the newer one of `pysqlite3` if installed, else that of Python.

Python brings the library of the system that it was built on. Versions 3.7.0 to 3.51.2 have a fault
that can corrupt a database in WAL mode if several processes write to it; the extra `sqlite` brings
a newer version. The complete program uses one library. If a second library in this process closes
a database file, POSIX drops all locks of the process on that file.
"""

import sqlite3 as standard
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["sqlite3"]


def newest() -> ModuleType:
    """The module of the newer library. Both modules have the same code and interface."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return standard
    return max(standard, other, key=lambda module: module.sqlite_version_info)


if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = newest()
