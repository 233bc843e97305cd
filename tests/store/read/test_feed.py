"""The feed gives what begins and ends, each once."""

from tests.support.new_store_read import ReadStore, call, entries_of

from tooltrail.journal.clock import new_id
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.read.feed import InvocationFeed

SESSION = new_id()


def test_the_first_look_gives_nothing(new_store: ReadStore) -> None:
    feed = InvocationFeed(new_store.reader)
    assert feed.poll() == []
    new_store.record(*call(SESSION, 1, receipt=b"r").entries())
    assert InvocationFeed(new_store.reader).poll() == []


def test_what_begins_and_ends_is_given_once(new_store: ReadStore) -> None:
    before = call(SESSION, 1, receipt=b"r", state="success")
    new_store.record(before.start_entry())
    feed = InvocationFeed(new_store.reader)
    assert feed.poll() == []
    slow, quick = call(SESSION, 2, receipt=b"r"), call(SESSION, 3, receipt=b"r")
    new_store.record(slow.start_entry(), *quick.entries())
    assert before.ended is not None
    assert slow.ended is not None
    assert [(one.id, one.state) for one in feed.poll()] == [
        (slow.started.id, "started"),
        (quick.started.id, "success"),
    ]
    assert feed.poll() == []
    new_store.record(slow.end_entry(slow.ended), before.end_entry(before.ended))
    assert [one.id for one in feed.poll()] == [before.started.id, slow.started.id]
    assert feed.poll() == []


def test_a_filter_looks_at_each_as_it_is(new_store: ReadStore) -> None:
    feed = InvocationFeed(new_store.reader, InvocationFilter(states=("error",), tools=("bash",)))
    feed.poll()
    made = [
        call(SESSION, 1, receipt=b"r"),
        call(SESSION, 2, receipt=b"r", state="error"),
        call(SESSION, 3, receipt=b"r", state="error", tool="other"),
    ]
    new_store.record(*entries_of(made))
    assert [one.id for one in feed.poll()] == [made[1].started.id]


def test_more_than_one_query_takes_are_given(sqlite_new_store: ReadStore) -> None:
    feed = InvocationFeed(sqlite_new_store.reader)
    feed.poll()
    made = [call(SESSION, n, receipt=b"r", state=None) for n in range(1_200)]
    sqlite_new_store.record(*entries_of(made))
    assert [one.id for one in feed.poll()] == [one.started.id for one in made]
    assert feed.poll() == []
