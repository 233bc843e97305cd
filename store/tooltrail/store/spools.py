"""Where output waits that is being captured, or that could not be stored."""

import os
from pathlib import Path

from tooltrail.artifacts import is_reachable_spool
from tooltrail.records.errors import InvalidRecordError

SPOOL_FOLDER = "spool"
"""The name of the folder, beside a database file or in the user's state folder."""

KNOWN_FOLDER = "known-stores"
"""The name of that in a spool which holds no records, but what is known of its stores."""

KEPT_FOLDER = "kept"
"""The name of that in a spool to which repairs move what is not in a store as it is."""

OUTBOX_PREFIX = "outbox-"
"""How the names of outboxes in a spool begin; behind it stands the id of a store."""

ANSWER_PREFIX = "answer-"
"""How the names of files begin that hold what has come of an answer; see `answer_journal`."""

WAITING_FOLDER = "waiting"
"""The name of that in an outbox which is there only while something waits."""


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


def may_wait_in(spool: Path) -> bool:
    """Whether anything may wait in a spool, for whichever store; also when nobody can tell.

    An outbox stays when all in it was delivered, and what repairs have kept waits for nothing. What
    else is a folder holds output, or is for those who know it; files are locks of those who
    record, and what has come of answers.
    """
    try:
        with os.scandir(spool) as entries:
            return any(map(_may_wait, entries))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _may_wait(entry: os.DirEntry[str]) -> bool:
    """Whether that may be, or be in, what waits.

    Raises:
        OSError: nobody can tell.
    """
    if entry.name.startswith(ANSWER_PREFIX):
        return True
    if not entry.is_dir() or entry.name in (KNOWN_FOLDER, KEPT_FOLDER):
        return False
    if not entry.name.startswith(OUTBOX_PREFIX):
        return True
    try:
        os.stat(f"{entry.path}/{WAITING_FOLDER}")  # noqa: PTH116  as cheap as it can be
    except FileNotFoundError:
        return False
    return True
