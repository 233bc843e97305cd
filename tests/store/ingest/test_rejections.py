"""What cannot be applied is kept with its bytes and the reason, and blocks nothing behind it."""

import pytest
from tests.support import schema
from tests.support.call_facts import (
    changed,
    ended,
    message,
    moment,
    next_id,
    offered,
    opened,
    started,
)
from tests.support.store_parts import StoreParts

from tooltrail.journal import Entry, Frame, read_journal
from tooltrail.journal.frames import Cursor
from tooltrail.records import DamageError
from tooltrail.records.digests import digest_of
from tooltrail.store.ingest.batch import subject_of

CONTENT = (
    *(schema.sessions, schema.messages, schema.invocations, schema.surfaces, schema.streams),
    *(schema.omissions, schema.bodies, schema.tools, schema.agent_legs, schema.artifacts),
)


def content(store: StoreParts) -> list[list[tuple[object, ...]]]:
    """All rows but those of the ledger and of rejected facts."""
    return [store.rows(table) for table in CONTENT]


def two_of(kind: str) -> tuple[list[Entry], Entry, Entry]:
    """Facts that come first, a fact, and another one of the same id."""
    session, subject = next_id(), next_id()
    match kind:
        case "session":
            return [], opened(session, name="n"), opened(session, name="other")
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


@pytest.mark.parametrize(
    "column", ["entry_count", "next_index", "segment", "segment_offset", "head"]
)
def test_a_damaged_row_of_a_journal_is_named_and_other_journals_go_on(
    parts: StoreParts, column: str
) -> None:
    other, session = parts.other_journal(), next_id()
    parts.ingest(message(session), message(session))
    ((journal,),) = parts.rows(schema.journals, "id")
    name = f"journal {journal}"
    parts.run(f"UPDATE journals SET {column} = 'x'")
    with pytest.raises(
        DamageError, match=f"{name}: row 1 of journals is damaged: {column} holds no"
    ):
        parts.ingest(message(session))
    assert other.ingest(message(session)).frame_count == 1
    assert name in {one.subject for one in parts.damage()}


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("head", "NULL"),
        ("head", "other"),
        ("next_index", "1"),
        ("next_index", "7"),
        ("segment", "3"),
        ("segment", "0"),
        ("segment_offset", "5000000"),
        ("segment_offset", "100"),
        ("frame_offset", "100"),
    ],
)
def test_a_row_of_a_journal_that_does_not_fit_the_journal_keeps_no_fact_away(
    parts: StoreParts, column: str, value: str
) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    ((old,),) = parts.rows(schema.journals, column)
    if value == "other":
        value = parts.literal(digest_of(b"other"))
    parts.run(f"UPDATE journals SET {column} = {value}")
    parts.ingest(message(session))
    assert parts.count(schema.messages) == 3
    assert parts.count(schema.journals) == 2
    (notice,) = parts.rejections()
    assert "its row in the database was altered" in notice
    parts.run(f"UPDATE journals SET {column} = ? WHERE branch_of IS NULL", [old])
    assert parts.damage() == []
    assert parts.ingest(message(session)).frame_count == 1


_RESET = (
    "UPDATE journals SET segment = {}, segment_offset = {}, next_index = 0, entry_count = 0,"
    " head = NULL, frame_offset = NULL"
)


@pytest.mark.parametrize("statement", ["DELETE FROM journals", _RESET])
def test_facts_are_not_stored_twice_after_the_row_of_a_journal_was_lost_or_reset(
    parts: StoreParts, statement: str
) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    first = frames_of(parts)[0]
    parts.alter(statement.format(first.segment, first.offset))
    with pytest.raises(DamageError, match="restore the database from a backup"):
        parts.ingest(message(session))
    assert parts.count(schema.ledger_entries) == parts.count(schema.messages) == 2
    assert not parts.rejections()


