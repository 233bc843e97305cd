"""Who follows a store is told of each beginning and each end once."""

from tests.support.recording import run_command

from tooltrail.journal.clock import new_id, now
from tooltrail.records import ToolCall
from tooltrail.store import InvocationFeed, InvocationFilter, Session, Store
from tooltrail.store._recording import writes
from tooltrail.store._recording.starting import Started, write_started

BASH = ToolCall(tool_name="Bash")


def told(feed: InvocationFeed) -> list[tuple[str, str]]:
    return [(view.tool_name, view.state) for view in feed.poll()]


def test_a_feed_begins_with_the_present(store: Store) -> None:
    session = store.open_session()
    run_command(session)
    running = session.start(BASH)
    feed = InvocationFeed(store.reader)
    assert told(feed) == []
    running.interrupt("stopped")
    assert told(feed) == [("Bash", "interrupted")]
    assert told(feed) == []


def test_what_begins_and_ends_between_two_looks_is_told_once(store: Store) -> None:
    session = store.open_session()
    feed = InvocationFeed(store.reader)
    assert told(feed) == []
    first = session.start(ToolCall(tool_name="first"))
    run_command(session)
    assert told(feed) == [("first", "started"), ("Bash", "success")]
    first.interrupt("stopped")
    assert told(feed) == [("first", "interrupted")]


def test_a_filter_holds_for_each_as_it_is_when_it_is_told(store: Store) -> None:
    session = store.open_session()
    feed = InvocationFeed(store.reader, InvocationFilter(states=("interrupted",)))
    feed.poll()
    invocation = session.start(BASH)
    assert told(feed) == []
    invocation.interrupt("stopped")
    assert told(feed) == [("Bash", "interrupted")]


def test_more_than_one_query_takes_is_told_in_order(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    feed = InvocationFeed(sqlite_store.reader)
    feed.poll()
    start_many(sqlite_store, session, 1_100)
    views = feed.poll()
    assert [view.seq for view in views] == list(range(1_100))
    assert feed.poll() == []
    start_many(sqlite_store, session, 3)
    assert [view.seq for view in feed.poll()] == [1_100, 1_101, 1_102]


def start_many(store: Store, session: Session, count: int) -> None:
    """Starts in one transaction, which is quicker."""
    family = store.families.named("command")
    with store.database.write() as connection:
        chain = writes.lock_chain(connection, session.key, session.id)
        for _ in range(count):
            started = Started(new_id(), now(), BASH, family, store.policy)
            write_started(
                connection, chain, started.beginning, writes.Body.of(BASH.arguments_bytes)
            )


def test_what_is_committed_late_is_told_although_a_later_one_was_told_before(
    postgres_store: Store,
) -> None:
    store = postgres_store
    run_command(store.open_session())  # the policy, which both share, is there then
    feed = InvocationFeed(store.reader)
    feed.poll()
    late, early = store.open_session(), store.open_session()
    family = store.families.named("command")
    started = Started(new_id(), now(), ToolCall(tool_name="late"), family, store.policy)
    with store.database.write() as connection:
        chain = writes.lock_chain(connection, late.key, late.id)
        # The same arguments would make the other wait for this one.
        write_started(connection, chain, started.beginning, writes.Body.of(b'{"late":true}'))
        early.start(ToolCall(tool_name="early"))
        assert told(feed) == [("early", "started")]
    assert told(feed) == [("late", "started")]
