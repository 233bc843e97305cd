"""Where output waits that is being captured, or that could not be stored."""

import os
from pathlib import Path

from tooltrail.artifacts import is_reachable_spool
from tooltrail.records.errors import InvalidRecordError

SPOOL_FOLDER = "spool"
"""The name of the folder, beside a database file or in the user's state folder."""

KNOWN_FOLDER = "known-stores"
"""The name of that in a spool which holds no records, but what is known of its stores."""


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


def user_spools() -> list[Path]:
    """The user's own spool, if it can be looked into; none where the user has no home folder."""
    try:
        spool = user_spool()
    except InvalidRecordError:
        return []
    # What is there in place of a folder holds no records, nor does one of somebody else.
    return [spool] if is_reachable_spool(spool) else []
