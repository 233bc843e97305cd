"""Calls that were made again with the same arguments."""

import pytest
from tests.support.recorded_calls import call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.journal.clock import new_id
from tooltrail.store import InvocationFilter

A, B = new_id(), new_id()


@pytest.mark.both_engines
def test_attempts_are_of_one_session_one_tool_and_the_same_arguments(parts: StoreParts) -> None:
    make, test = b'{"command":"make"}', b'{"command":"make test"}'
    failed, succeeded = {"exit_status": 2}, {"exit_status": 0}
    made = [
        call(A, 1, arguments=make, receipt=b"", end=failed),
        call(B, 2, arguments=make, receipt=b"", end=failed),
        call(A, 3, arguments=test, receipt=b"", end=succeeded),
        call(A, 4, arguments=make, tool="sh", receipt=b"", end=succeeded),
        call(B, 5, arguments=make, receipt=b"", end=failed),
        call(A, 6, arguments=make, receipt=b"", end=failed),
        call(A, 7, arguments=make, receipt=b"", end=succeeded),
        call(A, 8, arguments=b'{"command": "make"}', receipt=b"", end=succeeded),
    ]
    parts.ingest(*entries_of(made))
    found = parts.reader.retries()
    assert [[one.id for one in retried.attempts] for retried in found] == [
        [made[n].started.id for n in (0, 5, 6)],
        [made[n].started.id for n in (1, 4)],
    ]
    assert [retried.outcomes for retried in found] == [
        ("exit 2", "exit 2", "ok"),
        ("exit 2", "exit 2"),
    ]
    assert [retried.is_changed for retried in found] == [True, False]
    assert parts.reader.retries(limit=1) == found[:1]
    assert parts.reader.retries(InvocationFilter(sessions=(B,))) == found[1:]
    only_failed = parts.reader.retries(InvocationFilter(outcomes=("exit",)))
    assert [len(retried.attempts) for retried in only_failed] == [2, 2]


@pytest.mark.both_engines
def test_erased_arguments_are_no_repetition(parts: StoreParts) -> None:
    parts.ingest(*entries_of([call(A, n, receipt=b"") for n in range(4)]))
    parts.alter("UPDATE surfaces SET arguments = NULL WHERE invocation_key > 2")
    (retried,) = parts.reader.retries()
    assert [one.seq for one in retried.attempts] == [1, 2]


def test_a_damaged_attempt_is_named_and_hides_no_other(parts: StoreParts) -> None:
    parts.ingest(*entries_of([call(A, n, receipt=b"") for n in range(3)]))
    parts.alter("UPDATE invocations SET duration_ms = 'x', started_at = 'y' WHERE seq = 2")
    (retried,) = parts.reader.retries()
    assert [one.damage is None for one in retried.attempts] == [True, False, True]


@pytest.mark.both_engines
def test_an_empty_store_has_no_retries(parts: StoreParts) -> None:
    assert parts.reader.retries() == []
