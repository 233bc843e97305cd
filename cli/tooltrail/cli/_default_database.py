"""The default store, without pathlib, which takes 5 ms."""

import os

from tooltrail.records.errors import InvalidRecordError


def default_database() -> str:
    """The database file in the user's data folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    folder = os.environ.get("XDG_DATA_HOME", "")
    if not folder.startswith("/"):  # the specification requires that a relative value is ignored
        home = os.path.expanduser("~")  # noqa: PTH111  see above
        if not home.startswith("/"):
            raise InvalidRecordError("there is no home folder; name the store with --db")
        folder = f"{home}/.local/share"
    return f"{folder}/tooltrail/tooltrail.db"
