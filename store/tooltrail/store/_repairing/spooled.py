"""An invocation whose process is gone: what the database knows of it, and how its record ends."""

import hashlib
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from tooltrail.artifacts import Salvaged, SpoolReader, check_path, salvage, spooled_streams
from tooltrail.records import (
    Digest,
    FamilyRegistry,
    StreamRecord,
    ToolCall,
    UnavailableError,
    stored_policy,
)
from tooltrail.records.digests import digest_from_hex
from tooltrail.store._outbox.known_invocations import KnownInvocation
from tooltrail.store._reading.conditions import condition_of
from tooltrail.store._recording.postponed import store_postponed
from tooltrail.store._recording.sessions import only_call_of
from tooltrail.store._recording.starting import Started
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.invocation import Invocation
from tooltrail.store.recorder import Session
from tooltrail.store.spools import KEPT_FOLDER
from tooltrail.store.tables import InvocationRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store

REASON = (
    "the program that recorded it ended without finishing it, could not record its end, or was "
    "not told that its start is recorded; "
    "what it had not written to its spool yet is lost and cannot be counted"
)

INTERRUPTED_ALONE = "its only call was interrupted"
"""Why a session was closed that its program did not live to close."""

_SUFFIX = ".zst"
_STAGING = "recovering-"
_MANY = 500
"""Ids in one query."""


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """What a look at a spool file finds.

    Attributes:
        role: of the stream.
        path: of the file.
        digest: of the plain bytes of its whole frames.
        size: of the same.
        lost_size: plain bytes, at the least, that cannot be decoded.
        problem: what is damaged; None when it merely ends early.
    """

    role: str
    path: Path
    digest: Digest
    size: int
    lost_size: int
    problem: str | None

    @property
    def kept_in(self) -> str | None:
        """Where the file is to be moved, since something in it is damaged; None otherwise."""
        return str(kept_folder(_folder_of(self.role, self.path))) if self.problem else None


def started_ids(store: "Store") -> set[UUID]:
    """The invocations of this store that have not ended, wherever they run."""
    with store.database.read() as connection:
        where = condition_of(InvocationFilter(states=("started",)))
        return set(connection.scalars(select(InvocationRow.id).where(where)))


def look_at(role: str, path: Path) -> SpoolFile:
    """Read a spool file through, as far as that goes.

    Raises:
        UnavailableError: it cannot be read.
    """
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as stored:
            reader = SpoolReader(stored, str(path))
            for block in reader:
                hasher.update(block)
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
    digest = digest_from_hex(hasher.hexdigest())
    return SpoolFile(role, path, digest, reader.size, reader.lost_size, reader.problem)


def interrupt(store: "Store", known: KnownInvocation, folder: Path) -> list[SpoolFile]:
    """Publish what is whole in a folder and end its invocation; the folder stays as it is.

    Returns:
        What was found in the folder, as far as it is stored.

    Raises:
        InvocationFinishedError: it has ended meanwhile.
        InvalidRecordError: a file has a name that no stream has.
        DamageError: the policy of the invocation is damaged.
        UnavailableError: a file cannot be read, there is no room, the store cannot be written.
    """
    with _staging_for(store, known) as invocation:
        found: list[SpoolFile] = []
        streams: list[StreamRecord] = []
        for role, path in spooled_streams(folder).items():
            salvaged = salvage_stream(store, invocation, role, path)
            streams.append(invocation.captured(salvaged.captured))
            found.append(stored_file(path, streams[-1], salvaged.problem))
        invocation.interrupt(REASON, streams)
    return found


def store_waiting(store: "Store", known: KnownInvocation, files: Iterable[SpoolFile]) -> None:
    """Store spool files of an invocation that ended while the sink was away.

    Raises:
        DamageError, UnavailableError: see `interrupt`.
    """
    with _staging_for(store, known) as invocation:
        captured = [salvage_stream(store, invocation, f.role, f.path).captured for f in files]
        store_postponed(store, captured, invocation.spool)


@contextmanager
def _staging_for(store: "Store", known: KnownInvocation) -> Generator["_Unfinished"]:
    with staging_in(store.spool, known.id) as staging:
        yield _opened(store, known, staging)


@contextmanager
def staging_in(spool: Path, invocation_id: UUID) -> Generator[Path]:
    """A folder for what is staged of an invocation, which goes at the end."""
    staging = spool / f"{_STAGING}{invocation_id}"
    shutil.rmtree(staging, ignore_errors=True)  # of a repair that was killed
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_staging(spool: Path) -> None:
    """Delete what repairs that were killed had staged; whoever calls it is the only repair."""
    for staging in spool.glob(f"{_STAGING}*"):
        shutil.rmtree(staging, ignore_errors=True)


class _Unfinished(Invocation):
    """An invocation of a process that is gone, with a folder of its own for what is staged."""

    is_witnessed = False
    may_wait = False  # what is in the spool is safer as it is
    closing_reason = INTERRUPTED_ALONE

    def __init__(
        self, store: "Store", session: Session, key: int, started: Started, staging: Path
    ) -> None:
        super().__init__(store, session, key, started)
        self._staging = staging

    @property
    def spool(self) -> Path:
        return self._staging


def _opened(store: "Store", known: KnownInvocation, staging: Path) -> _Unfinished:
    # A failure is worded by no family, so that one that this program does not know is no obstacle.
    family = store.families.find(known.family) or store.families.of_tool(known.tool_name)
    policy = stored_policy(store.reader.policy_json(known.policy_digest), FamilyRegistry(family))
    call = ToolCall(tool_name=known.tool_name)
    with store.database.read() as connection:
        only_call = only_call_of(connection, known.session_key)
    session = Session(store, known.session_key, known.session_id, is_own=False, only_call=only_call)
    started = Started(known.id, known.started_at, call, family, policy)
    return _Unfinished(store, session, known.key, started, staging)


def salvage_stream(store: "Store", invocation: Invocation, role: str, path: Path) -> Salvaged:
    """What is whole in a spool file, staged anew for an invocation."""
    policy = invocation.policy
    return salvage(
        path,
        role,
        invocation.spool / f"{check_path(role)}{_SUFFIX}",
        edge_bytes=policy.edge_bytes,
        inline_bytes=policy.applied_to(invocation.call.tool_name).inline_bytes,
        frame_size=store.archive.frame_size,
        moves_to=kept_folder(_folder_of(role, path)) / f"{role}{_SUFFIX}",
    )


def kept_folder(folder: Path) -> Path:
    """Where those files of a spool folder are moved that are not in the store as they are."""
    return folder.parent / KEPT_FOLDER / folder.name


def _folder_of(role: str, path: Path) -> Path:
    return path.parents[role.count("/")]


def stored_file(path: Path, stream: StreamRecord, problem: str | None) -> SpoolFile:
    """What a spool file has come to: the stream that is stored of it."""
    lost = stream.produced_size - stream.size
    return SpoolFile(stream.role, path, stream.digest, stream.size, lost, problem)