@pytest.mark.both_engines
@pytest.mark.parametrize("number", [(1 << 63) - 1, 1 << 62])
@pytest.mark.parametrize(
    "column", ["sessions.key", "invocations.key", "invocations.seq", "messages.key", "messages.seq"]
)
def test_a_number_that_leaves_no_room_for_others_keeps_no_later_fact_away(
    parts: StoreParts, column: str, number: int
) -> None:
    session, call = next_id(), next_id()
    parts.ingest(started(session, call), message(session))
    table, _, name = column.partition(".")
    parts.alter(f"UPDATE {table} SET {name} = {number}")
    other = next_id()
    later = [started(session, other), message(session), message(next_id())]
    assert parts.ingest(*later).rejected_count == 0
    assert (parts.count(schema.invocations), parts.count(schema.messages)) == (2, 3)
    assert bool(parts.damage()) == (column != "messages.key")  # which no fact has


@pytest.mark.parametrize("table", ["sessions", "invocations", "messages"])
def test_a_row_that_was_removed_keeps_no_later_fact_away(parts: StoreParts, table: str) -> None:
    session, call, tools = next_id(), next_id(), b'{"name":"ls"}'
    parts.ingest(started(session, call), offered(session, tools))
    parts.alter(f"DELETE FROM {table}")
    other, later = next_id(), next_id()
    assert parts.ingest(started(other, later), offered(other, tools)).rejected_count == 0
    keys = [key for (key,) in parts.rows(schema.invocations, "session_key")]
    assert len({*keys}) == len(keys) > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_the_same_fact_twice_changes_nothing_but_the_ledger(
    parts: StoreParts, kind: str, is_one_batch: bool
) -> None:
    first, fact, _ = two_of(kind)
    parts.ingest(*first, fact)
    before = content(parts)
    again = [changed(fact, at=moment(50))] * 2 if is_one_batch else [fact]
    assert parts.ingest(*again).rejected_count == 0
    assert content(parts) == before
    assert parts.count(schema.ledger_entries) == len(first) + 1 + len(again)


