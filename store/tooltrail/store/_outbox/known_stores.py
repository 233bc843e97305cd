"""Which store a database had when it was last opened here, for whoever opens it while it is away.

    <spool>/known-stores/<hash of the place>    one line, as those of a journal

The outbox of a store is named by its id, which the database alone knows. A place is the server or
the file and has no credentials; see `Target.place`.
"""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.artifacts._local import sync_folder
from tooltrail.journal.clock import new_id
from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.digests import digest_of
from tooltrail.store._engines.targets import Target
from tooltrail.store._outbox.flocks import opened
from tooltrail.store._outbox.journal_lines import add_line, iter_lines
from tooltrail.store.info import StoreInfo
from tooltrail.store.spools import KNOWN_FOLDER


def remember(spool: Path, target: Target, info: StoreInfo) -> None:
    """Keep what a store knows about itself, durably; nothing is written that is there already.

    Where it cannot be kept, neither could what is recorded, and that is told then.
    """
    if recall(spool, target) == info:
        return
    path = _path(spool, target)
    part = path.with_suffix(f".{new_id()}.part")
    known = {
        "id": str(info.id),
        "format": info.format,
        "artifact_root": info.artifact_root,
        "created_at": info.created_at.isoformat(),
    }
    with suppress(OSError):
        try:
            with opened(part) as descriptor:
                add_line(descriptor, encode(known), 0)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def recall(spool: Path, target: Target) -> StoreInfo | None:
    """What was kept; None when there is nothing, or it was altered."""
    return _read(_path(spool, target))


def recall_ids(spool: Path) -> set[UUID]:
    """The stores that are known at any place."""
    with suppress(OSError):
        paths = [path for path in (spool / KNOWN_FOLDER).iterdir() if not path.suffix]
        return {known.id for known in map(_read, paths) if known is not None}
    return set()


def _read(path: Path) -> StoreInfo | None:
    with suppress(OSError, ValueError, TypeError, LookupError):
        for line in iter_lines(path):
            known: Any = decode(line.data or b"")
            return StoreInfo(
                UUID(known["id"]),
                known["format"],
                known["artifact_root"],
                datetime.fromisoformat(known["created_at"]),
            )
    return None


def _path(spool: Path, target: Target) -> Path:
    return spool / KNOWN_FOLDER / digest_of(os.fsencode(target.place)).removeprefix("sha256:")[:32]
