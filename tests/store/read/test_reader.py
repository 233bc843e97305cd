"""Every view is compared with the facts that were recorded."""

from typing import Any

import pytest
from tests.support.call_facts import message, moment, offered, opened
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.artifacts import artifact_path, encode
from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import (
    DamageError,
    MissingArtifactError,
    NotFoundError,
    PathEscapeError,
    ToolDefinition,
    UnavailableError,
    canonical_json,
    digest_of,
)
from tooltrail.records.fact_spelling import shown_json
from tooltrail.records.facts import ArtifactFact, OmissionFact, SessionClosed, Shown
from tooltrail.store.expressions import Comparison
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.views import InvocationDetail, InvocationView, ToolCalls

pytestmark = pytest.mark.both_engines

LOG = b"a line of a log\n" * 3_000
ODD = b"NUL \0, a byte that is no text \xff, a surrogate \xed\xa0\x80"


def kind_of(made: Call) -> str:
    """The outcome that the facts of a call promise."""
    end = made.ended
    if end is None:
        return "unfinished" if made.started.owner is None else "running"
    if end.timed_out:
        return "timeout"
    if end.state != "success":
        return end.state
    return "signal" if end.signal else "exit" if end.exit_status else "ok"


def summary_of(made: Call, seq: int) -> InvocationView:
    """The list entry that the facts of a call promise."""
    start, end = made.started, made.ended
    streams = () if end is None else end.streams
    return InvocationView(
        id=start.id,
        session_id=start.session,
        seq=seq,
        call_id=start.call_id,
        tool_name=start.tool_name,
        family=start.family,
        state="started" if end is None else end.state,
        arguments_preview=start.title or "ls",
        started_at=start.at,
        finished_at=None if end is None else end.at,
        duration_ms=None if end is None else end.duration_ms,
        error_kind=None if end is None else end.error_kind,
        exit_status=None if end is None else end.exit_status,
        signal=None if end is None else end.signal,
        timed_out=None if end is None else end.timed_out,
        output_size=None if end is None else sum(one.produced_size for one in streams),
        truncated=None if end is None else bool(end.shown and end.shown.omissions),
        outcome_kind=kind_of(made),
        lost_size=None if end is None else sum(one.produced_size - one.size for one in streams),
    )


def assert_is(detail: InvocationDetail, made: Call, seq: int) -> None:
    """A detail has everything that the facts of a call have."""
    assert detail.summary == summary_of(made, seq)
    assert detail.arguments == made.arguments
    assert detail.policy_digest == made.started.policy
    assert detail.damage is None
    if made.ended is None:
        assert (detail.complete_json, detail.canonical_json, detail.receipt) == (None, None, None)
        return
    assert detail.complete_json == made.document.decode()
    facts = made.ended.streams
    assert [(s.role, s.digest, s.size, s.line_count) for s in detail.streams] == [
        (s.role, s.digest, s.size, s.line_count) for s in facts
    ]
    if made.canonical is not None and made.receipt is not None:
        assert detail.canonical_json == made.canonical.decode()
        assert detail.receipt is not None
        assert detail.receipt.digest == digest_of(made.receipt)
        assert detail.receipt.renderer_name == "seen"


def test_an_invocation_gives_back_what_was_recorded(parts: StoreParts) -> None:
    session = new_id()
    made = [
        call(session, 1, stdout=b"hello\n" * 40, stderr=b"warning"),
        call(session, 2, receipt=b"what the model saw", start={"call_id": "c", "title": "look"}),
        call(session, 3, state=None),
        call(
            session,
            4,
            receipt=b"no such file",
            state="error",
            end={"error_kind": "not_found", "exit_status": 2, "signal": 9, "timed_out": True},
        ),
        call(session, 5, receipt=b"denied", state="denied", end={"duration_ms": None}),
    ]
    parts.ingest(*entries_of(made))
    for seq, one in enumerate(made, 1):
        assert_is(parts.reader.invocation(one.started.id), one, seq)
    page = parts.reader.invocations()
    assert list(page.items) == [summary_of(one, n) for n, one in enumerate(made, 1)][::-1]


