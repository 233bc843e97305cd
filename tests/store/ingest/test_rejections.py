"""What cannot be applied is kept with its bytes and the reason, and blocks nothing behind it."""

from uuid import UUID

import pytest
from tests.support.new_store_ingesting import (
    IngestedStore,
    changed,
    ended,
    message,
    moment,
    next_id,
    started,
)

from tooltrail.journal import Entry, Frame, read_journal
from tooltrail.journal.reading import Cursor
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import SessionOpened
from tooltrail.store import schema
from tooltrail.store.ingest.batch import subject_of

CONTENT = (
    schema.sessions,
    schema.messages,
    schema.invocations,
    schema.surfaces,
    schema.streams,
    schema.omissions,
    schema.bodies,
    schema.tools,
    schema.agent_legs,
    schema.artifacts,
)


def content(store: IngestedStore) -> list[list[tuple[object, ...]]]:
    """All rows but those of the ledger and of rejected facts."""
    return [store.rows(table) for table in CONTENT]


def opened(session: UUID, name: str | None = "n", at: int = 0) -> Entry:
    return Entry(SessionOpened(session=session, at=moment(at), name=name))


def two_of(kind: str) -> tuple[list[Entry], Entry, Entry]:
    """Facts that come first, a fact, and another one of the same id."""
    session, subject = next_id(), next_id()
    match kind:
        case "session":
            return [], opened(session), opened(session, name="other")
        case "message":
            one, two = message(session, id=subject), message(session, b"other", id=subject)
            return [], one, two
        case "start":
            other = started(session, subject, arguments=b"{}")
            return [], started(session, subject), other
        case _:
            first = [started(session, subject)]
            return first, ended(session, subject), ended(session, subject, b"other\n")


