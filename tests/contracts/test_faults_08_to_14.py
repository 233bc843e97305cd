"""Faults that a runtime ran into, eight to fourteen: a test bears the number of its fault."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import JsonValue
from tests.records.support import lossy, surfaces
from tests.support.contract import (
    ENVELOPE,
    LINES,
    canonical_of,
    facts_of,
    printed,
    receipt_of,
    record,
    row_count,
)
from tests.support.evidence import check_evidence
from tests.support.outputs import returned
from tests.support.recording import (
    captured,
    command_output,
    content_of,
    in_memory,
    stream_of,
)

from tooltrail.records import (
    ChildAgentOutput,
    CompleteOutput,
    TokenUsage,
    ToolCall,
    ToolError,
    digest_of,
)
from tooltrail.records.facts import CallStarted
from tooltrail.store import Store, create_store


def test_fault_08_failures_and_refusals_have_the_rows_and_the_shape_of_a_success(
    sqlite_store: Store,
) -> None:
    ends = {
        "success": returned("t", "done"),
        "error": failure("unknown_tool"),
        "denied": failure("permission_denied"),
        "cancelled": failure("cancelled"),
        "interrupted": failure("interrupted"),
    }
    for state, output in ends.items():
        detail = record(sqlite_store, output)
        assert detail.summary.state == state
        assert detail.complete_json is not None
        for document in (canonical_of(detail), json.loads(detail.complete_json)):
            assert sorted(document) == ENVELOPE
            assert document["status"] == ("success" if state == "success" else "error")
            assert (document["result"] is None) is (state != "success")
            assert (document["error"] is None) is (state == "success")
        assert receipt_of(detail)
    assert [row_count(sqlite_store, one) for one in ("invocations", "surfaces")] == [len(ends)] * 2


def failure(kind: str) -> CompleteOutput:
    return CompleteOutput.failure("t", ToolError(kind=kind, message="it did not run"))


CALL_IDS = [
    "../../../escaped",
    "",
    "a/b",
    "a/b",
    ".",
    "/tmp/escaped",
    "x" * 5000,
    "CON",
    "REDACTED",
]


def test_fault_09_a_call_id_names_no_file_and_no_identity(tmp_path: Path) -> None:
    home = tmp_path / "home" / "store"
    with create_store(home / "trail.db") as store:
        session = store.open_session()
        started = [
            session.start(ToolCall(tool_name="Bash", call_id=call_id)) for call_id in CALL_IDS
        ]
        outputs = [
            command_output(invocation, b"%d\n" % n + LINES) for n, invocation in enumerate(started)
        ]
        for invocation, output in zip(started, outputs, strict=True):
            assert invocation.spool.parent == home / "trail.db-spool"
            assert invocation.spool.name == str(invocation.id)
            invocation.finish(output)
        for n, (invocation, call_id) in enumerate(zip(started, CALL_IDS, strict=True)):
            detail = store.reader.invocation(invocation.id)
            assert detail.summary.call_id == call_id
            assert receipt_of(detail).startswith(f"Process exited with code 0\n\nstdout:\n{n}\n")
            stored = content_of(store.reader, stream_of(detail, "stdout"))
            assert stored == b"%d\n" % n + LINES
        check_evidence(store)
    outside = [path for path in tmp_path.rglob("*") if home not in (path, *path.parents)]
    assert outside == [tmp_path / "home"]
    names = {path.name for path in home.rglob("*")}
    assert not names & {"escaped", "b", "CON", "REDACTED"}


@pytest.mark.parametrize(
    ("call_id", "listed"),
    [("a\0b", "a\\0b"), ("\ud800", "\\ud800"), ("\u202e\n", "\u202e\n")],
    ids=["nul", "half-a-pair", "control"],
)
def test_fault_09_a_call_id_that_no_database_could_hold_is_kept_as_data(
    sqlite_store: Store, call_id: str, listed: str
) -> None:
    session = sqlite_store.open_session()
    invocation = session.start(ToolCall(tool_name="t", call_id=call_id))
    invocation.finish(returned("t", "done"))
    assert sqlite_store.reader.invocation(invocation.id).summary.call_id == listed
    (start,) = facts_of(sqlite_store, CallStarted)
    assert start.call_id == call_id
    check_evidence(sqlite_store)


def test_fault_10_token_counts_survive_in_every_surface(sqlite_store: Store) -> None:
    usage: JsonValue = {"total_tokens": 12_345, "max_tokens": 99, "token_type": "bearer"}
    detail = record(sqlite_store, returned("t", "tokens: 12345", structured=usage))
    assert canonical_of(detail)["result"]["structured"] == usage
    assert json.loads(content_of(sqlite_store.reader, stream_of(detail, "structured"))) == usage
    for said in ('"total_tokens": 12345', '"max_tokens": 99', '"bearer"', "tokens: 12345"):
        assert said in receipt_of(detail)


def test_fault_10_the_tokens_of_a_child_agent_survive(sqlite_store: Store) -> None:
    child = ChildAgentOutput(
        agent_id="a1",
        status="completed",
        token_usage=TokenUsage(input_tokens=12_345, output_tokens=67),
    )
    detail = record(sqlite_store, CompleteOutput.success("Task", child))
    assert canonical_of(detail)["result"]["token_usage"] == {
        "input_tokens": 12_345,
        "output_tokens": 67,
    }
    assert "Tokens: 12,345 in, 67 out" in receipt_of(detail)


def test_fault_11_the_digest_of_arguments_sees_every_nested_key(sqlite_store: Store) -> None:
    base: dict[str, JsonValue] = {"a": {"b": [{"c": 1}, None]}, "d": 2}
    same: dict[str, JsonValue] = {"d": 2, "a": {"b": [{"c": 1}, None]}}
    others: Sequence[JsonValue] = [
        {"a": {"b": [{"c": 2}, None]}, "d": 2},
        {"a": {"b": [{"x": 1}, None]}, "d": 2},
        {"a": {"b": [{"c": 1}]}, "d": 2},
        {"a": {"b": [{"c": "1"}, None]}, "d": 2},
        {"a": {"b": [{"c": 1}, None], "e": None}, "d": 2},
        {"a": {}, "d": 2},
    ]
    session = sqlite_store.open_session()
    for arguments in (base, same, *others):
        session.start(ToolCall.of("t", arguments))
    digests = [fact.arguments for fact in facts_of(sqlite_store, CallStarted)]
    assert digests[0] == digests[1]
    assert len(set(map(str, digests))) == 1 + len(others)
    assert digests[0] == digest_of(b'{"a":{"b":[{"c":1},null]},"d":2}')


@pytest.mark.parametrize("kind", [None, "tool_execution_failed"])
def test_fault_11_the_state_is_started_until_the_tool_has_ended(
    sqlite_store: Store, kind: str | None
) -> None:
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="t"))
    assert state_of(sqlite_store, invocation.id) == "started"
    captured(invocation, "stdout", b"the tool is running")
    assert state_of(sqlite_store, invocation.id) == "started"
    invocation.finish(returned("t", "done") if kind is None else failure(kind))
    assert state_of(sqlite_store, invocation.id) == ("success" if kind is None else "error")


def state_of(store: Store, invocation_id: UUID) -> str:
    return store.reader.invocation(invocation_id).summary.state


def test_fault_12_the_end_of_a_long_log_is_shown(sqlite_store: Store) -> None:
    log = b"the first line\n" + LINES + b"FAILED tests/test_a.py::test_b - assert 1 == 2\n"
    detail = record(sqlite_store, printed(in_memory("stdout", log)))
    assert "stdout:\nthe first line\n" in receipt_of(detail)
    assert "\nFAILED tests/test_a.py::test_b - assert 1 == 2\n" in receipt_of(detail)


def test_fault_12_one_huge_line_is_bounded_and_both_of_its_ends_are_shown(
    sqlite_store: Store,
) -> None:
    line = b"BEGIN" + b"x" * 3_000_000 + b"END"
    detail = record(sqlite_store, printed(in_memory("stdout", line)))
    preview = canonical_of(detail)["result"]["stdout_preview"]
    assert 31_000 < len(preview) <= 32_000
    assert (preview.startswith("BEGINxxx"), preview.endswith("xxxEND")) == (True, True)
    assert len(receipt_of(detail)) <= 34_000


def test_fault_13_arguments_are_encoded_once_or_not_at_all(sqlite_store: Store) -> None:
    nested: JsonValue = {"cmd": 'echo "hi"', "env": {"A": "1"}}
    session = sqlite_store.open_session()
    raw = '{ "cmd": "echo \\"hi\\"" }'
    as_value = session.start(ToolCall.of("t", nested))
    as_text = session.start(ToolCall(tool_name="t", arguments_raw=raw))
    assert json.loads(sqlite_store.reader.invocation(as_value.id).arguments) == nested
    assert sqlite_store.reader.invocation(as_text.id).arguments == raw.encode()


def test_fault_13_json_that_a_command_prints_is_laid_out_and_never_escaped(
    sqlite_store: Store,
) -> None:
    text = b'{"name":"a \\"b\\"","rows":[1,2]}'
    detail = record(sqlite_store, printed(in_memory("stdout", text)))
    assert receipt_of(detail) == (
        "Process exited with code 0\n\nstdout:\n"
        '{\n  "name": "a \\"b\\"",\n  "rows": [\n    1,\n    2\n  ]\n}\n'
    )
    assert canonical_of(detail)["result"]["stdout_preview"] == text.decode()


def test_fault_13_a_structured_value_is_a_value_in_the_result_and_no_string(
    sqlite_store: Store,
) -> None:
    value: JsonValue = {"rows": [{"id": 1}], "text": '{"inner": true}'}
    detail = record(sqlite_store, returned("t", structured=value))
    assert canonical_of(detail)["result"]["structured"] == value
    assert json.loads(receipt_of(detail)) == value
    assert json.loads(content_of(sqlite_store.reader, stream_of(detail, "structured"))) == value


ROWS = json.dumps({"rows": [*range(20_000)]})
INCOMPLETE = "[the JSON above is incomplete]\n"


@pytest.mark.parametrize(
    ("output", "family"),
    [
        (printed(in_memory("stdout", ROWS.encode())), "command"),
        (returned("t", ROWS), "generic"),
        (printed(lossy(b'{"rows":[1,2', 99)), "command"),
    ],
    ids=["command", "text", "lost-at-capture"],
)
def test_fault_14_json_that_was_cut_is_said_to_be_incomplete(
    output: CompleteOutput, family: str
) -> None:
    _, receipt, _ = surfaces(output, family)
    assert INCOMPLETE in receipt.text
    before, _, _ = receipt.text.partition(INCOMPLETE)
    assert "[output " in before


def test_fault_14_a_value_that_was_shortened_is_said_to_be_shortened() -> None:
    _, receipt, _ = surfaces(returned("t", structured={"rows": [*range(20_000)]}), "generic")
    assert " items omitted ...]" in receipt.text
    assert "\n[the JSON above is shortened; full output: sha256/" in receipt.text


def test_fault_14_json_that_is_whole_is_not_said_to_be_incomplete() -> None:
    _, receipt, _ = surfaces(returned("t", '{"rows":[1,2]}'), "generic")
    assert "incomplete" not in receipt.text


def test_fault_14_details_of_an_error_that_were_cut_are_said_to_be_incomplete() -> None:
    error = ToolError(kind="broken", message="no", details={"rows": [*range(9000)]})
    projection, receipt, _ = surfaces(CompleteOutput.failure("t", error), "generic")
    assert "\nDetails (longer than 1000 characters; incomplete):\n" in receipt.text
    assert projection.canonical.error is not None
    details = projection.canonical.error.details
    assert isinstance(details, dict)
    assert (details["omitted"], details["char_count"]) == (True, len(str([*range(9000)])) - 8990)
