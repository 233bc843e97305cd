"""Every invocation beside what the ledger committed to, and what was altered behind its back."""

from uuid import UUID

import pytest
from tests.support.altering import alter, database_file
from tests.support.outputs import returned
from tests.support.recording import captured, command_output, fail_tool, run_command, run_tool

from tooltrail.records import CallBlock, Message, ToolCall, UnavailableError
from tooltrail.store import InvocationDetail, Reader, Session, Store, new_id
from tooltrail.store.commitments import RecordCheck, iter_record_checks

BIG = b"".join(b"%08d\n" % n for n in range(50_000))
UNREADABLE = "is damaged: a row holds what was never stored"

OTHER_DOCUMENT = "(SELECT document, digest FROM canonical_results WHERE invocation_key = 1)"
RECEIPT = "(SELECT body_digest FROM receipts)"
ENTRY_AT_99 = "session_key, 99, kind, subject_id, happened_at, payload, previous, digest"


@pytest.fixture
def names(sqlite_store: Store) -> list[str]:
    """Three commands of one session: a short one, one that left things out, a short one."""
    session = sqlite_store.open_session()
    outputs = (b"one\n", BIG, b"three\n")
    return [str(run_command(session, output, b"warning\n").invocation_id) for output in outputs]


def problems(store: Store) -> list[str]:
    return [found.problem for found in iter_record_checks(store.reader)]


def test_what_was_recorded_is_what_the_ledger_commits_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store._reading.listing.PAGE", 2)
    first, second = store.open_session(), store.open_session()
    call = ToolCall(tool_name="odd \0 \ud800 tool", call_id="a\0b \udfff", arguments_raw="not json")
    open_one = second.start(call)
    captured(open_one, "stdout", b"so far")
    names = [
        open_one.id,
        run_command(first, BIG, b"\xff", exit_status=1).invocation_id,
        fail_tool(second, "cancelled").invocation_id,
        run_tool(first, "text", b"\0", tool="lookup").invocation_id,
        second.start(call).finish(returned(call.tool_name, "kept")).invocation_id,
    ]
    assert list(iter_record_checks(store.reader)) == [RecordCheck(str(n), "") for n in names]
    of_first = iter_record_checks(store.reader, session=first.id)
    assert [found.name for found in of_first] == [str(names[1]), str(names[3])]


def asked_for(session: Session) -> list[UUID]:
    """A message with two calls, started in the other order, one of which has ended."""
    message = Message(
        role="assistant",
        blocks=tuple(
            CallBlock(call=ToolCall(tool_name="Bash", call_id=f"call_{n}", position=n))
            for n in range(2)
        ),
    )
    name = session.record_message(message, payload=b"{}")
    calls = [call.model_copy(update={"message_id": name}) for call in message.calls]
    started = [session.start(call) for call in reversed(calls)]
    started[0].finish(returned("Bash", "done"))
    whole = session.record(calls[1], returned("Bash", "done"))
    return [*(one.id for one in started), whole.invocation_id]


def test_which_message_asked_for_a_call_is_what_the_ledger_commits_to(store: Store) -> None:
    names = asked_for(store.open_session())
    assert list(iter_record_checks(store.reader)) == [RecordCheck(str(n), "") for n in names]


