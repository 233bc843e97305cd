"""Keeps the transcripts of the Claude Agent SDK, and records the calls in them.

    options = ClaudeAgentOptions(session_store=SessionStore(store))

An entry is a line of a transcript of Claude Code. What the line says is recorded as `tooltrail
import` of the transcript would. The entry is also kept verbatim, in a session that has the entries
of one transcript only; `load` reads them there.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from glob import escape
from pathlib import Path
from tempfile import gettempdir
from typing import Final, TypeAlias
from uuid import UUID

import claude_agent_sdk as sdk
from anyio.to_thread import run_sync

from tooltrail.importers.claude_code import NAME, Reader
from tooltrail.importers.events import Line
from tooltrail.importers.importing import record_lines
from tooltrail.importers.recording import Recording, Source
from tooltrail.journal.clock import id_of, now
from tooltrail.records import DamageError, NotFoundError, UnavailableError
from tooltrail.records.ids import keyed_id
from tooltrail.redaction import RuleSet, default_rules
from tooltrail.store import Store

_Names: TypeAlias = tuple[str, ...]
"""The names of a project, of a session in it, and of a sub-agent of the session."""

_MOST_OPEN: Final = 64
"""The most transcripts whose open calls are remembered. Others are read again when they go on."""


class SessionStore(sdk.SessionStore):
    """Keeps transcripts in a store. A record is permanent, so there is no `delete`.

    Args:
        store: an open store.
        redact: whether secrets are replaced; `load` then gives the entries without them.
        projects: the folder in which Claude Code writes transcripts, and long outputs beside them.
            By default `projects` in `$CLAUDE_CONFIG_DIR` or `~/.claude`.
    """

    def __init__(self, store: Store, *, redact: bool = True, projects: Path | None = None) -> None:
        folder = os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"
        self._store = store
        self._rules = default_rules() if redact else None
        self._projects = projects or Path(folder, "projects")
        self._open: dict[_Names, _Transcript] = {}
        self._thread = ThreadPoolExecutor(1, "tooltrail-transcripts")  # keeps the order of calls

    async def append(self, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> None:
        """Record entries; raises `TooltrailError` if they cannot be recorded."""
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
        transcript = self._open.pop(names, None) or self._opened(names)
        transcript.append(map(_spelled, entries))
        self._open[names] = transcript  # unless it failed: then it is read again
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _opened(self, names: _Names) -> "_Transcript":
        kept: Sequence[bytes] = ()
        with suppress(UnavailableError, DamageError):  # it goes on as if it were new
            kept = self._kept(names)
        session, path = _open_session(self._store, names), _path_of(names, self._projects)
        return _Transcript(self._store, session, path, self._rules, kept)

    def _kept(self, names: _Names) -> list[bytes]:
        self._open.pop(names, None)  # a session that is resumed has another file
        reader, kept = self._store.reader, list[bytes]()
        if self._store.lag is not None:
            raise self._store.lag
        with suppress(NotFoundError):  # nothing was appended yet
            for one in reader.conversation(_name_of(names), payloads=True)[1]:
                if one.payload is None:
                    why = f"entry {one.seq} of {'/'.join(names)}: {one.damage or 'it is erased'}"
                    raise DamageError(why, path="messages")
                kept.append(one.payload)
        return kept

    def _children(self, *names: str) -> dict[str, int]:
        """The transcripts below a name, each with the time of its last entry in milliseconds."""
        reader, times = self._store.reader, dict[str, int]()
        parent = keyed_id("name", _name_of(names))
        for one in reader.sessions():
            if one.parent_id == parent and (entries := reader.conversation(one.id)[1]):
                times[one.title or ""] = int(entries[-1].created_at.timestamp() * 1000)
        return times


class _Transcript:
    """A transcript that goes on behind the entries that are kept."""

    def __init__(
        self, store: Store, session: UUID, path: Path, rules: RuleSet | None, kept: Sequence[bytes]
    ) -> None:
        source = Source(NAME, str(path), sum(map(len, kept)))
        self._recording = Recording(store.recorder.append, store.spool, source, rules)
        self._reader, self._session, self._end = Reader(path), session, 0
        self._uuids = set[str | None]()
        record_lines(self._recording, self._reader, self._new_lines(kept))

    def append(self, entries: Iterable[bytes]) -> None:
        """Record what entries say, and the entries. Those that were appended before are known."""
        for line in self._new_lines(entries):
            record_lines(self._recording, self._reader, [line])
            uuid = line.value.get("uuid")
            name = id_of("message", uuid and f"{self._session}/{uuid}")
            self._recording.keep(line, self._session, name, now())
        self._recording.finish()

    def _new_lines(self, entries: Iterable[bytes]) -> Iterator[Line]:
        for data in entries:
            value = json.loads(data)
            if value.get("uuid") not in self._uuids:
                self._uuids |= {value.get("uuid")} - {None}
                yield Line(self._end, data, value)
                self._end += len(data)


def _open_session(store: Store, names: _Names) -> UUID:
    parent = _open_session(store, names[:-1]) if names[1:] else None
    name, title = _name_of(names), names[-1]
    return store.open_session(name=name, title=title, agent=NAME, parent=parent).id


def _path_of(names: _Names, projects: Path) -> Path:
    """The file of a transcript. The SDK resumes a session in a temporary folder."""
    file = Path(*names[:-1], f"{names[-1]}.jsonl")
    resumed = Path(gettempdir()).glob(f"claude-resume-*/projects/{escape(str(file))}")
    found = [one for one in (projects / file, *resumed) if one.is_file()]
    return max(found, key=lambda one: one.stat().st_mtime, default=projects / file).resolve()


def _name_of(names: _Names) -> str:
    return json.dumps(["claude-agent-sdk", *names])


def _names_of(key: sdk.SessionKey) -> _Names:
    names, subpath = (key["project_key"], key["session_id"]), key.get("subpath")
    return names if subpath is None else (*names, subpath)


def _spelled(entry: sdk.SessionStoreEntry) -> bytes:
    """An entry as it stands in the file of Claude Code."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
    return text.encode("utf-8", "backslashreplace")
