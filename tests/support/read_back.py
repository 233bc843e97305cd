"""What the adapters of frameworks recorded, read back through `store.reader`."""

from tooltrail.store import InvocationDetail, Session, Store

Calls = dict[str | None, InvocationDetail]


def recorded(store: Store, session: Session) -> Calls:
    """The calls of a session by their call ids, which differ."""
    found = store.reader.conversation(session.id)[2]
    calls = {one.summary.call_id: store.reader.invocation(one.summary.id) for one in found}
    assert len(calls) == len(found)
    return calls


def receipts(calls: Calls) -> dict[str | None, str]:
    return {call_id: one.receipt.text for call_id, one in calls.items() if one.receipt}


def states(calls: Calls) -> dict[str | None, str]:
    return {call_id: one.summary.state for call_id, one in calls.items()}


def streams(store: Store, one: InvocationDetail) -> dict[str, bytes]:
    """The complete output of a call by the roles of its streams."""
    found = dict[str, bytes]()
    for stream in one.streams:
        with store.reader.open_stream(stream) as source:
            found[stream.role] = source.read()
    return found


def said(store: Store, session: Session) -> list[tuple[str, str]]:
    """The role and the text of each message of a session."""
    return [(one.role, one.text) for one in store.reader.conversation(session.id)[1]]
