"""What cannot be delivered is named and put away, keeps nobody, and may be tried again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.away import away, without_pause
from tests.support.ended import BASH, made
from tests.support.killing import count_moments, run_and_kill
from tests.support.outboxes import BIG, check_all, printed

from tooltrail.artifacts import artifact_path
from tooltrail.records import UnavailableError, digest_of
from tooltrail.records.canonical_json import encode
from tooltrail.store import (
    CallEnded,
    MessageAdded,
    Store,
    acknowledge_losses,
    entries,
    find_backlog,
    new_id,
    repair,
)
from tooltrail.store._outbox import flocks
from tooltrail.store._outbox.delivering import deliver
from tooltrail.store._outbox.journal_lines import iter_lines
from tooltrail.store.outbox import Outbox


def test_a_damaged_line_is_named_and_put_away_and_keeps_nobody(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        for number in range(3):
            session.record(BASH, made(b"%d" % number))
    journal = patient.fallback.outbox.journal.waiting / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = lines[1][:-10] + b"#" + lines[1][-9:]
    journal.write_bytes(lines[0] + damaged + lines[2])
    assert find_backlog(patient).unreadable_count == 1
    (kept,) = repair(patient).outbox.kept
    assert (Path(kept.file).name, kept.line) == ("sealed-000000000001", 2)
    assert Path(kept.kept_in).read_bytes() == damaged
    assert printed(patient, session.id) == [b"0", b"2"]


def test_an_entry_of_a_newer_program_waits_for_one_with_all_that_is_behind_it(
    patient: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, mine = patient.open_session(), patient.fallback.outbox
    messages = [
        MessageAdded(session=session.id, role="user", text=text) for text in ("1", "2", "3")
    ]
    mine.append(messages[0])

    def of_years_to_come(_: object) -> int:
        return 99

    with monkeypatch.context() as newer:
        newer.setattr(entries, "_version_of", of_years_to_come)
        mine.append(messages[1])
    mine.append(messages[2])
    for delivered_count in (1, 0):
        done = repair(patient).outbox
        assert (done.delivered_count, done.waiting_count, done.kept) == (delivered_count, 3, [])
        told = "is of version 99, this program reads up to 4: it waits for a newer program"
        assert done.failure.endswith(told)
        assert done.failure.startswith("line 2 of ")
    without_pause(patient)
    session.add_message("user", "4")
    (sealed, journal) = mine.journal.files()
    assert [line.number for line in iter_lines(journal)] == [1]
    text = sealed.read_bytes().splitlines()[1].partition(b" ")[2].replace(b'"v":99', b'"v":1')
    lines = sealed.read_bytes().splitlines(keepends=True)
    lines[1] = digest_of(text).encode() + b" " + text + b"\n"
    sealed.write_bytes(b"".join(lines))
    assert repair(patient).outbox.failure == ""
    _, found, _ = patient.reader.conversation(session.id)
    assert [one.text for one in found] == ["1", "2", "3", "4"]


def test_what_was_put_away_is_tried_again_and_delivered_once_whoever_is_killed(
    sqlite_store: Store,
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    texts = [f"{number}" for number in range(5)]
    for text in texts:
        mine.append(MessageAdded(session=session.id, role="user", text=text))
    (path,) = mine.journal.files()
    for number, line in enumerate(path.read_bytes().splitlines()):
        os.utime(mine.put_away.keep(line, "a reason"), ns=(number, number))
    mine.put_away.keep(b"damaged", "another reason")
    path.unlink()

    def retry() -> None:
        mine.retry_kept()

    count = count_moments(retry)
    for moment in range(1, count, count // 12):
        run_and_kill(retry, moment)
    retry()
    assert repair(sqlite_store).outbox.failure == ""
    _, found, _ = sqlite_store.reader.conversation(session.id)
    assert [one.text for one in found] == texts
    (path,) = mine.put_away.kept.glob("*[!n]")
    assert path.read_bytes() == b"damaged\n"


def test_what_is_tried_again_is_looked_at_anew_by_the_process_that_refused_it(
    sqlite_store: Store,
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    mine.append(CallEnded(session=session.id, tool_name="t", complete_output='{"nonsense":1}'))
    assert len(deliver(sqlite_store, mine).kept) == 1
    assert mine.retry_kept() == 1
    # The file that it waits in now may have the name and the inode of the one before.
    assert len(deliver(sqlite_store, mine).kept) == 1


def test_what_is_tried_again_while_another_delivers_is_never_lost(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    refused = CallEnded(session=session.id, tool_name="t", complete_output='{"nonsense":1}')
    mine.append(refused)
    assert len(deliver(sqlite_store, mine).kept) == 1
    append = mine.journal.append

    def append_and_deliver(data: bytes) -> None:
        append(data)
        # As another process does that records just now.
        deliver(sqlite_store, Outbox(mine.journal.folder), wait=False)

    monkeypatch.setattr(mine.journal, "append", append_and_deliver)
    assert mine.retry_kept() == 1
    deliver(sqlite_store, mine)
    (path,) = mine.put_away.kept.glob("*[!n]")
    assert str(refused.id) in path.read_text()


def test_who_delivers_and_keeps_something_from_being_tried_again_is_named(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flocks, "MOST_WAIT_S", 0.05)
    mine = sqlite_store.fallback.outbox
    mine.put_away.keep(b"sha256:0 {}", "a reason")
    with mine.journal.delivering(wait=True):
        report = repair(sqlite_store, retry_kept=True)
    told = f"{mine.put_away.kept} cannot be retried: process {os.getpid()} is delivering what waits"
    assert report.outbox.failure.startswith(told)
    assert mine.put_away.kept_count() == 1


def test_what_was_put_away_and_cannot_be_read_is_told(sqlite_store: Store) -> None:
    kept = sqlite_store.fallback.outbox.put_away.kept
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(UnavailableError, match=f"{kept} cannot be retried"):
        repair(sqlite_store, retry_kept=True)
    with pytest.raises(UnavailableError, match="cannot be changed"):
        acknowledge_losses(sqlite_store)
    kept.unlink()
    assert acknowledge_losses(sqlite_store) == ()


def test_what_is_no_entry_for_any_reason_is_put_away_and_keeps_nobody(
    patient: Store, database: str
) -> None:
    session, journal = patient.open_session(), patient.fallback.outbox.journal
    with away(patient, database):
        session.record(BASH, made(b"shown"))
    (line,) = iter_lines(journal.waiting / "journal")
    call: dict[str, Any] = json.loads(line.data or b"")
    message: dict[str, Any] = {
        "v": 1,
        "kind": "message",
        "session": str(session.id),
        "role": "user",
    }
    many: list[dict[str, Any]] = [
        {**message, "text": 5},
        {**message, "text": "naive", "at": "2026-01-01T00:00:00"},
        {**call, "shown": {**call["shown"], "facts": {"colour": "red"}}},
        {**call, "shown": {**call["shown"], "canonical": "{ }"}},
        {**call, "shown": {**call["shown"], "canonical": '{"a":1}'}},
        {**call, "shown": {**call["shown"], "receipt": 7}},
        {**call, "complete_output": "{"},
        {**call, "tool_name": None},
        {**call, "shown": None, "streams": []},
        {**call, "shown": None, "policy": "[]"},
    ]
    for odd in many:
        journal.append(encode({**odd, "id": str(new_id())}))
    done = repair(patient).outbox
    assert (done.delivered_count, len(done.kept), done.failure) == (1, 10, "")
    assert printed(patient, session.id) == [b"shown"]
    check_all(patient)


def test_what_is_an_artifact_for_its_caller_waits_for_the_artifacts(
    patient: Store, database: str, tmp_path: Path
) -> None:
    session = patient.open_session()
    with away(patient, database):
        session.record(BASH, made(BIG))
    journal = patient.fallback.outbox.journal
    (line,) = iter_lines(journal.waiting / "journal")
    call: dict[str, Any] = json.loads(line.data or b"")
    call["streams"][0]["path"] = artifact_path(digest_of(BIG))
    (journal.waiting / "journal").unlink()
    journal.append(encode(call))
    (tmp_path / "artifacts").rename(tmp_path / "hidden")
    assert "artifact" in repair(patient).outbox.failure
    assert find_backlog(patient).entry_count == 1
    (tmp_path / "hidden").rename(tmp_path / "artifacts")
    assert repair(patient).outbox.delivered_count == 1
    assert printed(patient, session.id) == [BIG]
    call["streams"][0]["path"] = "sha256/00/other.zst"
    journal.append(encode({**call, "id": str(new_id())}))
    (kept,) = repair(patient).outbox.kept
    assert kept.reason.startswith("artifact sha256/00/other.zst would be ")


def test_a_damaged_session_keeps_nobody_else_from_the_store(sqlite_store: Store) -> None:
    sessions = [sqlite_store.open_session() for _ in range(2)]
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_heads_no_update")
        connection.exec_driver_sql(
            f"UPDATE ledger_heads SET digest = 'gone' WHERE session_key = {sessions[0].key}"
        )
    for session in sessions:
        sqlite_store.fallback.outbox.append(
            MessageAdded(session=session.id, role="user", text="hello")
        )
    done = repair(sqlite_store).outbox
    assert (done.delivered_count, len(done.kept)) == (1, 1)
    assert "the ledger head of session" in done.kept[0].reason
