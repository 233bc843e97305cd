"""A session as an ordered conversation: messages, calls, and what the model was shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tooltrail.records import CanonicalResult
from tooltrail.store import InvocationDetail, MessageView, Reader, SessionView


@dataclass(frozen=True, slots=True)
class Transcript:
    """One session read back.

    Attributes:
        session: whose conversation it is.
        entries: messages and tool calls in the order in which they were recorded.
        compacted: what stands in place of the receipt, by invocation, where a call is compacted.
    """

    session: SessionView
    entries: tuple[MessageView | InvocationDetail, ...]
    compacted: Mapping[UUID, CanonicalResult] = field(default_factory=dict[UUID, CanonicalResult])


def load_transcript(reader: Reader, session: str) -> Transcript:
    """Read a session in a fixed number of queries.

    Args:
        reader: of the store.
        session: its id, a unique beginning or end of it, or `@last`.

    Raises:
        NotFoundError: no session has this name; AmbiguousNameError: several have.
    """
    view, messages, invocations = reader.conversation(session)
    entries: list[MessageView | InvocationDetail] = [*messages, *invocations]
    return Transcript(view, tuple(sorted(entries, key=_seq)))


def _seq(entry: MessageView | InvocationDetail) -> int:
    return entry.seq if isinstance(entry, MessageView) else entry.summary.seq
