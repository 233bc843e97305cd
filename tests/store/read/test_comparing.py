"""What a comparison reads: the same call before, and the calls of a session a few at a time."""

import pytest
from tests.support.outputs import returned
from tests.support.recording import run_tool

from tooltrail.journal.session import Session
from tooltrail.records import NotFoundError, ToolCall
from tooltrail.store import InvocationDetail, Store
from tooltrail.store.read.comparing import calls_of, same_call_before


def run(session: Session, arguments: str, tool: str = "Read") -> str:
    call = ToolCall(tool_name=tool, arguments_raw=arguments)
    return str(session.start(call).finish(returned(tool, "text")).invocation_id)


def before(store: Store, name: str) -> InvocationDetail:
    return same_call_before(store.reader, store.reader.invocation(name))


@pytest.mark.both_engines
@pytest.mark.parametrize("arguments", ['{"path": "a"}', '{"path": "a\0\ud800"}', ""])
def test_the_same_call_before_has_the_same_tool_and_bytes(store: Store, arguments: str) -> None:
    first = run(store.open_session(), arguments)
    session = store.open_session()
    second = run(session, arguments)
    for other in (arguments + " ", arguments.replace("\0", "\\u0000") + "\n"):
        run(session, other)
    run(session, arguments, tool="Write")
    third = run(session, arguments)
    assert str(before(store, third).summary.id) == second
    assert str(before(store, second).summary.id) == first
    with pytest.raises(NotFoundError, match=f"^no call of Read before invocation {first} has"):
        before(store, first)


def test_all_calls_of_a_session_are_read_in_order(store: Store) -> None:
    session, other = store.open_session(), store.open_session()
    assert list(calls_of(store.reader, session.id)) == []
    made = [run(session, f'{{"n": {n}}}') for n in range(101)]
    run_tool(other, "x")
    found = list(calls_of(store.reader, session.id))
    assert [str(one.summary.id) for one in found] == made
    assert [one.arguments for one in found] == [b'{"n": %d}' % n for n in range(101)]
