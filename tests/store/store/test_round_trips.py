"""What goes in comes back: any bytes, any text, the same on both engines and in two runs."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from sqlalchemy import URL, func, select
from tests.support.effort import times
from tests.support.evidence import check_evidence, ledger_of
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.postgres import fresh_database
from tests.support.recording import captured, content_of, in_memory
from tests.support.template_stores import make_store

from tooltrail.records import (
    DEFAULT_POLICY,
    CommandOutput,
    CompleteOutput,
    ContentItem,
    GenericOutput,
    InvalidRecordError,
    StreamRecord,
    ToolCall,
    ToolError,
    canonical_json,
)
from tooltrail.records.tool_calls import storable
from tooltrail.store import InvocationFilter, Reader, Session, Store
from tooltrail.store.tables import BodyRow

ODD_TEXTS = [
    "",
    "\0",
    "a\0b",
    "\ud800",
    "\udcff x",
    "\\0",
    "\\udcff",
    "😀\u202e",
    "'; --",
    "\r\n\t",
]
NOT_UTF8 = bytes(range(256)) + b"\xff\xfe\xc0\x80\xed\xa0\x80"
NAN = float("nan")
ODD_VALUE: JsonValue = {
    "n\0\ud800": [NAN, float("inf"), -float("inf"), 10**60, -(10**60), "\ud800\0", None]
}


class Places(NamedTuple):
    sqlite: Store
    postgresql: Store


@pytest.fixture
def both(tmp_path: Path, postgres_url: str) -> Iterator[Places]:
    """A store on each engine, side by side."""
    with (
        make_store(tmp_path / "one" / "trail.db") as on_sqlite,
        make_store(
            postgres_url, artifacts=str(tmp_path / "two"), spool=tmp_path / "spool"
        ) as on_postgresql,
    ):
        yield Places(on_sqlite, on_postgresql)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_text_in_every_text_is_kept_alike_on_both_engines(both: Places, text: str) -> None:
    for store in both:
        session = store.open_session(title=text, agent=text)
        session.add_message(text, text)
        call = ToolCall(tool_name="Read", arguments_raw=text, call_id=text, title=text)
        finished = session.start(call).finish(
            returned("Read", text, structured=text, summary=f"read {text}")
        )
        error = ToolError(
            kind="odd", message=f"odd {text}", details={text: [text]}, recovery_hint=text
        )
        failed = session.start(call).finish(CompleteOutput.failure("Read", error))

        view = store.reader.session(session.id)
        assert (view.title, view.agent) == (storable(text), storable(text))
        _, messages, details = store.reader.conversation(session.id)
        assert [(m.role, m.text) for m in messages] == [(storable(text), text)]
        assert [d.arguments for d in details] == [text.encode("utf-8", "surrogatepass")] * 2
        assert [d.summary.call_id for d in details] == [storable(text)] * 2
        for detail, kept in zip(details, (finished, failed), strict=True):
            assert detail.canonical_json == kept.canonical.to_json().decode()
            assert detail.receipt is not None
            assert detail.receipt.text == kept.receipt.text
        assert [content_of(store.reader, s) for s in details[0].streams] == [
            text.encode("utf-8", "surrogatepass"),
            canonical_json.encode(text),
        ]
        check_evidence(store)
    assert_alike(both)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_the_ledger_keeps_the_exact_text_that_a_column_cannot(
    sqlite_store: Store, text: str
) -> None:
    session = sqlite_store.open_session(title=text, agent=text)
    session.add_message(text, "hello")
    session.start(ToolCall(tool_name="Read", call_id=text))

    opened, message, started = ledger_of(sqlite_store, session.id)

    assert (opened.payload["title"], opened.payload["agent"]) == (text, text)
    assert message.payload["role"] == text
    assert started.payload["call_id"] == text


def test_a_tool_name_with_nul_is_recorded_and_found_by_its_name(store: Store) -> None:
    name = "re\0ad"
    session = store.open_session(agent=name)
    session.start(ToolCall(tool_name=name)).finish(returned(name, "content"))

    found = store.reader.invocation(f"@last:{name}")

    assert found.summary.tool_name == "re\\0ad"
    assert found.canonical_json is not None
    assert json.loads(found.canonical_json)["tool_name"] == "re\\0ad"
    for where in (InvocationFilter(tools=(name,)), InvocationFilter(agents=(name,))):
        assert [v.id for v in store.reader.invocations(where).items] == [found.summary.id]
    check_evidence(store)


def test_odd_values_inside_a_result_survive_alike_on_both_engines(both: Places) -> None:
    for store in both:
        session = store.open_session()
        session.start(ToolCall.of("Read", ODD_VALUE)).finish(
            returned("Read", NOT_UTF8, structured=ODD_VALUE)
        )
        error = ToolError(kind="odd", message="odd", details=ODD_VALUE)
        session.start(ToolCall(tool_name="Read")).finish(CompleteOutput.failure("Read", error))

        _, _, (read, failed) = store.reader.conversation(session.id)

        assert same(canonical_json.decode(read.arguments), ODD_VALUE)
        assert content_of(store.reader, read.streams[0]) == NOT_UTF8
        structured = canonical_json.decode(content_of(store.reader, read.streams[1]))
        assert same(structured, ODD_VALUE)
        assert failed.canonical_json is not None
        envelope = canonical_json.decode(failed.canonical_json)
        assert isinstance(envelope, dict)
        assert isinstance(envelope["error"], dict)
        assert same(envelope["error"]["details"], ODD_VALUE)
        check_evidence(store)
    assert_alike(both)


def test_odd_names_inside_an_output_survive_alike_on_both_engines(both: Places) -> None:
    lost = in_memory("a\0b", b"kept").model_copy(
        update={"produced_size": 9, "loss_reason": "disk \0 \udcff"}
    )
    other = lost.model_copy(update={"role": "a\0c"})
    result = GenericOutput(
        content=(ContentItem(stream=lost, media_type="image/\0"), ContentItem(stream=other))
    )
    output = CompleteOutput(tool_name="Read", status="success", summary_text="odd", result=result)
    for store in both:
        finished = store.open_session().start(ToolCall(tool_name="Read")).finish(output)
        detail = store.reader.invocation(finished.invocation_id)
        assert {stream.role for stream in detail.streams} == {"a\\0b", "a\\0c"}
        assert {stream.loss_reason for stream in detail.streams} == {"disk \\0 \\udcff"}
        assert detail.complete_json == output.to_json().decode()
        check_evidence(store)
    assert_alike(both)


def same(left: object, right: object) -> bool:
    """Equality for which NaN is NaN."""
    return canonical_json.encode(left) == canonical_json.encode(right)


def assert_alike(both: Places) -> None:
    assert surfaces(both.sqlite) == surfaces(both.postgresql)


def surfaces(store: Store) -> list[tuple[object, ...]]:
    """What two runs with the same input must have in common, byte for byte."""
    found: list[tuple[object, ...]] = []
    for session in reversed(store.reader.sessions()):
        _, messages, details = store.reader.conversation(session.id)
        found.extend((m.seq, m.role, m.text) for m in messages)
        for detail in details:
            summary = detail.summary
            found.append(
                (
                    (summary.seq, summary.call_id, summary.tool_name, summary.family),
                    (summary.state, summary.error_kind, summary.exit_status, summary.signal),
                    (summary.output_size, summary.truncated, summary.arguments_preview),
                    (detail.arguments, detail.policy_digest, detail.complete_json),
                    (detail.canonical_json, detail.receipt, detail.streams),
                    (detail.artifacts, detail.omissions),
                )
            )
    return found


def record_the_same_things(store: Store) -> None:
    session = store.open_session(title="the same")
    session.add_message("user", "run everything")
    long_text = b"".join(b"%07d\n" % n for n in range(30_000))
    for policy in (DEFAULT_POLICY, policy_with(inline_bytes=100)):
        invocation = session.start(ToolCall.of("Bash", {"command": "make"}), policy=policy)
        result = CommandOutput(
            command="make",
            exit_status=2,
            stdout=captured(invocation, "stdout", long_text),
            stderr=captured(invocation, "stderr", b"make: *** Error 2\n"),
        )
        invocation.finish(CompleteOutput.success("Bash", result))
        session.start(ToolCall(tool_name="Read"), policy=policy).finish(
            returned("Read", "text " * 30_000, NOT_UTF8, structured={"a": [1, 2.5, "x"]})
        )
        error = ToolError(kind="broken", message="long " * 500, details=["x" * 5_000])
        session.start(ToolCall(tool_name="Read"), policy=policy).finish(
            CompleteOutput.failure("Read", error)
        )


def test_the_same_input_gives_the_same_bytes_in_two_runs_and_on_both_engines(
    both: Places, tmp_path: Path
) -> None:
    with make_store(tmp_path / "three" / "trail.db") as third:
        stores = (*both, third)
        for store in stores:
            record_the_same_things(store)
        first, second, again = map(surfaces, stores)
        assert first == second == again
        assert len(first) == 7
        objects = [
            [(o.path, o.stored_size) for o in s.archive.sink.list("sha256/")] for s in stores
        ]
        assert objects[0] == objects[1] == objects[2]
        assert objects[0]


def test_a_second_run_into_the_same_sink_gives_the_same_bytes(store: Store) -> None:
    record_the_same_things(store)
    record_the_same_things(store)

    found = surfaces(store)

    assert found[:7] == found[7:]
    assert len(store.reader.artifacts()) == len(list(store.archive.sink.list("sha256/")))
    check_evidence(store)


SHORT = st.binary(max_size=200)
LONG = st.tuples(SHORT, st.integers(1, 3_000)).map(lambda part: part[0] * part[1])
BYTES = st.one_of(SHORT, LONG)


class Shared(NamedTuple):
    reader: Reader
    session: Session


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """One open session for many examples, on each engine in turn."""
    folder = tmp_path_factory.mktemp("shared")
    with ExitStack() as stack:
        database = str(folder / "trail.db")
        if request.param == "postgresql":
            server: URL = request.getfixturevalue("postgres_server")
            database = stack.enter_context(fresh_database(server))
        store = stack.enter_context(
            make_store(database, artifacts=str(folder / "artifacts"), spool=folder / "spool")
        )
        yield Shared(store.reader, store.open_session())


examples = settings(max_examples=times(10), deadline=None)


@given(
    stdout=BYTES,
    stderr=BYTES,
    order=st.none() | SHORT,
    ending=st.one_of(
        st.tuples(st.integers(0, 255), st.none()), st.tuples(st.none(), st.integers(1, 64))
    ),
    text=st.text(max_size=40),
    inline_bytes=st.sampled_from([0, 1, 64, 16 * 1024]),
)
@example(stdout=b"", stderr=b"", order=None, ending=(0, None), text="", inline_bytes=0)
@example(
    stdout=NOT_UTF8 * 2_000,
    stderr=b"\0" * 70_000,
    order=b"",
    ending=(None, 9),
    text="\0\ud800",
    inline_bytes=64,
)
@examples
def test_every_stream_of_a_command_comes_back_byte_for_byte(
    shared: Shared,
    *,
    stdout: bytes,
    stderr: bytes,
    order: bytes | None,
    ending: tuple[int | None, int | None],
    text: str,
    inline_bytes: int,
) -> None:
    invocation = shared.session.start(
        ToolCall(tool_name="Bash", arguments_raw=text),
        policy=policy_with(inline_bytes=inline_bytes),
    )
    result = CommandOutput(
        command=text,
        exit_status=ending[0],
        signal=ending[1],
        stdout=captured(invocation, "stdout", stdout),
        stderr=captured(invocation, "stderr", stderr),
        order=None if order is None else captured(invocation, "order", order),
    )
    finished = invocation.finish(CompleteOutput.success("Bash", result))

    detail = shared.reader.invocation(finished.invocation_id)
    expected = [("stdout", stdout), ("stderr", stderr)]
    if order is not None:
        expected.append(("order", order))
    assert [(s.role, content_of(shared.reader, s)) for s in detail.streams] == expected
    assert (detail.summary.exit_status, detail.summary.signal) == ending
    assert detail.summary.output_size == len(stdout) + len(stderr)
    assert detail.arguments == text.encode("utf-8", "surrogatepass")


@given(
    contents=st.lists(st.one_of(BYTES, st.text(max_size=300)), max_size=5),
    structured=st.none()
    | st.recursive(st.integers() | st.text(max_size=9), st.lists, max_leaves=9),
    inline_bytes=st.sampled_from([0, 64, 16 * 1024]),
)
@examples
def test_every_item_of_a_generic_result_comes_back_byte_for_byte(
    shared: Shared, contents: list[bytes | str], structured: JsonValue, inline_bytes: int
) -> None:
    output = returned("Read", *contents, structured=structured)
    invocation = shared.session.start(
        ToolCall(tool_name="Read"), policy=policy_with(inline_bytes=inline_bytes)
    )
    finished = invocation.finish(output)

    detail = shared.reader.invocation(finished.invocation_id)
    plain = [c if isinstance(c, bytes) else c.encode("utf-8", "surrogatepass") for c in contents]
    if structured is not None:
        plain.append(canonical_json.encode(structured))
    assert [content_of(shared.reader, stream) for stream in detail.streams] == plain
    assert detail.complete_json == output.to_json().decode()


def test_equal_bytes_are_stored_once_and_small(store: Store) -> None:
    session = store.open_session()
    text = "the same line again\n" * 500
    for _ in range(5):
        session.start(ToolCall(tool_name="Read")).finish(returned("Read", text))
    size = len(text.encode())
    with store.database.read() as connection:
        found = connection.execute(
            select(func.count(), func.min(func.length(BodyRow.data))).where(BodyRow.size == size)
        ).one()
    # The receipt of a short text is that text, so even it is the same body.
    assert found[0] == 1
    assert found[1] < size / 10


def test_a_record_of_a_stream_without_bytes_is_a_body_too(store: Store) -> None:
    empty = StreamRecord.from_bytes("content.0", b"")
    result = GenericOutput(content=(ContentItem(stream=empty),))
    output = CompleteOutput(tool_name="Read", status="success", summary_text="-", result=result)
    finished = store.open_session().start(ToolCall(tool_name="Read")).finish(output)
    detail = store.reader.invocation(finished.invocation_id)
    assert content_of(store.reader, detail.streams[0]) == b""


def test_arguments_that_are_no_json_are_kept_as_they_are(store: Store) -> None:
    session = store.open_session()
    session.start(ToolCall(tool_name="Read", arguments_raw='{"cut off": '))
    assert store.reader.invocation("@last").arguments == b'{"cut off": '
    with pytest.raises(InvalidRecordError):
        ToolCall.of("Read", {1: "a"})  # type: ignore[dict-item]
