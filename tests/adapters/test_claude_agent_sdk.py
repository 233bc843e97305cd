"""Transcripts of the Claude Agent SDK, kept by its own code and read by its own tests."""

import asyncio
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import (
    SessionKey,
    get_session_messages,
    get_session_messages_from_store,
    import_session_to_store,
    list_sessions_from_store,
)
from claude_agent_sdk.testing import run_session_store_conformance
from tests.importers.sources import CORPUS, claude_call, claude_line, claude_result, import_one
from tests.support.disks import small_disk
from tests.support.evidence import check_evidence, problems_of
from tests.support.postgres import closed_database

from tooltrail.adapters import claude_agent_sdk
from tooltrail.adapters.claude_agent_sdk import SessionStore
from tooltrail.importers import Importer
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.redaction import default_rules
from tooltrail.store import Reader, Store, open_store

SESSION = "0f8f2a64-58a4-4d0c-9d3c-6c2f5f3a7a11"
KEY: SessionKey = {"project_key": "-work", "session_id": SESSION}
TOKEN = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"[:36]


def append(transcripts: SessionStore, *entries: Any, key: SessionKey = KEY) -> None:
    asyncio.run(transcripts.append(key, list(entries)))


def load(transcripts: SessionStore, key: SessionKey = KEY) -> Any:
    return asyncio.run(transcripts.load(key))


def recorded(reader: Reader) -> Any:
    """What was recorded of the conversations, beside the entries."""
    found: dict[str, Any] = {}
    for session in reader.sessions():
        if session.name is None:
            view, messages, calls = reader.conversation(session.id, payloads=True)
            found[str(session.id)] = (view, messages, calls)
    return found


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the lock under which a journal is appended to."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def states(reader: Reader) -> dict[str | None, str]:
    return {one.call_id: one.state for one in reader.invocations(oldest_first=True).items}


def test_the_tests_of_the_sdk_pass(tmp_path: Path) -> None:
    numbers = count()
    with ExitStack() as stack:

        def made() -> SessionStore:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            return SessionStore(stack.enter_context(open_store(folder / "trail.db")))

        asyncio.run(run_session_store_conformance(made))
    assert next(numbers) > 10


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
@pytest.mark.parametrize("number", [3, 11, 12])
def test_a_real_session_is_loaded_as_it_was_and_recorded_as_by_an_import(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sorted((CORPUS / "claude_code").rglob("*.jsonl"))[number]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    file = tmp_path / "projects" / "-work" / f"{SESSION}.jsonl"
    file.parent.mkdir(parents=True)
    shutil.copy(source, file)
    entries = [json.loads(line) for line in file.read_text().splitlines() if line]
    with open_store(tmp_path / "trail.db") as store:
        for begin in range(0, len(entries), 37):  # by another program each time
            append(SessionStore(store), *entries[begin : begin + 37])
        asyncio.run(import_session_to_store(SESSION, SessionStore(store), batch_size=50))
        kept = recorded(store.reader)
        Importer(store.spool, default_rules()).import_file(file)
        assert recorded(store.reader) == kept
        assert [one for one in problems_of(store) if "has not ended" not in one] == []
        listed = asyncio.run(list_sessions_from_store(SessionStore(store), directory="/work"))
        shown = asyncio.run(
            get_session_messages_from_store(SessionStore(store), SESSION, directory="/work")
        )
    assert [one.session_id for one in listed] == [SESSION]
    assert [one.uuid for one in shown] == [one.uuid for one in get_session_messages(SESSION)]
    with open_store(tmp_path / "trail.db", spool=tmp_path / "another machine") as store:
        loaded = load(SessionStore(store))
    uuids = [one.get("uuid") for one in entries]
    assert [one for one in loaded if "uuid" in one] == [one for one in entries if "uuid" in one]
    twice = [one for one, uuid in zip(entries, uuids, strict=True) if uuid is None] * 2
    assert [one for one in loaded if "uuid" not in one] == twice
    alone = tmp_path / "alone"
    alone.mkdir()
    import_one(alone, file)
    with open_store(alone / "tooltrail.db") as store:
        assert recorded(store.reader) == kept


@pytest.mark.parametrize("most_open", [64, 0], ids=["remembered", "read again"])
def test_a_call_gets_its_result_from_a_later_append_and_an_entry_counts_once(
    most_open: int, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_agent_sdk, "_MOST_OPEN", most_open)
    asked = claude_call(1, "toolu_1", "Bash", {"command": f"echo {TOKEN}"})
    answered = claude_result(2, "toolu_1", "hi", {"stdout": "hi", "stderr": ""})
    mode = {"type": "mode", "mode": "plan"}
    transcripts = SessionStore(sqlite_store)
    append(transcripts, asked)
    append(transcripts, asked, mode)
    append(transcripts, mode, asked, answered)
    began = time.time()
    append(transcripts, answered, claude_line("user", "\ud800 ☃", 3, many=[1.5, 1e300, None]))
    (listed,) = asyncio.run(transcripts.list_sessions("-work"))
    assert int(began * 1000) <= listed["mtime"] <= time.time() * 1000
    assert states(sqlite_store.reader) == {"toolu_1": "success"}
    kept = [one.get("uuid", one["type"])[-1] for one in load(transcripts)]
    assert kept == ["1", "e", "e", "2", "3"]
    assert load(transcripts)[4]["message"]["content"] == "\ud800 ☃"
    assert load(transcripts)[4]["many"] == [1.5, 1e300, None]
    check_evidence(sqlite_store)


def test_two_programs_that_append_the_same_entry_keep_it_once(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "trail.db") as one,
        open_store(tmp_path / "trail.db", spool=tmp_path / "other") as other,
    ):
        first, second = SessionStore(one), SessionStore(other)
        append(first, claude_line("user", "a", 1))
        append(second, claude_line("user", "a", 1))
        append(first, claude_call(2, "toolu_1", "Read", {}))
        append(second, claude_call(2, "toolu_1", "Read", {}), claude_line("user", "b", 3))
        append(first, claude_result(4, "toolu_1", "text", "text"))
        check_evidence(one)
        check_evidence(other)
        assert len(load(first)) == len(load(second)) == 4
        assert states(one.reader) == {"toolu_1": "success"}


