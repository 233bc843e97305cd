"""What becomes of one folder of a spool, however it came to be there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import UUID

from tooltrail.artifacts import (
    is_spooled,
    make_private_folders,
    remove_spool_folder,
    spooled_streams,
)
from tooltrail.records import UnavailableError
from tooltrail.store._outbox.known_invocations import KnownInvocation
from tooltrail.store._recording.postponed import is_stored
from tooltrail.store._repairing.spooled import SpoolFile, kept_folder, look_at, store_waiting
from tooltrail.store.store import Store

RepairOutcome = Literal[
    "interrupted",
    "recorded",
    "cleared",
    "stored",
    "kept",
    "running",
    "waiting",
    "unknown",
    "foreign",
    "unreadable",
    "failed",
]


@dataclass(frozen=True, slots=True)
class RepairedFolder:
    """What became of one invocation in the spool, or in a dry run would.

    Attributes:
        invocation_id: of the invocation.
        outcome: `interrupted`: its record was ended, with the output that is left. `recorded`: the
            store had been away when it ran, and all that was set aside is in it now. `cleared`: all
            that was in it is in the store already, or the call never began; it was removed.
            `kept`: the same, but for files that are not in the store, and were moved. `stored`:
            its record had ended while the artifact sink was away, and its output, which had
            waited, is stored now. `running`: its process lives. `waiting`: its start or its end is
            in the outbox still, and nothing is done before that is delivered. `unknown`: this store
            has no such invocation. `foreign`: it was set aside for another store. `unreadable`:
            what was set aside was cut or altered, and is left. `failed`: it could not be repaired
            now and is as it was.
        recovered_bytes: plain bytes that were put into the store.
        lost_bytes: plain bytes, at the least, of frames that cannot be decoded.
        reason: one sentence where there is something to say, else empty.
        kept_in: the folder to which files were moved that are not in the store as they are; None
            when there are none.
    """

    invocation_id: UUID
    outcome: RepairOutcome
    recovered_bytes: int = 0
    lost_bytes: int = 0
    reason: str = ""
    kept_in: str | None = None


def as_interrupted(invocation_id: UUID, files: Sequence[SpoolFile]) -> RepairedFolder:
    """An invocation that was ended as interrupted with these files, or in a dry run would be."""
    problems = [file.problem for file in files if file.problem]
    return RepairedFolder(
        invocation_id,
        "interrupted",
        recovered_bytes=sum(file.size for file in files if file.role != "order"),
        lost_bytes=sum(file.lost_size for file in files if file.role != "order"),
        reason="; ".join(problems),
        kept_in=next((file.kept_in for file in files if file.problem), None),
    )


def clear(
    store: Store,
    known: KnownInvocation,
    folder: Path,
    *,
    dry_run: bool,
    untold: Sequence[Path] = (),
) -> RepairedFolder:
    """Remove the folder of an invocation that has ended; what is not stored is stored, or kept.

    Args:
        store: that has it.
        known: what it has of it.
        folder: of the invocation.
        dry_run: look, and change nothing.
        untold: files of the folder that are no streams, and tell what the store does not.

    Raises:
        DamageError, UnavailableError: it cannot be asked or done now.
    """
    files = [look_at(*file) for file in spooled_streams(folder).items()]
    streams = store.reader.invocation(known.id).streams
    stored = {(stream.role, stream.digest) for stream in streams if is_stored(store, stream)}
    expected = {(s.role, s.digest) for s in streams if s.postponed_reason is not None} - stored
    waiting = [f for f in files if (f.role, f.digest) in expected]
    if waiting and not dry_run:
        store_waiting(store, known, waiting)
    stored |= {(file.role, file.digest) for file in waiting}
    kept = [f for f in files if f.problem or (f.size and (f.role, f.digest) not in stored)]
    if not dry_run:
        put_away(folder, [*(file.path for file in kept), *untold])
    names = [*(file.role for file in kept), *(path.name for path in untold)]
    if waiting and not names:
        size = sum(file.size for file in waiting if file.role != "order")
        return RepairedFolder(known.id, "stored", size, reason="the artifacts had been away")
    if not names:
        return RepairedFolder(known.id, "cleared", reason="its record had ended already")
    kept_in = str(kept_folder(folder))
    reason = f"not in the store: {', '.join(names)}; kept in {kept_in}"
    return RepairedFolder(known.id, "kept", reason=reason, kept_in=kept_in)


def put_away(folder: Path, kept: Iterable[Path]) -> None:
    """Move some files of a folder aside, in this order, and delete the rest of it.

    Raises:
        UnavailableError: that cannot be done now.
    """
    try:
        for file in kept:
            target = kept_folder(folder) / file.relative_to(folder)
            make_private_folders(target.parent)
            file.replace(target)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be put away: {error.strerror}") from error
    remove_spool_folder(folder)
    if is_spooled(folder):
        raise UnavailableError(f"{folder} cannot be removed")