def test_texts_that_no_database_holds_come_back_byte_for_byte(parts: StoreParts) -> None:
    session = new_id()
    canonical = canonical_json.encode({"summary_text": ODD.decode("utf-8", "surrogateescape")})
    made = [
        call(session, 1, arguments=ODD, receipt=b"plain"),
        call(session, 2, receipt=ODD),
        call(session, 3, receipt=b"plain", canonical=canonical),
        call(session, 4, arguments=ODD, state=None),
        call(session, 5, arguments=ODD, stdout=ODD),
    ]
    parts.ingest(*entries_of(made))
    for one in made:
        detail = parts.reader.invocation(one.started.id)
        assert detail.arguments == one.arguments
        if one.receipt is not None:
            assert detail.receipt is not None
            assert detail.receipt.digest == digest_of(one.receipt)
    texts = [parts.reader.invocation(one.started.id) for one in made]
    assert texts[1].receipt is not None
    assert texts[1].receipt.text.encode("utf-8", "surrogateescape") == ODD
    assert texts[2].canonical_json == canonical.decode()


def test_a_stream_in_the_receipt_is_restored_there_and_in_the_canonical(parts: StoreParts) -> None:
    content = b"a stream of some length, twice: " * 3
    canonical = canonical_json.encode({"result": {"stdout": content.decode()}})
    receipt = b"before \xc3\xa4 " + content + b" behind"
    made = call(new_id(), receipt=receipt, canonical=canonical, stdout=content, stderr=b"other")
    parts.ingest(*made.entries())
    detail = parts.reader.invocation(made.started.id)
    assert detail.canonical_json == canonical.decode()
    stdout, stderr = detail.streams
    assert stdout.receipt_offset == len(b"before \xc3\xa4 ")
    assert stderr.receipt_offset is None
    for view, data in ((stdout, content), (stderr, b"other")):
        with parts.reader.open_stream(view) as source:
            assert source.read() == data


def test_a_captured_stream_is_an_artifact_with_an_owner(parts: StoreParts) -> None:
    session, other = new_id(), new_id()
    made = call(session, 1, receipt=b"cut", stdout=LOG)
    digest, path = digest_of(LOG), artifact_path(digest_of(LOG))
    omission = OmissionFact(
        stage="projection", field="stdout", unit="bytes", before=9, after=4, reason="too long"
    )
    shown = made.shown.replaced(
        omissions=(omission,), artifacts=(ArtifactFact(role="stdout", digest=digest),)
    )
    made.capture(parts, LOG, shown=shown)
    parts.ingest(*made.entries(), *call(other, 2, receipt=b"r").entries())
    reader = parts.reader
    detail = reader.invocation(made.started.id)
    assert_is(detail, made, 1)
    assert detail.artifacts == (("stdout", path),)
    assert [(o.stage, o.before, o.after, o.reason) for o in detail.omissions] == [
        ("projection", 9, 4, "too long")
    ]
    stream = detail.streams[0]
    assert (stream.artifact_path, stream.receipt_offset) == (path, None)
    with reader.open_stream(stream) as source:
        assert source.read() == LOG
    assert reader.artifact_owners(path) == [made.started.id]
    (view,) = reader.artifacts()
    assert (view.path, view.digest, view.size, view.line_count) == (path, digest, len(LOG), 3_000)
    for beginning in ("sha256/", "sha", path[:9], path[:10], path[:20], path[:-2], path):
        assert reader.artifacts(beginning=beginning) == [view]
    assert reader.artifacts(beginning=path[:-4] + "x") == []
    assert reader.artifacts(session=session) == reader.artifacts(invocation=made.started.id)
    assert reader.artifacts(session=other) == []
    assert reader.artifacts(cursor=path) == []


def test_texts_that_the_ingester_made_come_back_byte_for_byte(parts: StoreParts) -> None:
    made = call(new_id(), stdout=b"out")
    parts.ingest(*made.entries())
    before = parts.reader.invocation("@last")
    assert before.receipt is not None
    assert before.canonical_json is not None
    texts = [before.canonical_json.encode(), ODD]
    canonical, receipt = map(digest_of, texts)
    shown = shown_json(
        Shown(canonical=canonical, receipt=receipt, renderer="mine", renderer_version=1)
    )
    parts.alter("DELETE FROM surfaces")
    with parts.database.write() as connection:
        columns: dict[str, object] = {"arguments": made.arguments.decode()}
        columns["output"] = before.complete_json
        columns |= {"canonical": before.canonical_json, "receipt": "a substitute"}
        columns |= {"renderer": "mine", "renderer_version": 1}
        row = {"invocation_key": 1, **columns, "shown": connection.sha(digest_of(shown))}
        connection.insert("surfaces", [{**row, "is_exact": False}])
        for data in (ODD, shown):
            stored = {"digest": connection.sha(digest_of(data)), "size": len(data)}
            connection.insert_once("bodies", [{**stored, "encoding": "raw", "data": data}])
    detail = parts.reader.invocation("@last")
    assert detail.damage is None
    assert detail.canonical_json == before.canonical_json
    assert detail.receipt is not None
    assert detail.receipt.digest == digest_of(ODD)