def test_calls_of_a_message_that_was_never_here_are_right(store: Store) -> None:
    session = store.open_session()
    call = ToolCall(tool_name="Bash", message_id=new_id(), position=3)
    session.start(call)
    session.record(call, returned("Bash", "done"))
    assert problems(store) == ["", ""]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE call_origins SET position = 7", "position"),
        ("UPDATE call_origins SET message_key = 2", "message"),
        ("DELETE FROM call_origins", "message, position"),
    ],
)
def test_another_message_than_the_one_that_asked_is_named(
    sqlite_store: Store, change: str, told: str
) -> None:
    session = sqlite_store.open_session()
    asked_for(session)
    session.add_message("user", "another")
    alter(sqlite_store, change)
    assert problems(sqlite_store) == [f"not what the ledger commits to: {told}"] * 3


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE invocations SET state = 'error' {key}", "state"),
        (
            "UPDATE invocations SET state = 'started', finished_at = NULL {key}",
            "finished at, state",
        ),
        ("UPDATE invocations SET started_at = '2020-01-01T00:00:00.000000Z' {key}", "started at"),
        ("UPDATE invocations SET tool_name = 'rm', call_id = 'x' {key}", "call id, tool name"),
        ("UPDATE invocations SET seq = 9, family = 'x' {key}", "family, seq"),
        ("UPDATE invocations SET policy_digest = 'x' {key}", "policy digest"),
        (
            "UPDATE invocations SET arguments_digest = (SELECT body_digest FROM receipts) {key}",
            "arguments digest",
        ),
        ("DELETE FROM omissions", "omissions"),
        ("UPDATE omissions SET after_count = after_count - 1", "omissions"),
        ("UPDATE receipts SET renderer_version = 9 {of}", "renderer"),
        (
            "UPDATE receipts SET body_digest = (SELECT arguments_digest FROM invocations) {of}",
            "receipt",
        ),
        (
            f"UPDATE complete_outputs SET (document, digest) = {OTHER_DOCUMENT} {{of}}",
            "complete output",
        ),
        (
            f"UPDATE canonical_results SET (document, digest) = {OTHER_DOCUMENT} {{of}}",
            "canonical result",
        ),
    ],
)
def test_what_was_altered_is_named(
    sqlite_store: Store, names: list[str], statement: str, problem: str
) -> None:
    alter(sqlite_store, statement.format(key="WHERE key = 2", of="WHERE invocation_key = 2"))
    found = list(iter_record_checks(sqlite_store.reader))
    assert found == [
        RecordCheck(names[0], ""),
        RecordCheck(names[1], f"not what the ledger commits to: {problem}"),
        RecordCheck(names[2], ""),
    ]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM complete_outputs {of}", "missing: complete output"),
        ("DELETE FROM canonical_results {of}", "missing: canonical result"),
        ("DELETE FROM receipts {of}", "missing: receipt"),
        (
            "DELETE FROM ledger_entries WHERE n = 3",
            "the ledger has no entry invocation.started of it",
        ),
        (
            "DELETE FROM ledger_entries WHERE n = 4",
            "the ledger has no entry invocation.finished of it",
        ),
        (
            f"INSERT INTO ledger_entries SELECT {ENTRY_AT_99} FROM ledger_entries WHERE n = 4",
            "the ledger has 2 entries invocation.finished of it",
        ),
        (
            "UPDATE ledger_entries SET payload = '[]' WHERE n = 4",
            "entry 4 of its ledger is damaged",
        ),
        (
            "UPDATE ledger_entries SET payload = x'ff' WHERE n = 3",
            "entry 3 of its ledger is damaged",
        ),
        (
            f"UPDATE output_streams SET digest = {RECEIPT} {{of}} AND role = 'stdout'",
            "stream stdout is not one that the complete output names",
        ),
        (
            "UPDATE output_streams SET artifact_path = 'x' {of} AND role = 'stdout'",
            "stream stdout is at the path of another digest",
        ),
    ],
)
def test_what_is_missing_or_unreadable_is_said(
    sqlite_store: Store, names: list[str], statement: str, problem: str
) -> None:
    alter(sqlite_store, statement.format(of="WHERE invocation_key = 2"))
    found = list(iter_record_checks(sqlite_store.reader))
    assert found == [
        RecordCheck(names[0], ""),
        RecordCheck(names[1], problem),
        RecordCheck(names[2], ""),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE invocations SET started_at = 'yesterday' WHERE key = 2",
        "UPDATE complete_outputs SET document = x'ff' WHERE invocation_key = 2",
        "UPDATE omissions SET unit = 'miles'",
        "UPDATE ledger_entries SET happened_at = 'now' WHERE n = 4",
    ],
)
def test_a_row_that_holds_what_was_never_stored_is_named_alone(
    sqlite_store: Store, names: list[str], statement: str
) -> None:
    alter(sqlite_store, statement)
    reason = f"database {database_file(sqlite_store)} {UNREADABLE}"
    assert problems(sqlite_store) == ["", reason, ""]


def test_a_stream_whose_bytes_are_altered_is_damage(sqlite_store: Store, names: list[str]) -> None:
    with sqlite_store.reader.open_stream(
        sqlite_store.reader.invocation(names[0]).streams[0]
    ) as source:
        assert source.read() == b"one\n"
    digest = sqlite_store.reader.invocation(names[0]).streams[0].digest
    alter(sqlite_store, f"UPDATE bodies SET data = x'6f6e650b' WHERE digest = '{digest}'")
    assert problems(sqlite_store) == [f"body {digest} is damaged: it has another digest", "", ""]


def test_an_invocation_that_is_gone_is_named_by_the_ledger(
    sqlite_store: Store, names: list[str]
) -> None:
    other = sqlite_store.open_session()
    kept = str(run_tool(other, "text").invocation_id)
    alter(sqlite_store, "DELETE FROM invocations WHERE key = 2")
    gone = RecordCheck(names[1], "the ledger has entries of it, but it is gone")
    found = list(iter_record_checks(sqlite_store.reader))
    assert found == [*(RecordCheck(name, "") for name in (names[0], names[2], kept)), gone]
    of_other = iter_record_checks(sqlite_store.reader, session=other.id)
    assert list(of_other) == [RecordCheck(kept, "")]


def test_a_row_whose_id_is_none_is_described(sqlite_store: Store, names: list[str]) -> None:
    alter(sqlite_store, "UPDATE invocations SET id = x'07' WHERE key = 2")
    assert list(iter_record_checks(sqlite_store.reader)) == [
        RecordCheck(names[0], ""),
        RecordCheck("row 2 of invocations", "its row has no readable id"),
        RecordCheck(names[2], ""),
        RecordCheck(names[1], "the ledger has entries of it, but it is gone"),
    ]


def test_entries_of_another_session_prove_nothing(sqlite_store: Store, names: list[str]) -> None:
    run_tool(sqlite_store.open_session(), "text")
    alter(sqlite_store, "UPDATE ledger_entries SET session_key = 2, n = 14 WHERE n = 4")
    problem = "the ledger has no entry invocation.finished of it"
    assert problems(sqlite_store) == ["", problem, "", ""]


def test_an_invocation_that_ends_while_it_is_checked_is_right(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="Bash"))
    output = command_output(invocation, b"kept\n")
    read = Reader.invocation

    def end_and_read(reader: Reader, name: str | UUID) -> InvocationDetail:
        invocation.finish(output)
        return read(reader, name)

    monkeypatch.setattr(Reader, "invocation", end_and_read)
    found = list(iter_record_checks(sqlite_store.reader))
    assert found == [RecordCheck(str(invocation.id), "")]
    assert read(sqlite_store.reader, invocation.id).summary.state == "success"


def test_a_store_that_is_away_is_no_damage(sqlite_store: Store, names: list[str]) -> None:
    found = iter_record_checks(sqlite_store.reader)
    assert next(found) == RecordCheck(names[0], "")
    path = database_file(sqlite_store)
    sqlite_store.database.close()
    path.rename(path.with_name("away.db"))
    with pytest.raises(UnavailableError):
        next(found)
