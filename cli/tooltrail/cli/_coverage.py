"""The work of `tooltrail coverage`: compare a store with the transcripts of an agent."""

from collections.abc import Iterator
from uuid import UUID

from tooltrail.records.errors import NotFoundError
from tooltrail.records.frozen import Frozen
from tooltrail.store import InvocationDetail, Reader


class Compared(Frozen):
    """One call in a transcript, in the store, or in both.

    Attributes:
        result: `matched`, `differing`, `missing` (only the transcript has it) or `extra` (only the
            store has it).
        id: id of the invocation.
        session_id: id of its session.
        call_id: the provider's id of the call.
        tool_name: name of the tool.
        differing: what differs: `arguments`, `state`, `output`, `receipt`, …
    """

    result: str
    id: UUID
    session_id: UUID
    call_id: str | None
    tool_name: str
    differing: tuple[str, ...]


def compare(store: Reader, transcripts: Reader) -> Iterator[Compared]:
    """Compare the sessions of transcripts with the same sessions of a store, call by call."""
    for session in reversed(transcripts.sessions()):
        theirs = _calls_of(transcripts, session.id)
        ours = _calls_of(store, session.id)
        for call_id, call in (theirs | ours).items():
            differing: tuple[str, ...] = ()
            if call_id not in theirs:
                result = "extra"
            elif call_id not in ours:
                result = "missing"
            elif differing := _differences(ours[call_id], theirs[call_id]):
                result = "differing"
            else:
                result = "matched"
            one = theirs.get(call_id, call).summary
            yield Compared(result, one.id, one.session_id, one.call_id, one.tool_name, differing)


def _calls_of(reader: Reader, session: UUID) -> dict[UUID, InvocationDetail]:
    try:
        return {call.summary.id: call for call in reader.conversation(session)[2]}
    except NotFoundError:
        return {}


def _differences(one: InvocationDetail, other: InvocationDetail) -> tuple[str, ...]:
    """The names of what differs between two records of a call."""
    mine, theirs = _compared(one), _compared(other)
    return tuple(name for name in mine if mine[name] != theirs[name])


def _compared(call: InvocationDetail) -> dict[str, object]:
    summary = call.summary
    return {
        "tool_name": summary.tool_name,
        "arguments": call.arguments,
        "state": summary.state,
        "exit_status": summary.exit_status,
        "output": call.complete_json,
        "streams": [(one.role, one.digest) for one in call.streams],
        "receipt": None if call.receipt is None else call.receipt.text,
        "damage": call.damage,
    }