def test_a_stream_that_waits_for_the_sink_is_read_from_the_spool(parts: StoreParts) -> None:
    made = call(new_id(), receipt=b"cut", stdout=LOG)
    made.capture(parts, LOG)
    sink = parts.spool.parent / "artifacts"
    sink.rename(sink.with_name("elsewhere"))
    parts.ingest(*made.entries())
    reader = parts.reader
    stream = reader.invocation(made.started.id).streams[0]
    assert stream.pending_reason is not None
    with reader.open_stream(stream) as waiting:
        assert waiting.read() == LOG
    (file,) = parts.spool.rglob("*.zst")
    intact = file.read_bytes()
    for other in (encode(LOG[:-1]), intact[:20]):
        file.write_bytes(other)
        with pytest.raises(DamageError), reader.open_stream(stream) as waiting:
            waiting.read()
    parts.alter("UPDATE pending_artifacts SET spooled = '../' || spooled")
    with pytest.raises(PathEscapeError):
        reader.open_stream(stream)
    parts.alter("UPDATE pending_artifacts SET spooled = substr(spooled, 4)")
    parts.spool.rename(parts.spool.with_name("another"))
    with pytest.raises(MissingArtifactError, match="its file is not in the spool"):
        reader.open_stream(stream)
    parts.alter("UPDATE journals SET host = 'far'")
    with pytest.raises(
        MissingArtifactError, match=f"waits in spool {parts.spool} of host far; run"
    ):
        reader.open_stream(stream)
    parts.spool.symlink_to(parts.spool)  # nobody can tell what is in it
    with pytest.raises(UnavailableError, match="cannot be read"):
        reader.open_stream(stream)


def test_sessions_come_newest_first_with_what_their_facts_say(parts: StoreParts) -> None:
    first, second, bare = new_id(), new_id(), new_id()
    environment = canonical_json.encode({"host": "here"})
    names = {"name": "nightly", "title": "a title", "agent": "tester"}
    parts.ingest(
        opened(first, at=1, environment=environment, **names),
        opened(second, at=5, parent=first),
        *call(first, 6, receipt=b"r").entries(),
        *call(first, 7, state=None).entries(),
        *call(bare, 3, receipt=b"r").entries(),
        Entry(SessionClosed(session=first, at=moment(9), reason="done")),
    )
    reader = parts.reader
    views = reader.sessions()
    assert [one.id for one in views] == [second, bare, first]
    view = views[2]
    assert (view.name, view.title, view.agent) == ("nightly", "a title", "tester")
    assert (view.opened_at, view.closed_at, view.close_reason) == (moment(1), moment(9), "done")
    assert view.environment == environment.decode()
    assert (view.invocation_count, view.open_count) == (2, 1)
    assert (views[0].parent_id, views[0].closed_at) == (first, None)
    assert [one.id for one in reader.sessions(limit=2)] == [second, bare]
    assert [one.id for one in reader.sessions(cursor=bare)] == [first]
    with pytest.raises(NotFoundError):
        reader.sessions(cursor=new_id())


@pytest.mark.both_engines
def test_the_extras_of_a_message_are_read_with_its_payload(parts: StoreParts) -> None:
    session = new_id()
    parts.ingest(
        message(session, b"plain", at=1),
        message(session, b"imported", at=2, extras=b'{"extras":"of the source"}'),
    )
    _, messages, _ = parts.reader.conversation(session, payloads=True)
    assert [one.extras for one in messages] == [None, b'{"extras":"of the source"}']
    assert [one.damage for one in messages] == [None, None]
    _, messages, _ = parts.reader.conversation(session)
    assert [one.extras for one in messages] == [None, None]


def test_a_conversation_has_every_entry_in_its_order(parts: StoreParts) -> None:
    session = new_id()
    payload, document = b'{"raw": 1}', canonical_json.encode({"role": "user"})
    said, answered = new_id(), new_id()
    more: dict[str, Any] = {"document": document, "payload": payload, "wire_format": "openai.chat"}
    slow = call(session, 2, receipt=b"slow", start={"message": said, "position": 3})
    quick = call(session, 3, receipt=b"quick")
    assert slow.ended is not None
    parts.ingest(
        message(session, b"please look", id=said, at=1, **more),
        slow.start,
        *quick.entries(),
        *slow.entries()[1:],
        message(session, b"", id=answered, at=5, role="assistant"),
    )
    view, messages, calls = parts.reader.conversation(session, payloads=True)
    assert view.id == session
    assert [(m.id, m.seq, m.role, m.text) for m in messages] == [
        (said, 1, "user", "please look"),
        (answered, 4, "assistant", ""),
    ]
    assert (messages[0].document, messages[0].payload) == (document, payload)
    assert messages[0].wire_format == "openai.chat"
    assert_is(calls[0], slow, 2)
    assert_is(calls[1], quick, 3)
    assert (calls[0].message_id, calls[0].position) == (said, 3)
    # When the slow call ended, the three entries before the reply had begun; so for the quick one.
    assert [one.ended_at_seq for one in calls] == [4, 4]
    assert parts.reader.conversation(session)[1][0].payload is None


