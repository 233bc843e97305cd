"""The work of `tooltrail coverage`: compare a store with the transcripts of an agent."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from tooltrail.records.errors import NotFoundError
from tooltrail.store import InvocationDetail, Reader


@dataclass(frozen=True, slots=True)
class Compared:
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
    differing: tuple[str, ...] = ()


def compare(store: Reader, transcripts: Reader) -> Iterator[Compared]:
    """Compare the sessions of transcripts with the same sessions of a store, call by call."""
    for session in reversed(transcripts.sessions()):
        theirs = _calls_of(transcripts, session.id)
        ours = _calls_of(store, session.id)
        for call_id, call in theirs.items():
            mine, other = (_compared(one) for one in (ours.get(call_id, call), call))
            differing = tuple(name for name in mine if mine[name] != other[name])
            result = "differing" if differing else "matched"
            yield _named(result if call_id in ours else "missing", call, differing)
        yield from (_named("extra", call) for name, call in ours.items() if name not in theirs)


def _calls_of(reader: Reader, session: UUID) -> dict[UUID, InvocationDetail]:
    try:
        return {call.summary.id: call for call in reader.conversation(session)[2]}
    except NotFoundError:
        return {}


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


def _named(result: str, call: InvocationDetail, differing: tuple[str, ...] = ()) -> Compared:
    one = call.summary
    return Compared(result, one.id, one.session_id, one.call_id, one.tool_name, differing)
