"""Keeps the transcripts of the Claude Agent SDK, and records the calls in them.

    options = ClaudeAgentOptions(session_store=SessionStore(store))

An entry is a line of a transcript of Claude Code. What the line says is recorded as `tooltrail
import` of the transcript would. The entry is also kept verbatim, in a session that only holds the
entries of one transcript; `load` reads it from there.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import claude_agent_sdk
from anyio.to_thread import run_sync
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
)

from tooltrail.importers.claude_code import NAME, Reader
from tooltrail.importers.events import Line
from tooltrail.importers.importing import record_lines
from tooltrail.importers.parts import Parts
from tooltrail.importers.recording import Recording, Source, kept_line
from tooltrail.journal import Entry
from tooltrail.journal.clock import id_of, now
from tooltrail.records import DamageError, NotFoundError, UnavailableError
from tooltrail.records.facts import SessionOpened
from tooltrail.records.ids import keyed_id
from tooltrail.redaction import RuleSet, default_rules
from tooltrail.store import Reader as StoreReader
from tooltrail.store import Store
from tooltrail.store.read.columns import Columns, Computed
from tooltrail.store.read.rows import Sql, fetch

T = TypeVar("T")
_Names: TypeAlias = tuple[str, ...]
"""The name of a project, and the names of a session in it and of a sub-agent, if there are any."""

_MOST_OPEN: Final = 64
"""The most transcripts whose calls are remembered. The others are read again when they go on."""

_CHILD: Final = Columns("sessions: title", Computed("max(messages.created_at)", "at", "time"))
_CHILDREN: Final = (
    f"SELECT {_CHILD.sql} FROM sessions JOIN messages ON messages.session_key = sessions.key"
    " WHERE sessions.parent_id = ? GROUP BY sessions.key, sessions.title"
)


class SessionStore(claude_agent_sdk.SessionStore):
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

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Record entries; acknowledged when this returns.

        Raises:
            TooltrailError: the entries cannot be recorded.
        """
        if entries:
            await self._in_thread(partial(self._append, _names_of(key), entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries of a transcript in their order; None if there are none.

        Raises:
            TooltrailError: the entries cannot be read, or not all of them.
        """
        kept = await self._in_thread(partial(self._kept, _names_of(key)))
        return [json.loads(data) for data in kept] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, each with the time of its last entry in milliseconds."""
        found = await self._in_thread(partial(self._children, (project_key,)))
        return [{"session_id": name, "mtime": mtime} for name, mtime in found]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The names of the transcripts of the sub-agents of a session."""
        names = (key["project_key"], key["session_id"])
        return [name for name, _ in await self._in_thread(partial(self._children, names))]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await run_sync(self._thread.submit(work).result)

    def _append(self, names: _Names, entries: Sequence[SessionStoreEntry]) -> None:
        transcript = self._open.pop(names, None) or self._opened(names)
        transcript.append(map(_spelled, entries))
        self._open[names] = transcript  # unless it failed: then it is read again
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _opened(self, names: _Names) -> "_Transcript":
        kept: Sequence[bytes] = ()
        with suppress(UnavailableError, DamageError):  # it is recorded as if it were new
            kept = self._kept(names)
        path = Path(self._projects, *names[:-1], f"{names[-1]}.jsonl").resolve()
        return _Transcript(self._store, names, path, self._rules, kept)

    def _kept(self, names: _Names) -> list[bytes]:
        reader, kept = self._reader(), list[bytes]()
        with suppress(NotFoundError):  # nothing was appended yet
            for one in reader.conversation(_id_of(names), payloads=True)[1]:
                if one.payload is None:
                    why = one.damage or " ".join(erasure.sentence for erasure in one.erased)
                    raise DamageError(f"entry {one.seq} of {'/'.join(names)}: {why}")
                kept.append(one.payload)
        return kept

    def _children(self, names: _Names) -> list[tuple[str, int]]:
        with self._reader().database.read() as connection:
            rows = fetch(connection, Sql(_CHILDREN, (_id_of(names),)))
        found = [_CHILD.read(row)[0] for row in rows]
        return [(one["title"], int(one["at"].timestamp() * 1000)) for one in found]

    def _reader(self) -> StoreReader:
        reader = self._store.reader
        if self._store.lag is not None:
            raise self._store.lag
        return reader


class _Transcript:
    """A transcript that goes on.

    Args:
        store: the store.
        names: the names of the transcript.
        path: its file.
        rules: the secrets to replace.
        kept: its entries so far, which are not recorded again.
    """

    def __init__(
        self, store: Store, names: _Names, path: Path, rules: RuleSet | None, kept: Sequence[bytes]
    ) -> None:
        self._recorder, self._rules, self._id = store.recorder, rules, _id_of(names)
        self._source = Source(NAME, str(path), sum(map(len, kept)))
        self._reader = Reader(path)
        self._recording = Recording(store.recorder.log, store.spool, self._source, rules)
        self._openings = [] if kept else [_opening(names[: n + 1]) for n in range(len(names))]
        self._uuids = set[str]()
        self._end = 0
        record_lines(self._recording, self._reader, self._new_lines(kept))

    def append(self, entries: Iterable[bytes]) -> None:
        """Record what entries say, then the entries; without those that were appended before."""
        lines = [*self._new_lines(entries)]
        record_lines(self._recording, self._reader, lines)
        self._recording.finish()
        self._recorder.append([*self._openings, *map(self._entry, lines)])
        self._openings = []

    def _new_lines(self, entries: Iterable[bytes]) -> Iterator[Line]:
        for data in entries:
            value = json.loads(data)
            if value.get("uuid") in self._uuids:
                continue
            self._uuids |= {value["uuid"]} if "uuid" in value else set()
            yield Line(self._end, data, value)
            self._end += len(data)

    def _entry(self, line: Line) -> Entry:
        uuid, parts = line.value.get("uuid"), Parts(self._rules)
        entry_id = id_of("message", None if uuid is None else f"{self._id}/{uuid}")
        return Entry(kept_line(self._source, line, parts, self._id, entry_id, now()), parts.bodies)


def _opening(names: _Names) -> Entry:
    parent = _id_of(names[:-1]) if names[1:] else None
    return Entry(SessionOpened(_id_of(names), now(), title=names[-1], agent=NAME, parent=parent))


def _id_of(names: _Names) -> UUID:
    return keyed_id("session", json.dumps(["claude-agent-sdk", *names]))


def _names_of(key: SessionKey) -> _Names:
    subpath = key.get("subpath")
    return (key["project_key"], key["session_id"], *([subpath] if subpath else []))


def _spelled(entry: SessionStoreEntry) -> bytes:
    """An entry as Claude Code writes it into its file."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"
