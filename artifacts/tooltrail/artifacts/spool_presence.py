"""Whether a spool, or something in it, is there: known, or said to be unknown.

Known without anything heavy, since whoever only reads asks it, too.
"""

import contextlib
import stat
from pathlib import Path

from tooltrail.records.errors import UnavailableError


def is_spool(spool: Path) -> bool:
    """Whether a spool is there; what is there in place of a folder holds nothing.

    Raises:
        UnavailableError: nobody can tell, since a folder above it may not be searched.
    """
    return stat.S_ISDIR(mode_of(spool, f"spool {spool}"))


def is_reachable_spool(spool: Path) -> bool:
    """Whether a spool is there, as far as anybody who asks can tell."""
    with contextlib.suppress(UnavailableError):
        return is_spool(spool)
    return False


def mode_of(path: Path, where: str) -> int:
    """What kind of thing there is; 0, which is none, where there is nothing.

    Raises:
        UnavailableError: nobody can tell, and where.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise UnavailableError(f"{where} cannot be read: {error.strerror}") from error