def test_offered_tools_are_given_by_session_and_by_version(parts: StoreParts) -> None:
    first, second = new_id(), new_id()
    old, new, other = (
        ToolDefinition(name=name, description=what)
        for name, what in (("read", "old"), ("read", "new"), ("bash", "runs"))
    )
    offers = [(first, 1, (old, other)), (second, 2, (new,)), (second, 3, ()), (first, 4, (old,))]
    for session, seconds, tools in offers:
        parts.ingest(offered(session, *(one.to_json() for one in tools), at=seconds))
    parts.ingest(*call(first, 5, tool="bash", receipt=b"r").entries())
    for session, seconds, tool in ((first, 6, "read"), (first, 7, "read"), (second, 8, "read")):
        parts.ingest(*call(session, seconds, tool=tool, receipt=b"r").entries())
    reader = parts.reader
    # The last offer of the first session is `old` alone, that of the second is empty.
    assert reader.called_tools() == {
        digest_of(old.to_json()): ToolCalls(2, moment(6), moment(7)),
    }
    assert [one.definition for one in reader.tools()] == [other, old, new]
    assert [one.definition for one in reader.tools("read", latest=True)] == [old]
    assert [(t.name, t.family, t.offered_at) for t in reader.tools("bash")] == [
        ("bash", "command", moment(1))
    ]
    assert [one.definition for one in reader.offered_tools(first)] == [old]
    assert reader.offered_tools(second) == []
    messages = reader.conversation(second)[1]
    assert [[t.definition for t in m.tools or ()] for m in messages] == [[new], []]


def test_totals_count_what_was_recorded(parts: StoreParts) -> None:
    session = new_id()
    made = [
        call(session, 1, receipt=b"r", stdout=b"x" * 100),
        call(session, 2, receipt=b"r", state="error"),
        call(session, 3, state=None),
    ]
    parts.ingest(*entries_of(made))
    counts = parts.reader.counts(with_bodies=True)
    assert (counts.sessions, counts.produced_bytes, counts.lost_bytes) == (1, 100, 0)
    assert counts.invocations == {"ok": 1, "error": 1, "unfinished": 1}
    assert (counts.artifact_count, counts.lossy_count) == (0, 0)
    # The policy, the stream that is not in its receipt, and the empty ones.
    assert (counts.body_count, counts.body_bytes) == (3, len(made[0].policy) + 100)
    assert parts.reader.counts().body_count is None
    assert parts.reader.policy_json(digest_of(made[0].policy)) == made[0].policy.decode()


def test_a_size_that_is_too_large_is_in_no_sum(parts: StoreParts) -> None:
    session, largest = new_id(), (1 << 63) - 1
    parts.ingest(*entries_of([call(session, n, stdout=b"12345") for n in (1, 2, 3)]))
    parts.alter(f"UPDATE invocations SET output_size = {largest} WHERE seq < 3")
    parts.alter(f"UPDATE bodies SET size = {largest}")
    counts = parts.reader.counts(with_bodies=True)
    assert (counts.produced_bytes, counts.body_bytes) == (5, 0)


def test_a_second_row_of_texts_stops_no_list(parts: StoreParts) -> None:
    calls = [call(new_id(), n, stdout=b"12345") for n in (1, 2)]
    parts.ingest(*entries_of(calls))
    if parts.database.is_server:
        parts.alter("ALTER TABLE surfaces DROP CONSTRAINT pk_surfaces")
    else:
        parts.run("PRAGMA legacy_alter_table = ON")  # views name the table
        parts.alter("ALTER TABLE surfaces RENAME TO lost")
        parts.run("CREATE TABLE surfaces AS SELECT * FROM lost")
    parts.run("INSERT INTO surfaces SELECT * FROM surfaces")
    found = parts.reader.invocations(InvocationFilter(expression=Comparison("size", "=", 5)))
    assert {one.id for one in found.items} == {one.started.id for one in calls}
