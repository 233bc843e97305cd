"""A record that no store could take: a folder in the spool that holds all of it.

The folder has the streams as they are captured everywhere, readable with `zstd -d`, and
`record.json` with the name of the session, the call, the times, the complete output without its
bytes, its digests, and the policy.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import Capture, CapturedStream
from tooltrail.records import CompleteOutput, Policy, StreamRecord, ToolCall
from tooltrail.records.canonical_json import decode, encode
from tooltrail.store import new_id, now

_PRIVATE = 0o700


class Aside:
    """One invocation whose record waits in the spool. One thread at a time."""

    def __init__(
        self,
        folder: Path,
        record_id: UUID,
        call: ToolCall,
        session_name: str | None,
        policy: Policy,
    ) -> None:
        self._id = record_id
        self._folder = folder
        self._call = call
        self._session_name = session_name
        self._policy = policy
        self._started_at = now()

    def capture(self, role: str) -> Capture:
        """A writer for one stream, which never keeps all of it in memory."""
        with suppress(OSError):  # said by `finish`, when the command has ended
            self._make_folder()
        return Capture(
            role,
            self._folder / f"{role}.zst",
            edge_bytes=self._policy.edge_bytes,
            inline_bytes=0,
        )

    def captured(self, stream: CapturedStream) -> StreamRecord:
        """Take a closed capture."""
        return stream.record

    def finish(self, output: CompleteOutput) -> str:
        """Write `record.json`; one sentence that says what is kept and where."""
        record = {
            "schema_version": 1,
            "id": str(self._id),
            "session": self._session_name,
            "call": self._call.model_dump(),
            "started_at": self._started_at.isoformat(),
            "finished_at": now().isoformat(),
            "complete_output": decode(output.to_json()),
            "policy": decode(self._policy.to_json()),
        }
        try:
            self._make_folder()
            self._write_durably(encode(record))
        except OSError as error:
            return f"nothing was recorded: {self._folder} cannot be written: {error.strerror}"
        lost = sum(stream.produced_size - stream.size for stream in output.streams)
        if lost:
            return f"the record is kept in {self._folder}, without {lost:,} bytes of output"
        return f"the record is kept in {self._folder}"

    def _write_durably(self, record: bytes) -> None:
        # Under its name only when it is whole, and after the streams that it speaks of.
        part = self._folder / "record.json.part"
        part.write_bytes(record)
        for file in self._folder.iterdir():
            _sync(file)
        part.rename(self._folder / "record.json")
        _sync(self._folder)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)


def open_aside(
    spools: Sequence[Path], call: ToolCall, session_name: str | None, policy: Policy
) -> Aside:
    """Set a record aside in the first of several spools that can take it.

    A spool beside a database is away together with it when their disk is full or read-only.
    """
    record_id = new_id()
    folders = [spool / f"aside-{record_id}" for spool in spools]
    chosen = next(filter(_can_take, folders), folders[0])
    return Aside(chosen, record_id, call, session_name, policy)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _can_take(folder: Path) -> bool:
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if os.statvfs(folder).f_bavail > 0:
            return True
        folder.rmdir()
    except OSError:
        return False
    return False
