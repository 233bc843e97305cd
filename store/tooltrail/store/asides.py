"""Records that no store could take, each a folder of a spool until a repair takes it in.

    <spool>/aside-<invocation id>.owner -> owner-…   while its program runs, see `SpoolOwner`
    <spool>/aside-<invocation id>/
    ├── record.json      durable before the tool runs, and replaced when it has ended
    └── stdout.zst …     as in the folder of any invocation

`record.json` is canonical JSON with the digest of everything else in it, so that one that was cut
or edited is not taken for what was recorded.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast
from uuid import UUID

from pydantic import AwareDatetime, ValidationError

from tooltrail.artifacts import (
    PRIVATE_FILE,
    Capture,
    CaptureLimits,
    SpoolOwner,
    is_in_use,
    make_private_folders,
    release_spool_folder,
    remove_spool_folder,
    sync_file,
    sync_folder,
)
from tooltrail.artifacts.spool_owner import LINK_SUFFIX, names_in
from tooltrail.journal.clock import new_id, now
from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    Policy,
    StartUncertainError,
    ToolCall,
    UnavailableError,
    digest_of,
)
from tooltrail.records.authoring import Record
from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.policy_documents import first_complaint
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.environment import current_environment

RECORD_FILE = "record.json"

_NAME = re.compile(r"aside-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_OWNER = "aside"
"""In the name of an owner's file, where others have the id of their store."""


class WantedStore(Record):
    """Which store a record is for.

    Attributes:
        database: where it is, without who asks; see `Target.place`.
        id: of the store, None when that could not be found out.
    """

    database: str
    id: UUID | None = None

    def __str__(self) -> str:
        return self.database if self.id is None else f"store {self.id} in {self.database}"


