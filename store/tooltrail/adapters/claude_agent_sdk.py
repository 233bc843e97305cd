"""Keeps the transcripts of the Claude Agent SDK, and records the calls in them.

An entry is a line of a transcript. What it says is recorded as by `tooltrail import`. The entry is
also kept verbatim, in a session for the transcript, where `load` reads it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from glob import escape
from pathlib import Path
from tempfile import gettempdir
from typing import Final, TypeAlias
from urllib.parse import quote, unquote
from uuid import UUID

import claude_agent_sdk as sdk
from anyio.to_thread import run_sync

from tooltrail.importers.claude_code import NAME, Reader
from tooltrail.importers.events import Line
from tooltrail.importers.importing import claude_projects, record_lines
from tooltrail.importers.recording import Recording, Source
from tooltrail.journal.clock import id_of, now
from tooltrail.records import DamageError, InvalidRecordError, NotFoundError, UnavailableError
from tooltrail.redaction import default_rules
from tooltrail.store import Store

_Names: TypeAlias = tuple[str, ...]  # of a project, a session in it, and a sub-agent of that

_MOST_OPEN: Final = 64
"""The most transcripts whose open calls are remembered. Others are read again when they go on."""


class SessionStore(sdk.SessionStore):
    """Keeps transcripts in a store. A record is permanent: nothing is deleted.

    Args:
        redact: whether secrets are replaced; `load` then gives the entries without them.
        projects: folder in which Claude Code writes transcripts; by default that of this user.
    """

    def __init__(self, store: Store, *, redact: bool = True, projects: Path | None = None) -> None:
        self._store = store
        self._rules = default_rules() if redact else None
        self._folder = projects or claude_projects(os.environ, Path.home())
        self._open: dict[_Names, _Transcript] = {}
        self._thread = ThreadPoolExecutor(1, "tooltrail-transcripts")  # keeps the order of calls

    delete = sdk.SessionStore.delete  # by these, the SDK knows that they are not supported
    list_session_summaries = sdk.SessionStore.list_session_summaries

    async def append(self, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> None:
        """Record all entries; raises `TooltrailError` if one of them cannot be recorded."""
        if entries:
            await run_sync(self._thread.submit(self._append, _names_of(key), entries).result)

    async def load(self, key: sdk.SessionKey) -> list[sdk.SessionStoreEntry] | None:
        """All entries of a transcript; raises `TooltrailError` if one of them cannot be read."""
        kept = await run_sync(self._thread.submit(self._kept, _names_of(key)).result)
        return [json.loads(data) for data in kept] or None

    async def list_sessions(self, project_key: str) -> list[sdk.SessionStoreListEntry]:
        """The sessions of a project, each with the time of its last entry."""
        times = await run_sync(self._thread.submit(self._children, project_key).result)
        return [{"session_id": name, "mtime": at} for name, at in times.items()]

    async def list_subkeys(self, key: sdk.SessionListSubkeysKey) -> list[str]:
        """The names of the transcripts of the sub-agents of a session."""
        names = (key["project_key"], key["session_id"])
        return [*await run_sync(self._thread.submit(self._children, *names).result)]

    def _append(self, names: _Names, entries: Iterable[sdk.SessionStoreEntry]) -> None:
        try:
            lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in entries]
            transcript = self._open.pop(names, None) or self._opened(names)
            transcript.append(f"{one}\n".encode("utf-8", "backslashreplace") for one in lines)
        except (RecursionError, TypeError, ValueError) as error:
            raise InvalidRecordError(f"the entries cannot be recorded: {error}") from error
        self._open[names] = transcript  # unless it failed: then it is read again
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _opened(self, names: _Names) -> "_Transcript":
        kept: Sequence[bytes] = ()
        with suppress(UnavailableError, DamageError):  # it goes on as if it were new
            kept = self._kept(names)
        file, store = Path(*names[:-1], f"{names[-1]}.jsonl"), self._store
        resumed = Path(gettempdir()).glob(f"claude-resume-*/projects/{escape(str(file))}")
        path = max([self._folder / file, *resumed], key=lambda f: f.is_file() and f.stat().st_mtime)
        source = Source(NAME, str(path.resolve()), sum(map(len, kept)))
        recording = Recording(store.recorder.append, store.spool, source, self._rules)
        session = store.open_session(name=_name_of(names), agent=NAME)
        transcript = _Transcript(recording, Reader(path), session.id)
        transcript.append(kept)
        return transcript

    def _kept(self, names: _Names) -> list[bytes]:
        self._open.pop(names, None)  # a session that is resumed has another file
        reader, kept = self._store.reader, list[bytes]()
        if self._store.lag is not None:
            raise self._store.lag
        with suppress(NotFoundError):  # nothing was appended yet
            for one in reader.conversation(_name_of(names), payloads=True)[1]:
                if one.payload is None:
                    raise DamageError(f"entry {one.seq}: {one.damage or 'erased'}", path=names[-1])
                kept.append(one.payload)
        return kept

    def _children(self, *names: str) -> dict[str, int]:
        """The transcripts below a name, each with the time of its last entry in milliseconds."""
        reader, times = self._store.reader, dict[str, int]()
        for one in reader.sessions():
            above, _, name = (one.name or "").rpartition("/")
            if above == _name_of(names) and (entries := reader.conversation(one.id)[1]):
                times[unquote(name)] = int(entries[-1].created_at.timestamp() * 1000)
        return times


class _Transcript:
    """A transcript that goes on, with its calls that have no result yet."""

    def __init__(self, recording: Recording, reader: Reader, session: UUID) -> None:
        self._recording, self._reader, self._session = recording, reader, session
        self._uuids, self._end = set[str | None](), 0

    def append(self, entries: Iterable[bytes]) -> None:
        """Record what entries say, and the entries. Those that were appended before are known."""
        for data in entries:
            line = Line(self._end, data, json.loads(data))
            uuid = json.dumps(given) if (given := line.value.get("uuid")) else None
            if uuid in self._uuids:
                continue
            self._uuids |= {uuid} - {None}
            self._end += len(data)
            record_lines(self._recording, self._reader, [line])
            name = id_of("message", uuid and f"{self._session}/{uuid}")
            self._recording.keep(line, self._session, name, now())
        self._recording.finish()


def _name_of(names: _Names) -> str:
    return "/".join(["claude-agent-sdk", *(quote(one, safe="") for one in names)])


def _names_of(key: sdk.SessionKey) -> _Names:
    return (key["project_key"], key["session_id"], *filter(None, [key.get("subpath")]))
