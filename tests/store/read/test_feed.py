"""The feed gives what begins and ends, each once."""

import pytest
from tests.support.call_facts import changed
from tests.support.recorded_calls import call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.journal.clock import new_id
from tooltrail.records.digests import digest_of
from tooltrail.store.expressions import Comparison
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.read.feed import InvocationFeed

SESSION = new_id()


@pytest.mark.both_engines
def test_the_first_look_gives_nothing(parts: StoreParts) -> None:
    feed = InvocationFeed(parts.reader)
    assert feed.poll() == []
    parts.ingest(*call(SESSION, 1, receipt=b"r").entries())
    assert InvocationFeed(parts.reader).poll() == []


@pytest.mark.both_engines
def test_what_begins_and_ends_is_given_once(parts: StoreParts) -> None:
    before = call(SESSION, 1, receipt=b"r", state="success")
    parts.ingest(before.start)
    feed = InvocationFeed(parts.reader)
    assert feed.poll() == []
    slow, quick = call(SESSION, 2, receipt=b"r"), call(SESSION, 3, receipt=b"r")
    parts.ingest(slow.start, *quick.entries())
    assert [(one.id, one.state) for one in feed.poll()] == [
        (slow.started.id, "started"),
        (quick.started.id, "success"),
    ]
    assert feed.poll() == []
    parts.ingest(*slow.entries()[1:], *before.entries()[1:])
    assert [one.id for one in feed.poll()] == [before.started.id, slow.started.id]
    assert feed.poll() == []


@pytest.mark.both_engines
def test_a_filter_looks_at_each_as_it_is(parts: StoreParts) -> None:
    feed = InvocationFeed(parts.reader, InvocationFilter(states=("error",), tools=("bash",)))
    feed.poll()
    made = [
        call(SESSION, 1, receipt=b"r"),
        call(SESSION, 2, receipt=b"r", state="error"),
        call(SESSION, 3, receipt=b"r", state="error", tool="other"),
    ]
    parts.ingest(*entries_of(made))
    assert [one.id for one in feed.poll()] == [made[1].started.id]


@pytest.mark.both_engines
def test_a_folder_that_is_new_is_compared_too(parts: StoreParts) -> None:
    inside = Comparison("cwd", "~", "repo")
    where = InvocationFilter(expression=parts.reader.resolved([inside]))
    feed = InvocationFeed(parts.reader, where)
    feed.poll()
    made = [call(SESSION, n, receipt=b"r") for n in (1, 2)]
    for one, folder in zip(made, (b"repo", b"other"), strict=True):
        environment = b'{"cwd":"/%b"}' % folder
        start = changed(one.start, environment=digest_of(environment))
        one.start = start._replace(bodies=[*start.bodies, environment])
    parts.ingest(*entries_of(made))
    assert [one.id for one in feed.poll()] == [made[0].started.id]


def test_more_than_one_query_takes_are_given(parts: StoreParts) -> None:
    feed = InvocationFeed(parts.reader)
    feed.poll()
    made = [call(SESSION, n, receipt=b"r", state=None) for n in range(1_200)]
    parts.ingest(*entries_of(made))
    assert [one.id for one in feed.poll()] == [one.started.id for one in made]
    assert feed.poll() == []


@pytest.mark.both_engines
def test_calls_of_several_journals_are_given_once(parts: StoreParts) -> None:
    feed, other = InvocationFeed(parts.reader), parts.other_journal()
    feed.poll()
    first, second = call(SESSION, 1, receipt=b"r"), call(SESSION, 2, receipt=b"r")
    other.ingest(first.start)
    parts.ingest(*second.entries())
    assert [one.id for one in feed.poll()] == [first.started.id, second.started.id]
    parts.ingest(second.start, *first.entries()[1:])
    assert [(one.id, one.state) for one in feed.poll()] == [(first.started.id, "success")]
    assert feed.poll() == []
