"""Where a spool is: the folder of a journal and of output that is being captured."""

import hashlib
import os
from pathlib import Path
from typing import Final

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.targets import SqliteTarget, Target

SPOOL_FOLDER: Final = "spool"
"""Name of the folder, beside a database file or in the user's state folder."""

_DIGITS: Final = 12


def default_spool(target: Target) -> Path:
    """The spool of a store: beside a database file, else in the user's state folder.

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    if isinstance(target, SqliteTarget):
        return target.path.parent / SPOOL_FOLDER
    # One for each database: a spool belongs to one store.
    name = hashlib.sha256(str(target).encode()).hexdigest()[:_DIGITS]
    return state_folder() / f"{SPOOL_FOLDER}-{name}"


def state_folder() -> Path:
    """Folder of the program in the user's state folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise InvalidRecordError(
            "there is no home folder for the spool; name one (--spool)"
        ) from error
    return Path(state) / "tooltrail"
