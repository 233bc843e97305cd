"""The SQLite library in use: that of `pysqlite3` if installed, else that of Python.

Python brings the library of the system that it was built on. Versions 3.7.0 to 3.51.2 have a fault
that can corrupt a database in WAL mode if several processes write to it; the extra `sqlite` brings
a newer version. If that one has the fault, too, the newer of the two is used. The complete program
uses one library. If a second library in this process closes a database file, POSIX drops all locks
of the process on that file.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["SAFE_VERSION", "sqlite3"]

SAFE_VERSION = (3, 51, 3)
"""First SQLite release without the fault."""


def library_in_use() -> ModuleType:
    """The module to use. Both modules have the same code and interface."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return import_module("sqlite3")
    if other.sqlite_version_info >= SAFE_VERSION:
        return other  # importing the second library takes time
    return max(import_module("sqlite3"), other, key=lambda module: module.sqlite_version_info)


if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = library_in_use()
