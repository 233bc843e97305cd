"""A session as an ordered conversation: messages, calls, and what the model was shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import UUID

from tooltrail.records.errors import AmbiguousNameError, NotFoundError
from tooltrail.store.read.reader import Reader
from tooltrail.store.views import InvocationDetail, MessageView, SessionView

Entry: TypeAlias = MessageView | InvocationDetail

_MIN_PART = 4
"""Digits of a shortened id at the least, as everywhere."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One session read back.

    Attributes:
        session: whose conversation it is.
        entries: messages and tool calls in the order in which they were recorded.
        compacted: the receipt of a compacted call, by invocation; it stands in place of the stored
            one.
        until: the last entry of a part of a session; None for all of it.
    """

    session: SessionView
    entries: tuple[Entry, ...]
    compacted: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    until: UUID | None = None


def load_transcript(reader: Reader, session: str, *, payloads: bool = False) -> Transcript:
    """Read a session in a fixed number of queries, without the complete outputs of its calls.

    Args:
        reader: of the store.
        session: its id, a unique beginning or end of it, or `@last`.
        payloads: whether to read what providers sent, verbatim, too.

    Raises:
        NotFoundError: no session has this name; AmbiguousNameError: several have.
    """
    view, messages, invocations = reader.conversation(session, payloads=payloads, outputs=False)
    entries: list[Entry] = [*messages, *invocations]
    return Transcript(view, tuple(sorted(entries, key=_seq)))


def until(transcript: Transcript, name: str) -> Transcript:
    """The session as it was when one of its entries began: that one and all before it.

    A call that had not ended by then is open in it, whatever came of it later; so is the one that
    is named. The session was open then.

    Args:
        transcript: the whole of it.
        name: of a message or an invocation: its id, a unique beginning or end of it of four digits
            at the least, or `#SEQ`.

    Raises:
        NotFoundError: no entry has this name; AmbiguousNameError: several have.
    """
    found = [number for number, entry in enumerate(transcript.entries) if _is_named(entry, name)]
    if not found:
        raise NotFoundError(f"the session has no entry that is named {name!r}")
    if len(found) > 1:
        raise AmbiguousNameError(name, [str(_id(transcript.entries[one])) for one in found[::-1]])
    return _as_of(transcript, found[0])


def _as_of(transcript: Transcript, last: int) -> Transcript:
    seq = _seq(transcript.entries[last])
    entries = tuple(_known_by(seq, entry) for entry in transcript.entries[: last + 1])
    calls = [entry.summary for entry in entries if isinstance(entry, InvocationDetail)]
    session = replace(
        transcript.session,
        closed_at=None,
        invocation_count=len(calls),
        open_count=sum(call.state == "started" for call in calls),
    )
    compacted = {
        call.id: transcript.compacted[call.id]
        for call in calls
        if call.state != "started" and call.id in transcript.compacted
    }
    return Transcript(session, entries, compacted, until=_id(transcript.entries[last]))


def _known_by(seq: int, entry: Entry) -> Entry:
    """An entry as far as it was known when the one at this place began."""
    if isinstance(entry, MessageView):
        return entry
    has_ended = entry.ended_at_seq is not None and entry.ended_at_seq <= seq
    return entry if has_ended else entry.as_started()


def _is_named(entry: Entry, name: str) -> bool:
    if name.startswith("#"):
        return name[1:] == str(_seq(entry))
    part, digits = name.lower().replace("-", ""), _id(entry).hex
    return len(part) >= _MIN_PART and (digits.startswith(part) or digits.endswith(part))


def _id(entry: Entry) -> UUID:
    return entry.id if isinstance(entry, MessageView) else entry.summary.id


def _seq(entry: Entry) -> int:
    return entry.seq if isinstance(entry, MessageView) else entry.summary.seq