@pytest.mark.parametrize("redact", [True, False])
def test_secrets_are_replaced_unless_they_are_to_be_kept(
    *, redact: bool, sqlite_store: Store
) -> None:
    said = claude_line("user", f"Use {TOKEN}.", 1)
    asked = claude_call(2, "toolu_1", "Bash", {"command": f"echo {TOKEN}"})
    for _ in range(2):  # the second time, what was recorded is read without the secrets
        append(SessionStore(sqlite_store, redact=redact), said, asked)
    kept = json.dumps([said, asked])
    if redact:
        kept = kept.replace(TOKEN, "[REDACTED:github-token]")
    assert load(SessionStore(sqlite_store)) == json.loads(kept)
    (call,) = sqlite_store.reader.invocations().items
    assert (TOKEN in call.arguments_preview) is not redact
    assert [one.open_count for one in sqlite_store.reader.sessions()] == [0, 1]
    check_evidence(sqlite_store, is_complete=False)


def test_appends_keep_their_order_and_do_not_block_the_event_loop(sqlite_store: Store) -> None:
    transcripts = SessionStore(sqlite_store)
    journal = sqlite_store.spool / "journal"

    async def several() -> None:
        await transcripts.append(KEY, [cast("Any", {"type": "x", "n": 0})])
        entries: Any = [{"type": "x", "n": n} for n in range(1, 41)]
        with locked(journal):
            tasks = [asyncio.create_task(transcripts.append(KEY, [one])) for one in entries]
            await asyncio.sleep(0.1)
            assert not any(task.done() for task in tasks)
        await asyncio.gather(*tasks)

    asyncio.run(several())
    assert [one["n"] for one in load(transcripts)] == [*range(41)]


def test_an_append_that_fails_raises_and_can_be_repeated(tmp_path: Path) -> None:
    asked = claude_call(1, "toolu_1", "Read", {})
    long = os.urandom(4 << 20).hex()
    answered = claude_result(2, "toolu_1", long, long)
    more = claude_call(3, "toolu_1", "Read", {})
    with (
        small_disk(tmp_path / "disk", 64 << 20) as disk,
        open_store(tmp_path / "trail.db", spool=disk.folder / "spool") as store,
    ):
        transcripts = SessionStore(store)
        append(transcripts, asked)
        disk.fill()
        with pytest.raises(UnavailableError):
            append(transcripts, answered, more)
        disk.free()
        append(transcripts, answered, more)
        assert load(transcripts) == [asked, answered, more]
        calls = store.reader.invocations(oldest_first=True).items
        assert [(one.call_id, one.state) for one in calls] == [
            ("toolu_1", "success"),
            ("toolu_1", "started"),
        ]
        check_evidence(store, is_complete=False)