class AsideRecord(Record):
    """What `record.json` says.

    Attributes:
        id: of the invocation.
        store: which it is for.
        session: the name that was given for it; None for one of its own.
        family: of the tool.
        call: the call.
        environment: where it took place.
        policy: the document of its budgets.
        started_at: when the tool was started.
        finished_at: when it ended; None when that was not recorded.
        complete_output: what it gave, without the bytes of its streams; None until it ended.
    """

    schema_version: Literal[1] = 1
    id: UUID
    store: WantedStore
    session: str | None
    family: str
    call: ToolCall
    environment: dict[str, str | int]
    policy: dict[str, Any]
    started_at: AwareDatetime
    finished_at: AwareDatetime | None = None
    complete_output: dict[str, Any] | None = None

    def ended(self, output: CompleteOutput, finished_at: datetime) -> Self:
        """The same with its end."""
        document = decode(output.to_json())
        return self.model_copy(update={"finished_at": finished_at, "complete_output": document})

    def to_json(self) -> bytes:
        """The canonical JSON, with the digest of what it is without that."""
        members = {name: _spelled(value) for name, value in self.model_dump().items()}
        return encode({**members, "digest": digest_of(encode(members))})

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what `to_json` wrote.

        Raises:
            InvalidRecordError: it is anything else.
        """
        try:
            members = decode(data)
        except (InvalidRecordError, ValueError) as error:
            raise InvalidRecordError("is not whole: it is no JSON") from error
        if not isinstance(members, dict):
            raise InvalidRecordError("is not a record: it is no JSON object")
        digest = members.pop("digest", None)
        if members.get("schema_version") != 1:
            version = str(members.get("schema_version"))[:20]
            raise InvalidRecordError(f"is of version {version}, this program reads version 1")
        if digest != digest_of(encode(members)):
            raise InvalidRecordError("was altered: it is not what its digest names")
        try:
            return cls.model_validate(members)
        except ValidationError as error:
            raise InvalidRecordError(f"is not a record: {first_complaint(error)}") from error


class Aside:
    """One invocation whose record waits in a spool. Made by `open_aside`; one thread at a time.

    Attributes:
        folder: where it is.
        is_begun: whether its start is durable.
    """

    def __init__(
        self,
        spool: Path,
        record: AsideRecord,
        edge_bytes: int,
        limits: CaptureLimits,
        attempted: Path | None = None,
    ) -> None:
        self.folder = spool / f"aside-{record.id}"
        self.is_begun = False
        self._owner = SpoolOwner(spool, _OWNER)
        self._record = record
        self._edge_bytes = edge_bytes
        self._limits = limits
        self._attempted = attempted

    def begin(self) -> None:
        """Make the start durable; what cannot be is removed.

        Raises:
            OSError: the spool cannot take it.
        """
        try:
            self._write(self._record)
        except OSError:
            remove_spool_folder(self.folder)
            raise
        self.is_begun = True

    def capture(self, role: str) -> Capture:
        """A writer for one stream, which never keeps all of it in memory."""
        return Capture(
            role,
            self.folder / f"{role}.zst",
            edge_bytes=self._edge_bytes,
            inline_bytes=0,
            limits=self._limits,
            claim=self._claim,
        )

    def finish(self, output: CompleteOutput) -> None:
        """Make the end durable, after the streams that it speaks of.

        Raises:
            UnavailableError: the spool cannot take it; what was there before is there still.
        """
        try:
            self._write(self._record.ended(output, now()))
        except OSError as error:
            raise UnavailableError(f"{self.folder} cannot be written: {error.strerror}") from error
        # Whoever cannot remove the link leaves it to the end of this process.
        with suppress(UnavailableError):
            release_spool_folder(self.folder)

    def _claim(self) -> None:
        self._owner.claim(self.folder.name)

    def _write(self, record: AsideRecord) -> None:
        self._claim()
        make_private_folders(self.folder)
        # Under its name only when it is whole.
        part = self.folder / f"{RECORD_FILE}.part"
        part.touch(mode=PRIVATE_FILE)
        part.write_bytes(record.to_json())
        for file in self.folder.iterdir():
            sync_file(file)
        part.rename(self.folder / RECORD_FILE)
        sync_folder(self.folder)
        sync_folder(self.folder.parent)
        if self._attempted is not None:
            # From now on it is this record that ends what was started there.
            with suppress(UnavailableError):
                release_spool_folder(self._attempted)


class AsideFolder(NamedTuple):
    """One record that was set aside.

    Attributes:
        path: of its folder, which need not be there.
        id: of the invocation.
        is_running: whether the program lives that it is of.
    """

    path: Path
    id: UUID
    is_running: bool

    def read(self) -> AsideRecord | None:
        """What `record.json` says; None when there is none.

        Raises:
            InvalidRecordError: it was cut or altered, or belongs to another folder.
            UnavailableError: it cannot be read.
        """
        path = self.path / RECORD_FILE
        try:
            record = AsideRecord.from_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
        except InvalidRecordError as error:
            raise InvalidRecordError(f"{path} {error}") from error
        if record.id != self.id:
            raise InvalidRecordError(f"{path} is of invocation {record.id}")
        return record


def open_aside(
    spools: list[Path],
    call: ToolCall,
    *,
    wanted: WantedStore,
    session: str | None,
    family: str,
    policy: Policy,
    free_bytes: int | None = None,
    attempted: StartUncertainError | None = None,
) -> Aside:
    """Set a record aside in the first of several spools that can take its start.

    A spool beside a database is away together with it when their disk is full or read-only. When
    none can take it now, it is tried once more at the end.

    A start that was `attempted` and may be in the store is not recorded twice: the record has its
    id, and a repair ends what was started.

    Args:
        spools: where to.
        call: what is about to run.
        wanted: the store that it is for.
        session: the name that was given for it; None for one of its own.
        family: of the tool.
        policy: the budgets; its `stream_bytes` hold here too. The limit of the store does not,
            since nobody can ask the store what it leaves.
        free_bytes: bytes that stay free on the disk of the spool; see `CaptureLimits`.
        attempted: of a start whose answer was lost.

    Raises:
        InvalidRecordError: the policy's numbers for the tool are none.
    """
    stream_bytes = policy.applied_to(call.tool_name).stream_bytes
    limits = CaptureLimits(stream_bytes, free_bytes)
    record = AsideRecord(
        id=new_id() if attempted is None else attempted.invocation_id,
        store=wanted,
        session=session,
        family=family,
        call=call,
        environment=current_environment(),
        policy=_members_of(policy),
        started_at=now(),
    )
    folder = None if attempted is None else attempted.folder
    asides = [Aside(spool, record, policy.edge_bytes, limits, folder) for spool in spools]
    return next(filter(_could_begin, asides), asides[0])


def wanted_store(database: str, store_id: UUID | None) -> WantedStore:
    """The store that a database names, and its id as far as it is known."""
    return WantedStore(database=parse_target(database).place, id=store_id)


def iter_asides(spool: Path) -> Iterator[AsideFolder]:
    """Every record that was set aside in a spool, the oldest first.

    Raises:
        UnavailableError: the spool cannot be read. One that is not there is empty.
    """
    for name in sorted({name.removesuffix(LINK_SUFFIX) for name in names_in(spool)}):
        match = _NAME.fullmatch(name)
        if match is not None:
            folder = spool / name
            yield AsideFolder(folder, UUID(match[1]), is_in_use(folder))


def distinct_spools(*spools: Path) -> list[Path]:
    """The same, each once however it is spelled."""
    found: dict[str, Path] = {}
    for spool in spools:
        found.setdefault(os.path.realpath(spool), spool)
    return list(found.values())


def _could_begin(aside: Aside) -> bool:
    try:
        aside.begin()
    except OSError:
        return False
    return True


def _members_of(policy: Policy) -> dict[str, Any]:
    members = decode(policy.to_json())
    assert isinstance(members, dict)
    return members


def _spelled(value: object) -> object:
    """Ids and times as JSON has them; pydantic's JSON mode would alter lone surrogates."""
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {name: _spelled(member) for name, member in members.items()}
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return value
