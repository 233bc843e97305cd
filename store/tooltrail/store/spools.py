"""Where output waits that is being captured, or that could not be stored."""

import os
from pathlib import Path

from tooltrail.records.errors import InvalidRecordError

SPOOL_FOLDER = "spool"
"""The name of the folder, beside a database file or in the user's state folder."""


def user_spool() -> Path:
    """The spool in the user's state folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise InvalidRecordError(
            "there is no home folder for the spool; name one (--spool)"
        ) from error
    return Path(state) / "tooltrail" / SPOOL_FOLDER