def test_an_odd_entry_is_kept_and_one_without_json_is_refused(sqlite_store: Store) -> None:
    transcripts = SessionStore(sqlite_store)
    uuids: list[Any] = [[1], {"a": 1}, 5, ""]
    kept = [{"type": "x", "uuid": uuid} for uuid in uuids]
    append(transcripts, *kept, claude_line("user", "a", 1))
    assert load(transcripts) == [*kept, claude_line("user", "a", 1)]
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, object(), 10**5000):
        with pytest.raises(InvalidRecordError):
            append(transcripts, claude_line("user", "b", 2), {"type": "x", "value": value})
    with pytest.raises(InvalidRecordError):
        append(transcripts, {"type": "x"}, key={**KEY, "session_id": "\0"})
    assert len(load(transcripts)) == len(kept) + 1


def test_a_database_that_cannot_be_reached_stops_only_reading(
    postgres_url: str, tmp_path: Path
) -> None:
    artifacts, spool = str(tmp_path / "artifacts"), tmp_path / "spool"
    with open_store(postgres_url, artifacts=artifacts, spool=spool, acknowledge="journal") as store:
        append(SessionStore(store), claude_line("user", "a", 1))
        store.ingest()
        with closed_database(postgres_url):
            append(SessionStore(store), claude_line("user", "b", 2))
            with pytest.raises(UnavailableError):
                load(SessionStore(store))
        assert len(load(SessionStore(store))) == 2


def test_a_transcript_is_not_loaded_without_the_entries_that_wait(tmp_path: Path) -> None:
    lock = tmp_path / "trail.db-ingest.lock"
    with open_store(tmp_path / "trail.db") as store:
        append(SessionStore(store), claude_line("user", "a", 1))
        assert len(load(SessionStore(store))) == 1
    lock.unlink()
    lock.mkdir()
    with open_store(tmp_path / "trail.db") as store:
        append(SessionStore(store), claude_line("user", "b", 2))
        with pytest.raises(UnavailableError):
            load(SessionStore(store))
        lock.rmdir()
        assert len(load(SessionStore(store))) == 2


def test_sub_agents_have_their_own_transcripts_and_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    file = tmp_path / "projects" / "-work" / SESSION / "subagents" / "agent-a1.jsonl"
    file.parent.mkdir(parents=True)
    inner = claude_call(2, "toolu_2", "Read", {}) | {"agentId": "a1", "isSidechain": True}
    file.write_text(json.dumps(inner) + "\n")
    file.with_suffix(".meta.json").write_text('{"agentType": "explorer"}')
    outer = claude_call(1, "toolu_1", "Task", {})
    (tmp_path / "projects" / "-work" / f"{SESSION}.jsonl").write_text(json.dumps(outer) + "\n")
    with open_store(tmp_path / "trail.db") as store:
        transcripts = SessionStore(store)
        asyncio.run(import_session_to_store(SESSION, transcripts))
        names = asyncio.run(
            transcripts.list_subkeys({"project_key": "-work", "session_id": SESSION})
        )
        assert names == ["subagents/agent-a1"]
        metadata = {"agentType": "explorer", "type": "agent_metadata"}
        assert load(transcripts, {**KEY, "subpath": names[0]}) == [inner, metadata]
        child, parent = (one for one in store.reader.sessions() if one.name is None)
        if child.parent_id is None:
            child, parent = parent, child
        assert (child.parent_id, child.invocation_count) == (parent.id, 1)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_long_output_is_read_from_the_file_beside_the_transcript(
    *, is_resumed: bool, sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    transcripts = SessionStore(sqlite_store, projects=tmp_path / "projects")
    (tmp_path / "projects" / "-work").mkdir(parents=True)
    (tmp_path / "projects" / "-work" / f"{SESSION}.jsonl").touch()
    append(transcripts, claude_line("user", "Count.", 1))
    folder = tmp_path / "projects"
    if is_resumed:
        assert load(transcripts)
        folder = tmp_path / "tmp" / "claude-resume-x1" / "projects"
        (folder / "-work").mkdir(parents=True)
        (folder / "-work" / f"{SESSION}.jsonl").touch()
    spilled = folder / "-work" / SESSION / "tool-results" / "b1.txt"
    spilled.parent.mkdir(parents=True)
    spilled.write_text("1\n" * 50_000)
    shown = f"<persisted-output>\nOutput too large (97.7KB). Full output saved to: {spilled}\n"
    returned = {"stdout": "1\n", "stderr": "", "persistedOutputSize": 100_000}
    append(
        transcripts,
        claude_call(2, "toolu_1", "Bash", {"command": "yes 1"}),
        claude_result(3, "toolu_1", shown, returned),
    )
    detail = sqlite_store.reader.invocation("@last")
    assert (detail.summary.output_size, detail.summary.lost_size) == (100_000, 0)