KINDS = ("session", "message", "start", "end")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_the_same_fact_twice_changes_nothing_but_the_ledger(
    ingesting: IngestedStore, kind: str, is_one_batch: bool
) -> None:
    first, fact, _ = two_of(kind)
    ingesting.ingest(*first, fact)
    before = content(ingesting)
    again = [changed(fact, at=moment(50))] * 2 if is_one_batch else [fact]
    assert ingesting.ingest(*again).rejected_count == 0
    assert content(ingesting) == before
    assert ingesting.count(schema.ledger_entries) == len(first) + 1 + len(again)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_another_fact_of_the_same_id_is_rejected(
    ingesting: IngestedStore, kind: str, is_one_batch: bool
) -> None:
    first, fact, other = two_of(kind)
    ingesting.append(*first, fact)
    if not is_one_batch:
        ingesting.ingest()
    behind = message(next_id())
    assert ingesting.ingest(other, behind).rejected_count == 1
    (reason,) = ingesting.rejections()
    subject = subject_of(other.fact)
    assert str(subject) in reason
    assert f"as entry {len(first)} of journal 1, with other content" in reason
    names = ("journal_key", "n", "subject_id")
    assert ingesting.rows(schema.rejected_facts, *names) == [(1, len(first) + 1, subject)]
    assert ingesting.count(schema.messages) == (2 if kind == "message" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_another_fact_from_another_journal_is_rejected(ingesting: IngestedStore, kind: str) -> None:
    first, fact, other = two_of(kind)
    ingesting.ingest(message(next_id()), *first, fact)
    elsewhere = other_journal(ingesting)
    before = content(ingesting)
    assert elsewhere.ingest(fact).rejected_count == 0
    assert elsewhere.ingest(other).rejected_count == 1
    assert f"as entry {len(first) + 1} of journal 1" in ingesting.rejections()[0]
    assert content(ingesting) == before


def other_journal(store: IngestedStore) -> IngestedStore:
    """The same store from another machine, with a journal of its own."""
    return IngestedStore(store.database, store.spool.with_name("other-spool"), store.sink)


def test_a_session_that_another_machine_opened_late_is_compared_with_that_fact(
    ingesting: IngestedStore,
) -> None:
    session, elsewhere = next_id(), other_journal(ingesting)
    ingesting.ingest(message(session), message(session), opened(next_id()))
    elsewhere.ingest(message(session), opened(session))
    assert ingesting.ingest(opened(session, at=9)).rejected_count == 0
    assert ingesting.ingest(opened(session, name="other")).rejected_count == 1
    names = ("journal_key", "open_journal_key", "entry")
    assert (1, 2, 1) in ingesting.rows(schema.sessions, *names)


def test_a_call_that_another_machine_ended_is_compared_with_that_fact(
    ingesting: IngestedStore,
) -> None:
    session, call, elsewhere = next_id(), next_id(), other_journal(ingesting)
    ingesting.ingest(started(session, call), message(session))
    assert elsewhere.ingest(ended(session, call)).rejected_count == 0
    assert ingesting.ingest(ended(session, call, at=30)).rejected_count == 0
    assert ingesting.ingest(ended(session, call, b"other\n")).rejected_count == 1
    names = ("journal_key", "start_entry", "end_journal_key", "end_entry")
    assert ingesting.rows(schema.invocations, *names) == [(1, 0, 2, 0)]


def test_an_end_without_a_start_is_rejected(ingesting: IngestedStore) -> None:
    session, call = next_id(), next_id()
    ingesting.ingest(ended(session, call))
    assert ingesting.rejections() == [f"no call {call} was started"]
    assert not any(content(ingesting))


def test_an_end_of_another_session_is_rejected(ingesting: IngestedStore) -> None:
    session, call = next_id(), next_id()
    ingesting.ingest(started(session, call), ended(next_id(), call))
    assert ingesting.rejections() == [f"call {call} is of session {session}"]
    assert ingesting.rows(schema.invocations, "state") == [("started",)]


def without_body(entry: Entry, n: int) -> Entry:
    return entry._replace(bodies=[*entry.bodies[:n], *entry.bodies[n + 1 :]])


@pytest.mark.parametrize("n", [0, 1])
def test_an_end_with_a_missing_body_is_rejected(ingesting: IngestedStore, n: int) -> None:
    session, call = next_id(), next_id()
    end = ended(session, call)
    ingesting.ingest(started(session, call), without_body(end, n), message(session))
    assert ingesting.rejections() == [f"body {digest_of(end.bodies[n])} is missing"]
    assert ingesting.count(schema.messages) == 1


@pytest.mark.parametrize("kind", ["message", "start"])
def test_a_fact_with_a_missing_body_leaves_nothing(ingesting: IngestedStore, kind: str) -> None:
    _, fact, _ = two_of(kind)
    ingesting.ingest(fact._replace(bodies=[]))
    assert ingesting.rejections() == [f"body {digest_of(fact.bodies[0])} is missing"]
    assert not any(content(ingesting))
    # The fact itself may come again, with all its bodies.
    assert ingesting.ingest(fact).rejected_count == 0


def test_a_rejected_fact_takes_no_place_in_its_session(ingesting: IngestedStore) -> None:
    session = next_id()
    good, bad = message(session), message(session, b"gone")._replace(bodies=[])
    ingesting.ingest(bad, good, bad, message(session))
    assert ingesting.rows(schema.messages, "seq") == [(1,), (2,)]


def test_integers_beyond_64_bits_are_rejected_alone(ingesting: IngestedStore) -> None:
    session, calls = next_id(), [next_id() for _ in range(40)]
    entries = [started(session, call) for call in calls]
    for n in (3, 17, 39):
        entries[n] = changed(entries[n], position=1 << 80)
    done = ingesting.ingest(*entries)
    assert (done.frame_count, done.rejected_count) == (40, 3)
    kept = [
        (call, seq + 1)
        for seq, call in enumerate(call for n, call in enumerate(calls) if n not in (3, 17, 39))
    ]
    assert ingesting.rows(schema.invocations, "id", "seq") == kept
    assert ingesting.rows(schema.rejected_facts, "n") == [(3,), (17,), (39,)]


def test_an_end_in_the_state_started_is_rejected(ingesting: IngestedStore) -> None:
    session, call = next_id(), next_id()
    end = changed(ended(session, call), state="started")
    ingesting.ingest(started(session, call), end, message(session))
    assert len(ingesting.rejections()) == 1
    assert ingesting.count(schema.messages) == 1


HOSTILE = (
    "nul \0 inside",
    "lone \ud800 surrogate",
    "'; DROP TABLE sessions; --",
    "% %s ? :name {0}",
    "\\N",
    "\t\n\r\x7f\u2028",
    "x" * 100_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_stored(ingesting: IngestedStore, text: str) -> None:
    session, call = next_id(), next_id()
    start = changed(
        started(session, call, arguments=text.encode("utf-8", "surrogatepass")),
        tool_name=text,
        call_id=text,
        title=text,
    )
    end = changed(ended(session, call), error_kind=text)
    said = changed(message(session), role=text, wire_format=text)
    ingesting.ingest(opened(session, name=text), start, end, said)
    assert not ingesting.rejections()
    readable = text.replace("\0", "\\0").replace("\ud800", "\\ud800")
    assert ingesting.rows(schema.sessions, "name") == [(readable,)]
    assert ingesting.rows(schema.invocations, "tool_name", "call_id") == [(readable, readable)]
    assert ingesting.rows(schema.messages, "role") == [(readable,)]


def append_raw(
    store: IngestedStore, monkeypatch: pytest.MonkeyPatch, fact: bytes, body: bytes
) -> None:
    """Append a frame with any bytes in place of a fact."""

    def spell(_: object) -> bytes:
        return fact

    with monkeypatch.context() as patch:
        patch.setattr("tooltrail.journal.log.fact_json", spell)
        store.append(message(next_id())._replace(bodies=[body]))


@pytest.mark.parametrize(
    "fact",
    [
        b'{"kind":"session.renamed","v":1}',
        b'{"kind":"session.closed","v":2}',
        b'{"kind":"session.closed","v":1}',
        b'{"at":"0001-01-01T00:00:00+23:00","kind":"session.closed","session":"x","v":1}',
        b"not JSON",
        b"nul \0 and \xff bytes",
        b"[" * 100_000,
        b'{"kind":"message","v":1,"v":1}',
    ],
    ids=range(8),
)
def test_a_frame_that_holds_no_known_fact_is_rejected_with_its_bytes(
    ingesting: IngestedStore, monkeypatch: pytest.MonkeyPatch, fact: bytes
) -> None:
    append_raw(ingesting, monkeypatch, fact, b"body")
    ingesting.ingest(message(next_id()))
    ((n, data),) = ingesting.rows(schema.rejected_facts, "n", "data")
    assert (n, data) == (0, fact + b"\4\0\0\0body")
    assert ingesting.rows(schema.ledger_entries, "n", "kind") == [(0, "unknown"), (1, "message")]
    assert ingesting.count(schema.messages) == 1


def frames_of(store: IngestedStore) -> list[Frame]:
    found = read_journal(store.spool / "journal", Cursor())
    return [one for one in found if isinstance(one, Frame)]


def damage(store: IngestedStore, frame: Frame) -> None:
    file = store.spool / "journal" / f"{frame.segment:08d}.seg"
    data = bytearray(file.read_bytes())
    data[frame.offset + 70] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize("is_apart", [True, False])
def test_damaged_frames_are_kept_and_what_is_behind_them_is_ingested(
    ingesting: IngestedStore, is_apart: bool
) -> None:
    session = next_id()
    # One by one, since each is proof that those before it were acknowledged.
    for _ in range(6):
        ingesting.append(message(session))
    frames = frames_of(ingesting)
    damage(ingesting, frames[2])
    damage(ingesting, frames[3] if not is_apart else frames[4])
    done = ingesting.ingest()
    assert done.frame_count == 4
    gone = {2, 4} if is_apart else {2, 3}
    kept = [(n,) for n in range(6) if n not in gone]
    assert ingesting.rows(schema.ledger_entries, "n") == kept
    assert ingesting.rows(schema.rejected_facts, "n")[0] == (None,)
    assert ingesting.rows(schema.journals, "entry_count", "next_index") == [(4, 6)]
    ingesting.ingest(message(session))
    assert ingesting.rows(schema.ledger_entries, "n")[-1] == (6,)


def test_the_index_goes_on_behind_damage_in_a_later_run(ingesting: IngestedStore) -> None:
    session = next_id()
    for _ in range(4):
        ingesting.append(message(session))
    frames = frames_of(ingesting)
    damage(ingesting, frames[1])
    damage(ingesting, frames[2])
    damage(ingesting, frames[3])
    ingesting.ingest()
    # Nothing proves yet that the damaged frames were acknowledged.
    assert ingesting.rows(schema.ledger_entries, "n") == [(0,)]
    ingesting.ingest(message(session))
    assert ingesting.count(schema.ledger_entries) == 2
    assert ingesting.count(schema.messages) == 2


def test_a_segment_that_is_missing_is_reported(sqlite_ingesting: IngestedStore) -> None:
    store, session = sqlite_ingesting, next_id()
    large = b"x" * (6 << 20)
    for n in range(9):
        store.append(message(session, large + bytes([n])))
    numbers = sorted(one.name for one in (store.spool / "journal").glob("*.seg"))
    assert len(numbers) >= 3
    (store.spool / "journal" / numbers[1]).unlink()
    store.ingest()
    (reason,) = store.rejections()
    assert "are missing" in reason
    assert store.rows(schema.rejected_facts, "n") == [(None,)]
    names = ("entry_count", "next_index")
    ((entry_count, next_index),) = store.rows(schema.journals, *names)
    assert entry_count < next_index == 9
    assert not list((store.spool / "journal").glob("0000000[12].seg"))
