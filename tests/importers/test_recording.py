"""Recording what was found: the same ids each time, nothing twice, no secret stored."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.importers.sources import (
    assert_intact,
    calls_in,
    claude_call,
    claude_line,
    claude_result,
    import_one,
    messages_in,
    opened,
    receipt_of,
    stream_of,
    write_lines,
)
from tests.redaction.samples import ALL
from tests.support.altering import alter
from tests.support.evidence import problems_of

from tooltrail.importers import Importer, claude_code
from tooltrail.importers.events import Event, Line, Output
from tooltrail.importers.parts import failure_document, success_document
from tooltrail.importers.recording import Recording, Source
from tooltrail.journal import Entry
from tooltrail.records import default_families, digest_of
from tooltrail.records.counted_streams import CountedStream
from tooltrail.records.facts import MessageAdded, StreamFact
from tooltrail.records.streams import StreamRecord
from tooltrail.store import open_store
from tooltrail.store.ingest.outcomes import read_output

BASH = {"stdout": "out\n", "stderr": "", "interrupted": False}


def session_lines(count: int) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for n in range(count):
        lines.append(claude_call(2 * n, f"t{n}", "Bash", {"command": f"run {n}"}))
        lines.append(claude_result(2 * n + 1, f"t{n}", f"out {n}", BASH, is_error=False))
    return lines


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(3))
    assert import_one(tmp_path, path).counts["new"] == 10
    again = import_one(tmp_path, path).counts
    assert (again["new"], again["known"]) == (0, 10)


def test_a_line_is_kept_byte_for_byte_unless_it_was_kept_before(tmp_path: Path) -> None:
    data = b'{"type": "odd",  "n": 1.0}\n'
    source = Source("claude-code", "/a.jsonl", since=len(data))
    kept: list[Entry] = []
    recording = Recording(kept.extend, tmp_path, source, None)
    at, session = datetime(2026, 11, 1, tzinfo=UTC), UUID(int=1)
    for n in (0, 1, 2):
        line = Line(n * len(data), data, {"type": "odd", "n": 1.0})
        recording.keep(line, session, UUID(int=2 + n), at)
    recording.finish()
    facts = [cast("MessageAdded", one.fact) for one in kept]
    assert [(one.id.int, one.session, one.at) for one in facts] == [
        (3, session, at),
        (4, session, at),
    ]
    assert [one.source.offset for one in facts if one.source] == [len(data), 2 * len(data)]
    assert {one.payload for one in facts} == {digest_of(data)}
    assert all(data in one.bodies for one in kept)


def test_without_its_cursor_a_source_is_known_by_its_ids(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(3))
    import_one(tmp_path, path)
    for cursor in (tmp_path / "tooltrail.db-spool" / "imports").iterdir():
        cursor.unlink()
    import_one(tmp_path, path)
    with opened(tmp_path) as reader:
        assert len(calls_in(reader)) == 3
    assert_intact(tmp_path)


def test_a_longer_source_adds_only_what_is_new(tmp_path: Path) -> None:
    lines = session_lines(4)
    path = write_lines(tmp_path / "a.jsonl", lines[:5])  # the third call has no result yet
    assert import_one(tmp_path, path).counts["unpaired_calls"] == 1
    write_lines(path, lines)
    counts = import_one(tmp_path, path).counts
    assert (counts["new"], counts["unpaired_calls"]) == (4, 0)
    with opened(tmp_path) as reader:
        assert [call.summary.state for call in calls_in(reader)] == ["success"] * 4


def test_an_unknown_line_is_kept_whenever_it_is_added(tmp_path: Path) -> None:
    lines = session_lines(1)
    path = write_lines(tmp_path / "a.jsonl", lines)
    import_one(tmp_path, path)
    odd = {"type": "of-tomorrow", "sessionId": "5e55", "n": 1}
    write_lines(path, [*lines, odd])
    dry = Importer(tmp_path / "tooltrail.db-spool", None, is_dry_run=True).import_file(path)
    counts = import_one(tmp_path, path).counts
    assert (dry.counts["new"], counts["new"], counts["unknown: of-tomorrow"]) == (1, 1, 1)
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        _, (*_, last), _ = reader.conversation(session.id, payloads=True)
        (call,) = calls_in(reader)
    assert json.loads(last.payload or b"") == odd
    assert last.created_at - call.summary.started_at == timedelta(seconds=1)


def test_a_source_that_was_replaced_by_a_shorter_one_is_imported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(3))
    import_one(tmp_path, path)
    other = [{**line, "sessionId": "an0ther"} for line in session_lines(1)]
    assert import_one(tmp_path, write_lines(path, other)).counts["new"] == 4


def test_a_line_that_was_cut_is_imported_once_it_is_complete(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(2))
    data = path.read_bytes()
    path.write_bytes(data[:-40])
    first = import_one(tmp_path, path)
    assert [(one.number, one.is_cut) for one in first.damaged] == [(4, True)]
    path.write_bytes(data)
    second = import_one(tmp_path, path)
    assert (second.counts["new"], second.damaged) == (1, ())


@pytest.mark.parametrize("cut", [0, 1, 3])  # before, in and behind a character
def test_a_document_that_was_cut_is_imported_once_it_is_complete(tmp_path: Path, cut: int) -> None:
    calls = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    logs = [
        {
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "tool_calls": calls},
            ]
        }
        for text in ("first", "second", "日本")
    ]
    lines = (json.dumps(one, ensure_ascii=False) for one in logs)
    data = ("[\n" + ",\n".join(lines) + "\n]\n").encode()
    path = tmp_path / "logs.json"
    path.write_bytes(data[: data.index("日".encode()) + cut])
    first = import_one(tmp_path, path)
    assert (first.counts["calls"], first.damaged[0].is_cut) == (2, True)
    assert import_one(tmp_path, path).counts["new"] == 0  # the writer wrote nothing more
    path.write_bytes(data)
    second = import_one(tmp_path, path)
    assert (second.counts["calls"], second.damaged) == (3, ())
    with opened(tmp_path) as reader:
        assert len(calls_in(reader)) == 3
    assert import_one(tmp_path, path).counts["new"] == 0


@pytest.mark.parametrize("first_line", ["{", "["])
def test_a_damaged_first_line_is_imported_once(tmp_path: Path, first_line: str) -> None:
    said = [json.dumps({"messages": [{"role": "user", "content": text}]}) for text in "abc"]
    path = tmp_path / "logs.jsonl"
    path.write_text("\n".join([first_line, *said, ""]))
    first = import_one(tmp_path, path)
    assert (first.counts["new"] > 0, [one.is_cut for one in first.damaged]) == (True, [False])
    assert import_one(tmp_path, path).counts["new"] == 0


@pytest.mark.parametrize(("calls", "lines_read"), [(5, 1), (5, 3), (700, 1_100)])
def test_an_import_that_was_interrupted_is_completed_by_the_next(
    tmp_path: Path, calls: int, lines_read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(calls))
    plain, left = claude_code.Reader.read, iter(range(lines_read))

    def interrupt(reader: claude_code.Reader, line: Line) -> Iterator[Event]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        yield from plain(reader, line)

    with monkeypatch.context() as patched:
        patched.setattr(claude_code.Reader, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_one(tmp_path, path, redact=False)
    assert import_one(tmp_path, path).counts["new"] == 1 + 3 * calls
    with opened(tmp_path) as reader:
        assert reader.count_invocations() == calls
    assert_intact(tmp_path)


def test_a_copy_of_a_source_elsewhere_is_the_same_session(tmp_path: Path) -> None:
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", session_lines(2)))
    import_one(tmp_path, write_lines(tmp_path / "b.jsonl", session_lines(2)))
    with opened(tmp_path) as reader:
        assert len(calls_in(reader)) == 2
    assert_intact(tmp_path)


def test_a_call_id_that_repeats_is_another_call(tmp_path: Path) -> None:
    lines = [
        *(claude_call(n, "same", "Bash", {"command": f"run {n}"}) for n in range(3)),
        *(claude_result(9, "same", f"out {n}", BASH, is_error=False) for n in range(3)),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        shown = [call.receipt.text for call in calls_in(reader) if call.receipt]
    assert sorted(shown) == ["out 0", "out 1", "out 2"]


def test_a_result_without_a_call_becomes_a_message(tmp_path: Path) -> None:
    lines = [claude_result(1, "nobody", "text of a result", BASH)]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["unpaired_results"], counts["results"]) == (1, 0)
    with opened(tmp_path) as reader:
        (message,) = messages_in(reader)
    assert message.role == "tool"
    assert b"text of a result" in (message.document or b"")


def test_odd_texts_come_back_byte_for_byte(tmp_path: Path) -> None:
    text = "nul \0, esc \x1b[1m, cr \r\n, ls \u2028, lone \udc80 and \ud800, emoji \U0001f600"
    returned = {"stdout": text, "stderr": "", "isImage": False}
    lines = [
        claude_call(1, "t", "Bash", {"command": text}),
        claude_result(2, "t", text, returned, is_error=False),
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    import_one(tmp_path, path)
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout").decode("utf-8", "surrogatepass") == text
    assert receipt_of(call) == text
    assert_intact(tmp_path)


def test_a_stream_that_is_too_long_for_the_journal_is_an_artifact(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(200_000))
    lines = [
        claude_call(1, "t", "Bash", {"command": "seq"}),
        claude_result(2, "t", "line 0", {**BASH, "stdout": text}, is_error=False),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout").decode() == text
    assert [role for role, _ in call.artifacts] == ["stdout"]
    assert_intact(tmp_path)


def test_no_byte_of_a_secret_is_stored(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = []
    for n, (before, secret, after) in enumerate(ALL.values()):
        text = f"{before}{secret}{after}"
        lines.append(claude_line("user", text, 4 * n))
        lines.append(claude_call(4 * n + 1, f"t{n}", "Bash", {"command": text}))
        returned = {"stdout": "x" * 40_000 + text, "stderr": text, "extra": text}
        lines.append(claude_result(4 * n + 2, f"t{n}", text, returned, is_error=False))
    source = tmp_path / "source"
    source.mkdir()
    import_one(tmp_path, write_lines(source / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        receipts = [call.receipt.text for call in calls_in(reader) if call.receipt]
    expected = [f"{a}[REDACTED:{rule}]{b}" for rule, (a, _, b) in ALL.items()]
    assert sorted(receipts) == sorted(expected)
    files = (path for path in tmp_path.rglob("*") if source not in path.parents)
    stored = b"".join(path.read_bytes() for path in files if path.is_file())
    for _, secret, _ in ALL.values():
        assert secret.encode() not in stored
    assert_intact(tmp_path)


def test_a_secret_of_another_line_or_file_is_replaced_too(tmp_path: Path) -> None:
    secret = ALL["github-token"][1]
    source = tmp_path / "source"
    (source / "a" / "tool-results").mkdir(parents=True)
    (source / "a" / "tool-results" / "b.txt").write_text(f"x {secret} y")
    spilled = "<persisted-output>\nOutput too large (9KB). Full output saved to: /p/b.txt\n"
    lines = [
        claude_call(1, "t1", "Bash", {"command": f"curl -H 'X: {secret}'"}),
        claude_result(2, "t1", "ok", BASH, is_error=False),
        claude_call(3, f"call {secret}", f"tool {secret}", {}),
        claude_result(4, f"call {secret}", "ok", {"x": 1}),
        claude_call(5, "t3", "Bash", {"command": "make"}),
        claude_result(6, "t3", spilled, BASH, is_error=False),
    ]
    import_one(tmp_path, write_lines(source / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        assert len(calls_in(reader)) == 3
    files = (path for path in tmp_path.rglob("*") if source not in path.parents)
    assert secret.encode() not in b"".join(one.read_bytes() for one in files if one.is_file())
    assert_intact(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timestamp", "0001-01-01T00:00:00+14:00"),
        ("timestamp", 5),
        ("toolUseResult", {"durationMs": 10**30}),
    ],
)
def test_impossible_values_of_a_source_are_passed_over(
    tmp_path: Path, name: str, value: object
) -> None:
    lines = [
        {
            **claude_call(1, "t", "x" * 100_000, {}),
            **({name: value} if name == "timestamp" else {}),
        },
        {**claude_result(2, "t", "ok", {"a": 1}), name: value},
        claude_call(3, "u", " ", {}),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    assert_intact(tmp_path, is_complete=False)
    with opened(tmp_path) as reader:
        found = {(call.summary.tool_name[:9], call.summary.state) for call in calls_in(reader)}
    assert found == {("x" * 9, "success"), ("(unnamed)", "started")}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", session_lines(2))
    counts = (
        Importer(tmp_path / "tooltrail.db-spool", None, is_dry_run=True).import_file(path).counts
    )
    assert (counts["new"], counts["calls"]) == (7, 2)
    assert not (tmp_path / "tooltrail.db-spool").exists()


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ("receipt = 'other'", "receipt"),
        ("receipt = NULL", "receipt"),
        ("renderer = 'command'", "renderer"),
        ("canonical = '{}'", "canonical"),
        ("output = '{}'", "output"),
    ],
)
def test_verify_finds_every_change_of_an_imported_call(
    tmp_path: Path, column: str, word: str
) -> None:
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", session_lines(1)))
    assert_intact(tmp_path)
    with open_store(tmp_path / "tooltrail.db") as store:
        alter(store, f"UPDATE surfaces SET {column}")
        assert any(word in one for one in problems_of(store))


@given(
    st.sampled_from([True, False]),
    st.lists(st.sampled_from(["stdout", "content", "structured"]), unique=True, max_size=3),
)
def test_the_documents_are_those_of_the_models(is_failure: bool, roles: list[str]) -> None:
    data = {role: b'{"a":1}' if role == "structured" else b"text\n" for role in roles}
    streams = [StreamFact.of(CountedStream.of(role, one)) for role, one in data.items()]
    records = {role: StreamRecord.from_bytes(role, one) for role, one in data.items()}
    document = (
        failure_document("t", "cancelled", "why\nnot \x1b", streams)
        if is_failure
        else success_document("t", Output(), streams, is_command=False)
    )
    assert read_output(document, default_families().named("generic"), records)
