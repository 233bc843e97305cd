"""The recording API: what `Session` and `Invocation` promise, read back from the database."""

import asyncio
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from tests.support.agents.recorded import beginning, ending, version
from tests.support.ended import BASH, made, shell_call
from tests.support.evidence import check_evidence
from tests.support.killing import end_of, fork
from tests.support.recording import ingested_rows
from tests.support.waiting import until

from tooltrail.agents._leg_facts import leg_entry, outcome_entry
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.environment import environment_json, git_commit
from tooltrail.journal.invocation import Finished
from tooltrail.journal.log import Acknowledge
from tooltrail.journal.session import Session
from tooltrail.records import (
    CompleteOutput,
    GenericOutput,
    InvalidRecordError,
    InvocationFinishedError,
    Message,
    NotFoundError,
    SessionClosedError,
    StreamRecord,
    ToolCall,
    ToolDefinition,
    ToolError,
    UnavailableError,
    ainvoke,
    invoke,
)
from tooltrail.records.canonical_json import decode
from tooltrail.records.families.command import CommandOutput
from tooltrail.records.families.web import WebSearchHit, WebSearchOutput
from tooltrail.records.policy import ToolPolicy
from tooltrail.store import (
    InvocationFilter,
    Store,
    open_store,
    record_response,
    tool_results_message,
)

DAY = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)


def test_a_call_is_on_disk_before_its_tool_runs(store: Store) -> None:
    with Session.open(store.recorder, title="build") as session:
        session.start(shell_call("make"))
        assert ingested_rows(store, "SELECT state, tool_name FROM invocations") == [
            ("started", "Bash")
        ]


def test_a_finished_call_has_its_three_surfaces(store: Store) -> None:
    output = made(b"one\ntwo\n", exit_status=3)
    with store.open_session() as session:
        finished = session.start(shell_call("make")).finish(output)
    detail = store.reader.invocation(finished.invocation_id)
    assert detail.arguments == b'{"command":"make"}'
    assert detail.complete_json == output.to_json().decode()
    assert detail.canonical_json == finished.canonical.to_json().decode()
    assert detail.receipt is not None
    assert detail.receipt.text == finished.receipt.text
    assert "one\ntwo" in finished.receipt.text
    summary = detail.summary
    assert (summary.state, summary.exit_status, summary.output_size) == ("success", 3, 8)


@pytest.mark.parametrize(("lines", "is_spooled"), [(10_000, False), (100_000, True)])
def test_a_long_stream_in_memory_becomes_an_artifact_and_no_body(
    store: Store, tmp_path: Path, lines: int, is_spooled: bool
) -> None:
    text = b"a line of output\n" * lines
    with Session.open(store.recorder) as session:
        invocation = session.start(shell_call())
        finished = invocation.finish(made(text))
        # The ingester may have published the file already.
        assert is_spooled or not invocation.spool.exists()
    rows = ingested_rows(store, "SELECT size, line_count FROM artifacts")
    assert rows == [(len(text), lines)]
    assert not ingested_rows(store, f"SELECT 1 FROM bodies WHERE size = {len(text)}")
    [path] = (tmp_path / "artifacts").rglob("*.zst")
    assert path.name.removesuffix(".zst") in finished.receipt.text


def test_a_captured_stream_becomes_an_artifact_and_leaves_the_spool(
    store: Store, tmp_path: Path
) -> None:
    with Session.open(store.recorder) as session:
        invocation = session.start(shell_call())
        capture = invocation.capture("stdout")
        for _ in range(1000):
            capture.write(b"0123456789" * 10 + b"\n")
        stdout = invocation.captured(capture.close())
        result = CommandOutput(
            stdout=stdout, stderr=StreamRecord.from_bytes("stderr", b""), exit_status=0
        )
        invocation.finish(CompleteOutput.success("Bash", result))
    assert ingested_rows(store, "SELECT size FROM artifacts") == [(101_000,)]
    assert len(list((tmp_path / "artifacts").rglob("*.zst"))) == 1
    # The ingester commits first, and removes the folder then.
    until(lambda: not invocation.spool.exists())


