"""The work of `tooltrail coverage`: compare a store with the transcripts of an agent."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tooltrail.records.errors import NotFoundError
from tooltrail.store import InvocationDetail, Reader


def compare(store: Reader, transcripts: Reader) -> Iterator[dict[str, Any]]:
    """Compare the sessions of transcripts with the same sessions of a store, call by call.

    Yields:
        For each call its ids, its tool, and the `result`: `matched`, `differing`, `missing` (only
        the transcript has it) or `extra` (only the store has it). `differing` names what differs.
    """
    for session in reversed(transcripts.sessions()):
        theirs = _calls_of(transcripts, session.id)
        ours = _calls_of(store, session.id)
        for call_id, call in (theirs | ours).items():
            mine, other = (_compared(found.get(call_id, call)) for found in (ours, theirs))
            differing = [name for name in mine if mine[name] != other[name]]
            result = "differing" if differing else "matched"
            result = result if call_id in ours else "missing"
            one = call.summary
            yield {
                "result": result if call_id in theirs else "extra",
                "id": one.id,
                "session_id": one.session_id,
                "call_id": one.call_id,
                "tool_name": one.tool_name,
                "differing": differing,
            }


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
