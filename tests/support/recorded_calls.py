"""Recorded tool calls with everything that the store must return."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from tests.support.call_facts import POLICY_JSON, as_shown, command, ended, started
from tests.support.store_parts import StoreParts, spool

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import canonical_json
from tooltrail.records.facts import CallEnded, CallStarted, Shown
from tooltrail.records.states import InvocationState


@dataclass
class Call:
    """A call of a tool.

    Attributes:
        start: entry of its start.
        end: entry of its end; None for an open call.
        canonical: body of the canonical result; None if the ingester makes it.
        receipt: body of the receipt; None if the ingester makes it.
    """

    start: Entry
    end: Entry | None = None
    canonical: bytes | None = None
    receipt: bytes | None = None
    policy = POLICY_JSON

    @property
    def started(self) -> CallStarted:
        return cast("CallStarted", self.start.fact)

    @property
    def ended(self) -> CallEnded | None:
        return None if self.end is None else cast("CallEnded", self.end.fact)

    @property
    def arguments(self) -> bytes:
        return self.start.bodies[0]

    @property
    def document(self) -> bytes:
        """The complete output."""
        assert self.end is not None
        return self.end.bodies[0]

    @property
    def shown(self) -> Shown:
        assert self.ended is not None
        assert self.ended.shown is not None
        return self.ended.shown

    def entries(self) -> list[Entry]:
        """The entries for the journal."""
        return [one for one in (self.start, self.end) if one is not None]

    def capture(self, parts: StoreParts, data: bytes, **changes: Any) -> None:
        """Capture its stdout in the spool instead of the entry."""
        assert self.end is not None
        assert self.ended is not None
        spool(parts, self.started.id, data)
        stdout, *others = self.ended.streams
        path = f"{self.started.id}/stdout.zst"
        streams = (stdout.replaced(spooled=path), *others)
        bodies = [self.document, *self.end.bodies[2:]]
        self.end = Entry(self.ended.replaced(streams=streams, **changes), bodies)


def call(
    session: UUID,
    seconds: float = 0.0,
    *,
    tool: str = "bash",
    family: str = "command",
    arguments: bytes = b'{"command":"ls"}',
    stdout: bytes = b"",
    stderr: bytes = b"",
    state: InvocationState | None = "success",
    receipt: bytes | None = None,
    canonical: bytes | None = None,
    start: dict[str, Any] | None = None,
    end: dict[str, Any] | None = None,
) -> Call:
    """A call of a command; without `receipt` the ingester makes one."""
    id_ = new_id()
    names: dict[str, Any] = {"tool_name": tool, "family": family, "call_id": None}
    begun = started(session, id_, arguments=arguments, at=seconds, **{**names, **(start or {})})
    if state is None:
        return Call(begun)
    if receipt is None:
        shown, bodies = None, list[bytes]()
    else:
        envelope = {
            "tool_name": tool,
            "status": "success" if state == "success" else "error",
            "summary_text": "",
            "result": None,
            "error": None,
        }
        canonical = canonical or canonical_json.encode(envelope)
        shown, bodies = as_shown(canonical, receipt), [canonical, receipt]
    output = command(stdout, stderr, tool=tool)
    members: dict[str, Any] = {"state": state, "duration_ms": 5, **(end or {})}
    done = ended(session, id_, output, at=seconds + 0.5, shown=shown, bodies=bodies, **members)
    return Call(begun, done, canonical, receipt)


def entries_of(calls: Sequence[Call]) -> list[Entry]:
    """The entries of several calls, one call after the other."""
    return [entry for one in calls for entry in one.entries()]