@pytest.mark.parametrize("count", [50, 5_000])
def test_what_a_result_leaves_out_becomes_an_artifact(store: Store, count: int) -> None:
    hits = tuple(
        WebSearchHit(title=f"page {n}", url=f"https://example.org/{n}") for n in range(count)
    )
    found = WebSearchOutput(query="x", provider="y", results=hits, fetched_at=DAY)
    output = CompleteOutput.success("WebSearch", found)
    session = Session.open(store.recorder)
    finished = session.start(ToolCall.of("WebSearch", {}), family="web_search").finish(output)
    [(role, size)] = ingested_rows(
        store,
        "SELECT i.role, a.size FROM invocation_artifacts AS i JOIN artifacts AS a"
        " ON a.digest = i.digest",
    )
    assert role == "hidden"
    assert finished.canonical.result is not None
    assert size > (16 * 1024 if count > 1000 else 0)


def test_a_role_takes_one_capture(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    invocation.capture("stdout")
    with pytest.raises(InvalidRecordError, match="has a capture already"):
        invocation.capture("stdout")


def test_a_call_is_finished_once(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    invocation.finish(made())
    with pytest.raises(InvocationFinishedError):
        invocation.finish(made())


def test_an_output_of_another_tool_is_refused(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    other = CompleteOutput.failure("Read", ToolError(kind="internal", message="no"))
    with pytest.raises(InvalidRecordError, match="not of 'Read'"):
        invocation.finish(other)


@pytest.mark.parametrize("name", ["Read", "disk___Read"])
def test_the_tools_of_two_servers_are_recorded_apart(store: Store, name: str) -> None:
    policy = store.recorder.policy.for_tool("disk___Read", receipt_chars=3_000, preview_chars=100)
    output = CompleteOutput.success("Read", GenericOutput.of("word " * 2_000))
    receipts = dict[str | None, set[str]]()
    with store.open_session() as session:
        session.offer_tools([ToolDefinition(name="Read", namespace=one) for one in ("disk", "net")])
        for server in ("disk", "net", None):
            call = ToolCall(tool_name="Read", namespace=server)
            session.start(call)
            started = session.start(call, policy=policy)
            named = name if server == "disk" else "Read"
            finished = [
                started.finish(output.model_copy(update={"tool_name": named})),
                session.record(EndedCall(call, output, policy=policy)),
                invoke(lambda _: output, call, session.start(call, policy=policy).finish),
            ]
            assert {one.canonical.tool_name for one in finished} == {call.full_name}
            receipts[server] = {one.receipt.text for one in finished}
    for full, family in (
        ("disk___Read", "generic"),
        ("net___Read", "generic"),
        ("Read", "file_read"),
    ):
        page = store.reader.invocations(InvocationFilter(tools=(full,)))
        assert [(one.tool_name, one.family) for one in page.items] == [(full, family)] * 4
    assert [(one.name, one.family) for one in store.reader.tools(latest=True)] == [
        ("disk___Read", "generic"),
        ("net___Read", "generic"),
    ]
    assert len(receipts["disk"]) == 1
    assert receipts["disk"] != receipts["net"] == receipts[None]


def test_a_policy_gives_the_tool_of_a_server_to_a_family(store: Store) -> None:
    tools = {"disk___find": ToolPolicy(family="web_search")}
    policy = store.recorder.policy.model_copy(update={"tools": tools})
    with store.open_session() as session:
        for server, family in (("disk", "web_search"), ("net", "generic")):
            call = ToolCall(tool_name="find", namespace=server)
            assert session.start(call, policy=policy).family.name == family


def test_an_interrupted_call_keeps_what_it_printed(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    invocation.interrupt("stopped by hand", [StreamRecord.from_bytes("stdout", b"half")])
    assert ingested_rows(store, "SELECT state, error_kind FROM invocations") == [
        ("interrupted", "interrupted")
    ]
    assert ingested_rows(store, "SELECT role, size FROM streams") == [("stdout", 4)]


@pytest.mark.parametrize("end", ["raises", "times out", "is interrupted"])
def test_a_failure_keeps_the_captured_streams_that_it_does_not_name(store: Store, end: str) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    data = os.urandom(2_000_000)

    def raising(_: object) -> object:
        with invocation.capture("stdout") as stdout:
            stdout.write(data)
            raise OSError("the pipe broke")

    async def waiting(_: object) -> object:
        with invocation.capture("stdout") as stdout:
            stdout.write(data)
            await asyncio.sleep(60)
            return None

    if end == "raises":
        finished = invoke(raising, invocation.call, invocation.finish)
    elif end == "times out":
        made = ainvoke(waiting, invocation.call, invocation.finish, timeout_ms=50)
        finished = asyncio.run(made)
    else:
        invocation.capture("stdout").write(data)
        invocation.capture("stderr")  # without a byte, as in a program that is killed
        message = StreamRecord.from_bytes("note", b"by hand")
        finished = invocation.interrupt("the user left", [message])
        assert "note" in finished.receipt.text
    assert "full output: sha256/" in finished.receipt.text
    rows = ingested_rows(store, "SELECT role, size FROM streams WHERE role <> 'note'")
    assert rows == [("stdout", len(data))]
    (stream,) = (
        one
        for one in store.reader.invocation(finished.invocation_id).streams
        if one.role == "stdout"
    )
    with store.reader.open_stream(stream) as source:
        assert source.read() == data
    check_evidence(store)


@pytest.mark.parametrize("size", [9, 2_000_000])
def test_a_success_keeps_the_captured_streams_that_it_does_not_name(
    store: Store, size: int
) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    data = os.urandom(size)
    invocation.capture("stderr")

    def forgetful(_: object) -> str:
        invocation.capture("stdout").write(data)
        return "done"

    finished = invoke(forgetful, invocation.call, invocation.finish)
    assert (finished.state, finished.receipt.text) == ("success", "done\n")
    detail = store.reader.invocation(finished.invocation_id)
    assert detail.receipt is not None
    assert detail.receipt.text == "done\n"
    stream = detail.streams[-1]
    with store.reader.open_stream(stream) as source:
        assert (stream.role, source.read()) == ("stdout", data)
    until(lambda: not invocation.spool.exists())
    check_evidence(store)


@pytest.mark.parametrize("size", [100, 3_000_000])
@pytest.mark.parametrize("is_interrupted", [True, False])
def test_other_content_for_a_captured_role_is_recorded_beside_it(
    store: Store, size: int, *, is_interrupted: bool
) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    printed, other = os.urandom(size), os.urandom(3_000_000)
    invocation.capture("stdout").write(printed)
    if is_interrupted:
        stdout = StreamRecord.from_bytes("stdout", other)
        finished = invocation.interrupt("the user left", [stdout])
    else:
        finished = invoke(lambda _: made(other), invocation.call, invocation.finish)
    read = dict[str, bytes]()
    for stream in store.reader.invocation(finished.invocation_id).streams:
        if stream.size:
            with store.reader.open_stream(stream) as source:
                read[stream.role] = source.read()
    assert read == {"stdout": other, "stdout.captured": printed}
    check_evidence(store)


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_the_bytes_of_a_captured_stream_may_come_from_memory(store: Store, size: int) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    printed = os.urandom(size)
    invocation.capture("stdout").write(printed)
    invocation.finish(made(printed))
    assert ingested_rows(store, "SELECT size FROM streams WHERE size > 0") == [(size,)]


def test_a_captured_stream_that_the_output_names_by_another_role_is_recorded_once(
    store: Store,
) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    for role in ("stdout", "stdout.captured", "stderr"):
        invocation.capture(role).write(b"1" if role == "stdout" else b"2")
    invocation.interrupt("the user left", [StreamRecord.from_bytes("output", b"1")])
    rows = ingested_rows(store, "SELECT role FROM streams ORDER BY role")
    assert rows == [("output",), ("stderr",), ("stdout.captured",)]


def test_a_role_for_a_captured_stream_is_free_and_short_enough(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    long = "x" * 64
    for role in ("stdout", "stdout.captured", long):
        invocation.capture(role).write(role.encode())
    others = [StreamRecord.from_bytes(role, b"other") for role in ("stdout", long)]
    invocation.interrupt("the user left", others)
    rows = ingested_rows(store, "SELECT role FROM streams WHERE size <> 5 ORDER BY role")
    names = ["stdout.captured", "stdout.captured1", f"{'x' * 44}.captured"]
    assert rows == [(name,) for name in names]


@pytest.mark.parametrize("size", [1, 3_000_000])
def test_a_discarded_capture_is_not_recorded(store: Store, size: int) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    capture = invocation.capture("log")
    capture.write(os.urandom(size))
    capture.discard()
    assert invocation.finish(made(b"out")).state == "success"
    assert ingested_rows(store, "SELECT role FROM streams WHERE size > 0") == [("stdout",)]


def test_a_long_stream_in_memory_can_be_recorded_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    output = made(os.urandom(3_000_000))

    def refuse(_: object) -> Acknowledge:
        raise UnavailableError("the disk of the journal is full")

    with monkeypatch.context() as patched:
        patched.setattr(store.recorder, "append", refuse)
        with pytest.raises(UnavailableError, match="disk of the journal"):
            invocation.finish(output)
    assert invocation.finish(output).state == "success"
    assert ingested_rows(store, "SELECT size FROM artifacts") == [(3_000_000,)]


def test_a_forked_child_cannot_end_a_call_with_an_open_capture_of_its_parent(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    invocation.capture("stdout").write(b"printed")

    def end_inherited() -> None:
        with pytest.raises(InvalidRecordError, match=f"belongs to process {os.getppid()}"):
            invocation.interrupt("the user left")

    assert end_of(fork(end_inherited)) == 0
    invocation.interrupt("the user left")
    assert ingested_rows(store, "SELECT role, size FROM streams") == [("stdout", 7)]


def test_a_finished_call_has_no_further_capture(store: Store) -> None:
    invocation = Session.open(store.recorder).start(shell_call())
    open_at_end = invocation.capture("stdout")
    open_at_end.write(b"printed")
    invocation.interrupt("the user left")
    with pytest.raises(InvocationFinishedError, match="is finished already"):
        invocation.capture("stderr")
    with pytest.raises(InvalidRecordError, match="is closed"):
        open_at_end.write(b"too late")
    assert ingested_rows(store, "SELECT role, size FROM streams") == [("stdout", 7)]


def test_a_receipt_that_the_model_saw_is_kept_as_it_was(store: Store) -> None:
    with Session.open(store.recorder) as session:
        session.record(EndedCall(shell_call(), made(), seen="what the model saw"))
    assert ingested_rows(store, "SELECT receipt, renderer, renderer_version FROM surfaces") == [
        ("what the model saw", "seen", 0)
    ]


def test_given_times_are_kept_to_the_microsecond(store: Store) -> None:
    end = DAY + timedelta(milliseconds=1500)
    ended = EndedCall(shell_call(), made(), started_at=DAY, finished_at=end)
    Session.open(store.recorder).record(ended)
    [(started, finished, duration)] = ingested_rows(
        store, "SELECT started_at, finished_at, duration_ms FROM invocations"
    )
    assert started == (DAY - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert (finished - started, duration) == (1_500_000, 1500)


def test_importing_again_changes_nothing(store: Store) -> None:
    for _ in range(2):
        session = Session.open(store.recorder, idempotency_key="log-7", at=DAY)
        session.message(Message.of("user", "go"), at=DAY, idempotency_key="log-7/0")
        calls = [
            EndedCall(shell_call(str(n)), made(), idempotency_key=f"log-7/{n}") for n in range(1, 4)
        ]
        assert len(list(session.record_many(calls))) == 3
    assert ingested_rows(store, "SELECT count(*) FROM invocations") == [(3,)]
    assert ingested_rows(store, "SELECT count(*) FROM messages") == [(1,)]
    assert ingested_rows(store, "SELECT count(*) FROM sessions") == [(1,)]
    assert ingested_rows(store, "SELECT count(*) FROM rejected_facts") == [(0,)]


@pytest.mark.parametrize("key", ["", "k" * 1001])
def test_a_key_must_have_a_length(store: Store, key: str) -> None:
    session = Session.open(store.recorder)
    with pytest.raises(InvalidRecordError, match="1 to 1,000 characters"):
        session.record(EndedCall(shell_call(), made(), idempotency_key=key))


def test_processes_join_a_session_by_its_name(store: Store) -> None:
    joined = Session.join(store.recorder, "nightly-build")
    joined.start(shell_call("first")).finish(made())
    opened = Session.open(store.recorder, name="nightly-build", title="Nightly")
    assert opened.id == joined.id
    assert ingested_rows(store, "SELECT name, title FROM sessions") == [
        ("nightly-build", "Nightly")
    ]
    assert ingested_rows(store, "SELECT count(*) FROM invocations") == [(1,)]


def test_a_session_takes_a_name_or_a_key(store: Store) -> None:
    with pytest.raises(InvalidRecordError, match="not both"):
        Session.open(store.recorder, name="a", idempotency_key="b")


def test_a_closed_session_takes_no_more_here_and_marks_what_comes_from_elsewhere(
    store: Store,
) -> None:
    session = Session.open(store.recorder)
    session.close("the run is over")
    with pytest.raises(SessionClosedError):
        session.start(shell_call())
    Session.join(store.recorder, session.id).start(shell_call()).finish(made())
    assert ingested_rows(store, "SELECT is_late FROM invocations") == [(1,)]
    assert ingested_rows(store, "SELECT close_reason FROM sessions") == [("the run is over",)]


def test_an_unknown_family_is_refused_before_anything_is_recorded(store: Store) -> None:
    session = Session.open(store.recorder)
    with pytest.raises(NotFoundError):
        session.start(shell_call(), family="no such family")
    assert ingested_rows(store, "SELECT count(*) FROM invocations") == [(0,)]


ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]}

WRONG: list[tuple[str, str, Callable[[Session, Any], object]]] = [
    ("call", "ToolCall", lambda session, wrong: session.start(wrong)),
    ("policy", "Policy", lambda session, wrong: session.start(shell_call(), policy=wrong)),
    ("family", "str", lambda session, wrong: session.start(BASH, family=wrong)),
    ("reason", "str", lambda session, wrong: session.start(BASH).interrupt(wrong)),
    ("partial_output", "Sequence", lambda session, wrong: session.start(BASH).interrupt("", wrong)),
    ("a stream", "StreamRecord", lambda session, wrong: session.start(BASH).interrupt("", [wrong])),
    ("output", "CompleteOutput", lambda session, wrong: session.start(shell_call()).finish(wrong)),
    ("seen", "str", lambda session, wrong: session.start(shell_call()).finish(made(), seen=wrong)),
    ("role", "str", lambda session, wrong: session.start(shell_call()).capture(wrong)),
    ("stream", "CapturedStream", lambda session, wrong: session.start(BASH).captured(wrong)),
    ("a call", "EndedCall", lambda session, wrong: session.record(wrong)),
    ("calls", "Iterable", lambda session, wrong: list(session.record_many(wrong))),
    ("call", "ToolCall", lambda _, wrong: EndedCall(wrong, made())),
    ("output", "CompleteOutput", lambda _, wrong: EndedCall(BASH, wrong)),
    ("policy", "Policy", lambda _, wrong: EndedCall(BASH, made(), policy=wrong)),
    ("started_at", "datetime", lambda _, wrong: EndedCall(BASH, made(), started_at=wrong)),
    ("finished_at", "datetime", lambda _, wrong: EndedCall(BASH, made(), finished_at=wrong)),
    ("seen", "str", lambda session, wrong: session.record(EndedCall(BASH, made(), seen=wrong))),
    (
        "a key or name",
        "str",
        lambda session, wrong: session.record(EndedCall(BASH, made(), idempotency_key=wrong)),
    ),
    ("message", "Message", lambda session, wrong: session.message(wrong)),
    ("messages", "Iterable", lambda session, wrong: session.messages(wrong)),
    (
        "payload",
        "bytes",
        lambda session, wrong: session.message(Message.of("user", "hi"), payload=wrong),
    ),
    ("tools", "Iterable", lambda session, wrong: session.offer_tools(wrong)),
    ("a tool", "ToolDefinition", lambda session, wrong: session.offer_tools([wrong])),
    ("a key or name", "str", lambda session, wrong: Session.join(session.recorder, wrong)),
    (
        "a key or name",
        "str",
        lambda session, wrong: Session.open(session.recorder, idempotency_key=wrong),
    ),
    (
        "environment",
        "Mapping",
        lambda session, wrong: Session.open(session.recorder, environment=wrong),
    ),
    (
        "provider",
        "str",
        lambda session, wrong: record_response(session, "openai", ANSWER, provider=wrong),
    ),
    ("finished", "Iterable", lambda _, wrong: tool_results_message("openai", wrong)),
    ("a finished call", "Finished", lambda _, wrong: tool_results_message("openai", [wrong])),
    ("call", "ToolCall", lambda _, wrong: invoke(str, wrong, str)),
    ("call", "ToolCall", lambda _, wrong: asyncio.run(ainvoke(str, wrong, str))),
    ("result", "FamilyOutput", lambda _, wrong: CompleteOutput.success("Bash", wrong)),
]


@pytest.mark.parametrize(("name", "kind", "use"), WRONG)
def test_an_argument_of_a_wrong_type_is_an_invalid_record_that_names_it(
    store: Store, name: str, kind: str, use: Callable[[Session, Any], object]
) -> None:
    session = Session.open(store.recorder)
    with pytest.raises(InvalidRecordError, match=f"^{name} must be of type {kind}, not int$"):
        use(session, 5)
    session.close()  # the session still takes records


def test_a_wrong_type_of_a_list_or_of_a_store_is_an_invalid_record_too(
    store: Store, tmp_path: Path
) -> None:
    session, wrong = Session.open(store.recorder), cast("Any", "hi")
    with pytest.raises(InvalidRecordError, match="message must be of type Message, not str"):
        session.messages(wrong)
    with pytest.raises(InvalidRecordError, match="policy must be of type Policy, not str"):
        open_store(tmp_path / "other.db", policy=wrong).open_session()
    with pytest.raises(InvalidRecordError, match="free_bytes must be of type int, not str"):
        open_store(tmp_path / "other.db", free_bytes=wrong).open_session()


@pytest.mark.parametrize("wrong", [0, "", "2026-11-01"])
def test_a_time_of_a_wrong_type_is_refused(store: Store, wrong: Any) -> None:
    with store.open_session() as session:
        with pytest.raises(InvalidRecordError, match="at cannot be recorded: a time expected"):
            session.message(Message.of("user", "hi"), at=wrong)
        with pytest.raises(InvalidRecordError, match="at cannot be recorded: a time expected"):
            store.open_session(at=wrong)


def test_an_unknown_option_of_a_session_is_named(store: Store) -> None:
    with pytest.raises(TypeError, match="a session has no option titel"):
        store.open_session(titel="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_each_call_says_where_it_ran(store: Store, tmp_path: Path) -> None:
    session = Session.open(store.recorder)
    session.start(shell_call()).finish(made())
    [(environment,)] = ingested_rows(store, "SELECT environment FROM invocations")
    [(digest,)] = ingested_rows(
        store, f"SELECT digest FROM bodies WHERE digest = x'{environment.hex()}'"
    )
    assert digest == environment
    known = decode(environment_json())
    assert isinstance(known, dict)
    assert known["pid"] == os.getpid()
    assert known["cwd"] == str(Path.cwd())


def test_the_commit_of_a_repository_is_found_without_git(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text("a" * 40 + "\n")
    inside = tmp_path / "src"
    inside.mkdir()
    assert git_commit(inside) == "a" * 40
    (git / "refs" / "heads" / "main").unlink()
    (git / "packed-refs").write_text(f"# pack-refs\n{'b' * 40} refs/heads/main\n")
    assert git_commit(inside) == "b" * 40
    (git / "HEAD").write_text("c" * 40 + "\n")
    assert git_commit(inside) == "c" * 40


def is_at(commit: str) -> bool:
    return f'"git_commit":"{commit}"'.encode() in environment_json()


def test_a_commit_between_two_calls_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = tmp_path / ".git" / "HEAD"
    head.parent.mkdir()
    monkeypatch.chdir(tmp_path)
    for commit in ("a" * 40, "b" * 40):
        head.write_text(commit)
        until(partial(is_at, commit))


def test_threads_share_a_session(store: Store) -> None:
    session = Session.open(store.recorder)

    def work() -> None:
        for _ in range(10):
            session.start(shell_call()).finish(made())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ingested_rows(
        store, "SELECT count(*), count(DISTINCT seq), max(seq) FROM invocations"
    ) == [(80, 80, 80)]


def test_tasks_record_what_threads_record(store: Store) -> None:
    session = Session.open(store.recorder)

    async def work(n: int) -> UUID:
        invocation = await session.astart(shell_call(str(n)))
        finished = await invocation.afinish(made(b"%d\n" % n))
        await session.amessage(Message.of("assistant", str(n)))
        await session.arecord(EndedCall(shell_call("ended"), made()))
        return finished.invocation_id

    async def run() -> list[UUID]:
        return await asyncio.gather(*(work(n) for n in range(20)))

    ids = asyncio.run(run())
    assert len(set(ids)) == 20
    assert ingested_rows(store, "SELECT count(*) FROM invocations WHERE state = 'success'") == [
        (40,)
    ]
    assert ingested_rows(store, "SELECT count(*) FROM messages") == [(20,)]


def test_messages_may_come_from_a_generator(store: Store) -> None:
    session = Session.open(store.recorder)
    ids = session.messages(Message.of("user", text) for text in ("one", "two"))
    more = asyncio.run(session.amessages(Message.of("user", text) for text in ("three",)))
    rows = ingested_rows(store, "SELECT text FROM messages ORDER BY key")
    assert (len(ids), len(more), len(rows)) == (2, 1, 3)


def test_every_kind_of_fact_can_be_recorded_from_a_task(store: Store) -> None:
    agent = version()

    async def run() -> UUID:
        async with await Session.aopen(store.recorder, title="agent") as session:
            await session.aappend([leg_entry(session.id, beginning(session), agent)])
            await session.aoffer_tools([ToolDefinition(name="read")])
            await session.amessages([Message.of("system", "be brief"), Message.of("user", "go")])
            assert await session.amessages([]) == []
            calls = [EndedCall(shell_call(str(n)), made()) for n in range(3)]
            assert [one.call async for one in session.arecord_many(calls)] == [
                one.call for one in calls
            ]
            await session.aappend([outcome_entry(session.id, ending())])
        with pytest.raises(SessionClosedError):
            await session.amessage(Message.of("user", "late"))
        joined = Session.join(store.recorder, session.id)
        async with joined:
            await joined.amessage(Message.of("user", "from elsewhere"))
        await joined.aclose("twice is closed")
        return session.id

    session_id = asyncio.run(run())
    assert ingested_rows(store, "SELECT id, title FROM sessions") == [(session_id.bytes, "agent")]
    assert ingested_rows(store, "SELECT role FROM messages ORDER BY seq") == [
        ("agent_leg",),
        ("tools",),
        ("system",),
        ("user",),
        ("agent_outcome",),
        ("user",),
    ]
    assert ingested_rows(store, "SELECT count(*) FROM invocations WHERE state = 'success'") == [
        (3,)
    ]
    assert ingested_rows(store, "SELECT close_reason FROM sessions") == [(None,)]


def test_a_task_interrupts_a_call(store: Store) -> None:
    async def run() -> Finished:
        async with await store.aopen_session(title="agent") as session:
            invocation = await session.astart(shell_call())
            stream = StreamRecord.from_bytes("stdout", b"so far")
            finished = await invocation.ainterrupt("the user left", [stream])
            with pytest.raises(InvocationFinishedError):
                await invocation.ainterrupt("again")
            return finished

    finished = asyncio.run(run())
    assert finished.state == "interrupted"
    assert store.reader.invocation(finished.invocation_id).summary.state == "interrupted"


def test_a_call_whose_finish_is_cancelled_has_one_end(store: Store) -> None:
    session = Session.open(store.recorder)
    invocation = session.start(shell_call())

    async def run() -> None:
        task = asyncio.create_task(invocation.afinish(made()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(InvocationFinishedError):  # as a runtime does in its `except`
            await invocation.ainterrupt("cancelled")
        await session.amessage(Message.of("user", "go on"))  # appended behind the end

    asyncio.run(run())
    assert store.reader.invocation(invocation.id).summary.state == "success"
    assert ingested_rows(store, "SELECT count(*) FROM rejected_facts") == [(0,)]


def test_a_call_may_be_finished_again_if_its_end_was_refused(store: Store) -> None:
    session = Session.open(store.recorder)
    invocation = session.start(shell_call())
    other = CompleteOutput.failure("Read", ToolError(kind="internal", message="no"))
    with pytest.raises(InvalidRecordError, match="not of 'Read'"):
        asyncio.run(invocation.afinish(other))

    async def run() -> None:
        task = asyncio.create_task(invocation.afinish(other))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.amessage(Message.of("user", "go on"))  # behind the refused end

    asyncio.run(run())
    assert invocation.finish(made()).state == "success"


def test_what_fails_for_one_task_leaves_the_others_alone(store: Store) -> None:
    session = Session.open(store.recorder)

    async def work(n: int) -> str:
        key = "" if n == 3 else f"key {n}"
        try:
            await session.arecord(EndedCall(shell_call(), made(), idempotency_key=key))
        except InvalidRecordError:
            return "refused"
        return "recorded"

    async def run() -> list[str]:
        return await asyncio.gather(*(work(n) for n in range(6)))

    assert asyncio.run(run()) == ["recorded"] * 3 + ["refused"] + ["recorded"] * 2
    assert ingested_rows(store, "SELECT count(*) FROM invocations") == [(5,)]


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_call_whose_start_is_cancelled_ends_as_cancelled(store: Store, turns: int) -> None:
    session = Session.open(store.recorder)

    async def run() -> None:
        task = asyncio.create_task(session.astart(shell_call("cancelled")))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        invocation = await session.astart(shell_call("kept"))
        await invocation.afinish(made())

    asyncio.run(run())
    assert ingested_rows(store, "SELECT state FROM invocations ORDER BY seq") == [
        *(("cancelled",), ("success",))
    ]


def test_a_read_only_spool_is_an_error_that_names_it(store: Store) -> None:
    store.spool.write_bytes(b"")  # a file where the folder should be
    with pytest.raises(Exception, match=str(store.spool)):
        Session.open(store.recorder)


def test_a_failure_counts_and_keeps_its_streams_and_its_long_message(store: Store) -> None:
    message, log = "m" * 3_800_000, StreamRecord.from_bytes("stdout", b"a line\n" * 9_000)
    error = ToolError(kind="broken", message=message)
    invocation = Session.open(store.recorder).start(shell_call())
    finished = invocation.finish(CompleteOutput.failure("Bash", error, [log]))
    assert ingested_rows(store, "SELECT output_size, truncated FROM invocations") == [
        (3_800_000 + 63_000, 1)
    ]
    assert sorted(ingested_rows(store, "SELECT size FROM artifacts")) == [(63_000,), (3_800_000,)]
    assert finished.receipt.text.count("full output: sha256/") == 2
