"""What waits is sorted by session, in an order in which nobody misses anything."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.store._outbox import delivery_windows as windows
from tooltrail.store._outbox.delivery_windows import One, batches_of, iter_windows
from tooltrail.store._outbox.journal_lines import Line
from tooltrail.store._recording.batches import MOST
from tooltrail.store.entries import (
    CallEnded,
    Entry,
    MessageAdded,
    SessionEnded,
    SessionOpened,
)

NAMES = [UUID(int=n) for n in range(1, 5)]


def ones_of(entries: Sequence[Entry], raw: bytes = b"") -> list[One]:
    return [One(Line(number, raw, raw), entry) for number, entry in enumerate(entries, 1)]


def message(session: UUID) -> MessageAdded:
    return MessageAdded(session=session, role="user", text="")


def call(session: UUID, key: str | None = None) -> CallEnded:
    return CallEnded(session=session, tool_name="x", complete_output="{}", idempotency_key=key)


def delivered(entries: Sequence[Entry], names: dict[UUID, UUID] | None = None) -> list[list[int]]:
    """The numbers of the lines, batch by batch."""
    return [
        [one.line.number for one in batch]
        for window in iter_windows(ones_of(entries))
        for batch in batches_of(window, names or {})
    ]


def test_sessions_in_turn_are_delivered_one_after_the_other() -> None:
    a, b, c = NAMES[:3]
    entries = [message(one) for one in (a, b, c, a, b, a)]
    assert delivered(entries) == [[1, 4, 6], [2, 5], [3]]


def test_a_transaction_and_a_window_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [message(NAMES[0]) for _ in range(MOST + 1)]
    assert [len(batch) for batch in delivered(many)] == [MOST, 1]
    monkeypatch.setattr(windows, "MOST_IN_WINDOW", 2)
    assert delivered([message(one) for one in NAMES[:2] * 2]) == [[1], [2], [3], [4]]
    monkeypatch.undo()
    monkeypatch.setattr(windows, "MOST_BYTES", 10)
    some = list(iter_windows(ones_of([message(NAMES[0])] * 5, b"12345")))
    assert [len(window) for window in some] == [2, 2, 1]


def test_two_names_of_one_session_keep_one_order() -> None:
    a, b, real = NAMES[:3]
    entries = [message(real), message(a), message(b), message(real)]
    assert delivered(entries, {a: real}) == [[1], [2], [4], [3]]


def test_a_session_begins_a_batch() -> None:
    a, b = NAMES[:2]
    entries: list[Entry] = [
        SessionOpened(id=a),
        message(b),
        message(a),
        SessionOpened(id=b),
        message(b),
    ]
    assert delivered(entries) == [[1, 3], [2], [4, 5]]


def test_the_first_record_with_a_key_is_the_first_that_is_delivered() -> None:
    a, b = NAMES[:2]
    entries: list[Entry] = [
        message(b),
        message(a),
        call(a, "k"),
        call(b, "k"),
        message(a),
        call(a, "k"),
    ]
    assert delivered(entries) == [[1], [2, 3], [4], [5], [6]]
    assert delivered([call(a, "k"), message(b), call(a, "k")]) == [[1, 3], [2]]
    twice: list[Entry] = [SessionOpened(id=one, idempotency_key="s") for one in (a, b)]
    assert delivered([*twice, message(a), message(b)]) == [[1], [2, 4], [3]]


def test_a_session_with_a_key_waits_for_the_one_that_started_it() -> None:
    parent, child, real = NAMES[:3]
    opened = SessionOpened(id=child, parent=parent, idempotency_key="s")
    entries: list[Entry] = [message(real), SessionOpened(id=parent), opened, message(parent)]
    assert delivered(entries, {child: real}) == [[1], [2], [3], [4]]


@given(st.data(), st.lists(st.sampled_from(NAMES), min_size=1, max_size=40))
def test_each_is_delivered_once_and_in_the_order_of_its_session(
    data: st.DataObject, sessions: list[UUID]
) -> None:
    keys, opened = st.none() | st.sampled_from("ab"), list[UUID]()
    entries: list[Entry] = []
    for name in sessions:
        key = data.draw(keys)
        if name not in opened:
            parent = data.draw(st.none() | st.sampled_from(opened)) if opened else None
            entries.append(SessionOpened(id=name, parent=parent, idempotency_key=key))
            opened.append(name)
        else:
            kinds: list[Entry] = [message(name), call(name, key), SessionEnded(session=name)]
            entries.append(data.draw(st.sampled_from(kinds)))
    batches = delivered(entries)
    order = [number for batch in batches for number in batch]
    assert sorted(order) == list(range(1, len(entries) + 1))
    for batch in batches:
        assert len({entries[number - 1].session for number in batch}) == 1
    for name in opened:
        mine = [number for number in order if entries[number - 1].session == name]
        assert mine == sorted(mine)
    begins = [entry.id for entry in (entries[n - 1] for n in order) if is_opening(entry)]
    for entry in entries:
        if isinstance(entry, SessionOpened) and entry.parent is not None:
            assert begins.index(entry.parent) < begins.index(entry.id)
    for key in "ab":
        known = [n for n in order if getattr(entries[n - 1], "idempotency_key", None) == key]
        assert not known or known[0] == min(known)


def is_opening(entry: Entry) -> bool:
    return isinstance(entry, SessionOpened)
