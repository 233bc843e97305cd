"""Correct use of the public API. Never run: mypy and pyright check that it is well typed."""

from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

from pydantic import TypeAdapter

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, Capture, CapturedStream, open_sink
from tooltrail.records import (
    DEFAULT_POLICY,
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    GenericOutput,
    Policy,
    Receipt,
    StreamRecord,
    ToolCall,
    ToolError,
    ainvoke,
    compact,
    invoke,
)
from tooltrail.store import (
    Finished,
    Invocation,
    InvocationDetail,
    InvocationFilter,
    InvocationView,
    Page,
    Rerendering,
    Session,
    Store,
    create_store,
    open_store,
    rerender,
)
from tooltrail.transcripts import FORMATS, Transcript, load_transcript


def record_a_command(database: Path) -> str:
    policy = DEFAULT_POLICY.for_tool("Bash", preview_chars=8_000)
    assert_type(policy, Policy)
    with create_store(database, policy=policy) as store:
        assert_type(store, Store)
        session = store.open_session(title="a session", agent="tester")
        assert_type(session, Session)
        invocation = session.start(ToolCall.of("Bash", {"command": "make"}, call_id="call_1"))
        assert_type(invocation, Invocation)
        capture = invocation.capture("stdout")
        assert_type(capture, Capture)
        capture.write(b"built\n")
        closed = capture.close()
        assert_type(closed, CapturedStream)
        output = CommandOutput(
            exit_status=0,
            stdout=invocation.captured(closed),
            stderr=StreamRecord.from_bytes("stderr", b""),
        )
        finished = invocation.finish(CompleteOutput.success("Bash", output))
        assert_type(finished, Finished)
        assert_type(finished.canonical, CanonicalResult)
        assert_type(finished.receipt, Receipt)
        assert_type(finished.invocation_id, UUID)
        session.close()
        return finished.receipt.text


def record_other_tools(session: Session) -> None:
    output = CompleteOutput.success(
        "search", GenericOutput.of("two matches", structured={"count": 2})
    )
    assert_type(output, CompleteOutput)
    session.start(ToolCall.of("search", {"query": "x"})).finish(output)
    refusal = ToolError(kind="permission_denied", message="the user said no")
    session.start(ToolCall(tool_name="rm")).finish(CompleteOutput.failure("rm", refusal))


def run_a_handler(session: Session) -> str:
    call = ToolCall.of("Read", {"path": "a.txt"})
    invocation = session.start(call, policy=DEFAULT_POLICY.for_tool("Read", preview_chars=2_000))
    finished = invoke(lambda arguments: str(arguments["path"]), call, invocation.finish)
    assert_type(finished, Finished)
    small = compact(finished.canonical, 500)
    assert_type(small, CanonicalResult)
    return finished.receipt.text


def run_one_of_a_table(session: Session) -> Finished:
    call = ToolCall.of("Read", {"path": "a.txt"})
    handlers = {"Read": read_a_file, "Count": count_names}
    assert_type(invoke(handlers, call, session.start(call).finish), Finished)
    parse = TypeAdapter(list[str]).validate_python
    return invoke({"join": ", ".join}, call, session.start(call).finish, parse=parse)


def read_a_file(arguments: dict[str, Any]) -> str:
    return str(arguments["path"])


def count_names(arguments: dict[str, Any]) -> int:
    return len(arguments)


async def run_an_awaited_handler(session: Session) -> None:
    async def handler(arguments: list[str]) -> bytes:
        return ", ".join(arguments).encode()

    call = ToolCall.of("join", ["a", "b"])
    record = session.start(call).finish
    parse = TypeAdapter(list[str]).validate_python
    finished = await ainvoke(handler, call, record, parse=parse, timeout_ms=1_000)
    assert_type(finished, Finished)


def compare_receipts(store: Store) -> None:
    detail = store.reader.invocation("@last")
    assert_type(rerender(store.reader, detail, store.families), Rerendering)


def read_it_back(database: str) -> None:
    with open_store(database) as store:
        reader = store.reader
        page = reader.invocations(InvocationFilter(tools=("Bash",)), limit=20)
        assert_type(page, Page[InvocationView])
        detail = reader.invocation("@last:Bash")
        assert_type(detail, InvocationDetail)
        stdout = detail.stream("stdout")
        if stdout is not None:
            with reader.open_stream(stdout) as source:
                assert_type(source.read(), bytes)
        transcript = load_transcript(reader, "@last")
        assert_type(transcript, Transcript)
        for piece in FORMATS["markdown"](transcript):
            assert_type(piece, str)


def use_artifacts_alone(folder: str) -> int:
    sink: ArtifactSink = open_sink(folder, create=True)
    assert_type(sink.capabilities.frame_size, int)
    assert_type(sink.read("a/b", -100), bytes)
    archive = ArtifactArchive(sink)
    capture = Capture("log", Path(folder, "log.zst"), edge_bytes=1_000)
    capture.write(b"text")
    return archive.verify(archive.publish(capture.close()).path)