@pytest.mark.both_engines
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_another_fact_of_the_same_id_is_rejected(
    parts: StoreParts, kind: str, is_one_batch: bool
) -> None:
    first, fact, other = two_of(kind)
    parts.append(*first, fact)
    if not is_one_batch:
        parts.ingest()
    behind = message(next_id())
    assert parts.ingest(other, behind).rejected_count == 1
    (reason,) = parts.rejections()
    subject = subject_of(other.fact)
    assert str(subject) in reason
    (journal,) = parts.rows(schema.journals, "id")
    assert f"as entry {len(first)} of journal {journal[0]}, with other content" in reason
    names = ("journal_key", "n", "subject_id")
    assert parts.rows(schema.rejected_facts, *names) == [(1, len(first) + 1, subject)]
    assert parts.count(schema.messages) == (2 if kind == "message" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_another_fact_from_another_journal_is_rejected(parts: StoreParts, kind: str) -> None:
    first, fact, other = two_of(kind)
    parts.ingest(message(next_id()), *first, fact)
    elsewhere = parts.other_journal()
    before = content(parts)
    assert elsewhere.ingest(fact).rejected_count == 0
    assert elsewhere.ingest(other).rejected_count == 1
    journal = parts.rows(schema.journals, "id")[0][0]
    assert f"as entry {len(first) + 1} of journal {journal}" in parts.rejections()[0]
    assert content(parts) == before


def test_a_session_that_another_machine_opened_late_is_compared_with_that_fact(
    parts: StoreParts,
) -> None:
    session, elsewhere = next_id(), parts.other_journal()
    parts.ingest(message(session), message(session), opened(next_id(), name="n"))
    elsewhere.ingest(message(session), opened(session, name="n"))
    assert parts.ingest(opened(session, at=9, name="n")).rejected_count == 0
    assert parts.ingest(opened(session, name="other")).rejected_count == 1
    names = ("journal_key", "open_journal_key", "entry")
    assert (1, 2, 1) in parts.rows(schema.sessions, *names)


def test_a_call_that_another_machine_ended_is_compared_with_that_fact(parts: StoreParts) -> None:
    session, call, elsewhere = next_id(), next_id(), parts.other_journal()
    parts.ingest(started(session, call), message(session))
    assert elsewhere.ingest(ended(session, call)).rejected_count == 0
    assert parts.ingest(ended(session, call, at=30)).rejected_count == 0
    assert parts.ingest(ended(session, call, b"other\n")).rejected_count == 1
    names = ("journal_key", "start_entry", "end_journal_key", "end_entry")
    assert parts.rows(schema.invocations, *names) == [(1, 0, 2, 0)]


def test_an_end_without_a_start_is_rejected(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    parts.ingest(ended(session, call))
    assert parts.rejections() == [f"no call {call} was started"]
    assert not any(content(parts))


def test_an_end_of_another_session_is_rejected(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    parts.ingest(started(session, call), ended(next_id(), call))
    assert parts.rejections() == [f"call {call} is of session {session}"]
    assert parts.rows(schema.invocations, "state") == [("started",)]


def without_body(entry: Entry, n: int) -> Entry:
    return entry._replace(bodies=[*entry.bodies[:n], *entry.bodies[n + 1 :]])


@pytest.mark.parametrize("n", [0, 1])
def test_an_end_with_a_missing_body_is_rejected(parts: StoreParts, n: int) -> None:
    session, call = next_id(), next_id()
    end = ended(session, call)
    parts.ingest(started(session, call), without_body(end, n), message(session))
    assert parts.rejections() == [f"body {digest_of(end.bodies[n])} is missing"]
    assert parts.count(schema.messages) == 1


@pytest.mark.parametrize("kind", ["message", "start"])
def test_a_fact_with_a_missing_body_leaves_nothing(parts: StoreParts, kind: str) -> None:
    _, fact, _ = two_of(kind)
    parts.ingest(fact._replace(bodies=[]))
    assert parts.rejections() == [f"body {digest_of(fact.bodies[0])} is missing"]
    assert not any(content(parts))
    # The fact itself may come again, with all its bodies.
    assert parts.ingest(fact).rejected_count == 0


def test_a_rejected_fact_takes_no_place_in_its_session(parts: StoreParts) -> None:
    session = next_id()
    good, bad = message(session), message(session, b"gone")._replace(bodies=[])
    parts.ingest(bad, good, bad, message(session))
    assert parts.rows(schema.messages, "seq") == [(1,), (2,)]


@pytest.mark.both_engines
def test_integers_beyond_64_bits_are_rejected_alone(parts: StoreParts) -> None:
    session, calls = next_id(), [next_id() for _ in range(40)]
    entries = [started(session, call) for call in calls]
    for n in (3, 17, 39):
        entries[n] = changed(entries[n], position=1 << 80)
    done = parts.ingest(*entries)
    assert (done.frame_count, done.rejected_count) == (40, 3)
    kept = [
        (call, seq + 1)
        for seq, call in enumerate(call for n, call in enumerate(calls) if n not in (3, 17, 39))
    ]
    assert parts.rows(schema.invocations, "id", "seq") == kept
    assert parts.rows(schema.rejected_facts, "n") == [(3,), (17,), (39,)]


def test_an_end_in_the_state_started_is_rejected(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    end = changed(ended(session, call), state="started")
    parts.ingest(started(session, call), end, message(session))
    assert len(parts.rejections()) == 1
    assert parts.count(schema.messages) == 1


HOSTILE = (
    "nul \0 inside",
    "lone \ud800 surrogate",
    "'; DROP TABLE sessions; --",
    "% %s ? :name {0}",
    "\\N",
    "\t\n\r\x7f\u2028",
    "x" * 100_000,
)


@pytest.mark.both_engines
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_stored(parts: StoreParts, text: str) -> None:
    session, call = next_id(), next_id()
    start = changed(
        started(session, call, arguments=text.encode("utf-8", "surrogatepass")),
        tool_name=text,
        call_id=text,
        title=text,
    )
    end = changed(ended(session, call), error_kind=text)
    said = changed(message(session), role=text, wire_format=text)
    parts.ingest(opened(session, name=text), start, end, said)
    assert not parts.rejections()
    readable = text.replace("\0", "\\0").replace("\ud800", "\\ud800")
    assert parts.rows(schema.sessions, "name") == [(readable,)]
    assert parts.rows(schema.invocations, "tool_name", "call_id") == [(readable, readable)]
    assert parts.rows(schema.messages, "role") == [(readable,)]


def append_raw(
    store: StoreParts, monkeypatch: pytest.MonkeyPatch, fact: bytes, body: bytes
) -> None:
    """Append a frame with any bytes in place of a fact."""

    def spell(_: object) -> bytes:
        return fact

    with monkeypatch.context() as patch:
        patch.setattr("tooltrail.journal.log.fact_json", spell)
        store.append(message(next_id())._replace(bodies=[body]))


@pytest.mark.both_engines
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
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch, fact: bytes
) -> None:
    append_raw(parts, monkeypatch, fact, b"body")
    parts.ingest(message(next_id()))
    ((n, data),) = parts.rows(schema.rejected_facts, "n", "data")
    assert (n, data) == (0, fact + b"\4\0\0\0body")
    assert parts.rows(schema.ledger_entries, "n", "kind") == [(0, "unknown"), (1, "message")]
    assert parts.count(schema.messages) == 1


def frames_of(store: StoreParts) -> list[Frame]:
    found = read_journal(store.spool / "journal", Cursor())
    return [one for one in found if isinstance(one, Frame)]


def damage(store: StoreParts, frame: Frame) -> None:
    file = store.spool / "journal" / f"{frame.segment:08d}.seg"
    data = bytearray(file.read_bytes())
    data[frame.offset + 70] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize("is_apart", [True, False])
def test_damaged_frames_are_kept_and_what_is_behind_them_is_ingested(
    parts: StoreParts, is_apart: bool
) -> None:
    session = next_id()
    # One by one, since each is proof that those before it were acknowledged.
    for _ in range(6):
        parts.append(message(session))
    frames = frames_of(parts)
    damage(parts, frames[2])
    damage(parts, frames[3] if not is_apart else frames[4])
    done = parts.ingest()
    assert done.frame_count == 4
    gone = {2, 4} if is_apart else {2, 3}
    kept = [(n,) for n in range(6) if n not in gone]
    assert parts.rows(schema.ledger_entries, "n") == kept
    assert parts.rows(schema.rejected_facts, "n")[0] == (None,)
    assert parts.rows(schema.journals, "entry_count", "next_index") == [(4, 6)]
    parts.ingest(message(session))
    assert parts.rows(schema.ledger_entries, "n")[-1] == (6,)


def test_the_index_goes_on_behind_damage_in_a_later_run(parts: StoreParts) -> None:
    session = next_id()
    for _ in range(4):
        parts.append(message(session))
    frames = frames_of(parts)
    damage(parts, frames[1])
    damage(parts, frames[2])
    damage(parts, frames[3])
    parts.ingest()
    # Nothing proves yet that the damaged frames were acknowledged.
    assert parts.rows(schema.ledger_entries, "n") == [(0,)]
    parts.ingest(message(session))
    assert parts.count(schema.ledger_entries) == 2
    assert parts.count(schema.messages) == 2


def test_a_segment_that_is_missing_is_reported(parts: StoreParts) -> None:
    store, session = parts, next_id()
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


@pytest.mark.both_engines
def test_a_fact_that_a_damaged_ledger_entry_cannot_be_compared_with_blocks_nothing(
    parts: StoreParts,
) -> None:
    session, call, other = next_id(), next_id(), next_id()
    parts.ingest(started(session, call))
    hexed = "x'0102'" if parts.is_sqlite else "'\\x0102'"
    parts.alter(f"UPDATE ledger_entries SET fact = {hexed}")
    parts.ingest(started(session, call, arguments=b"{}"), started(session, other))
    assert "cannot be compared" in parts.rejections()[0]
    assert {one for (one,) in parts.rows(schema.invocations, "id")} == {call, other}
