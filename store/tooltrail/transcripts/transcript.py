"""A session as an ordered list of messages and tool calls."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from tooltrail.records.errors import AmbiguousNameError, NotFoundError
from tooltrail.records.frozen import Frozen
from tooltrail.store.read.reader import Reader
from tooltrail.store.views import InvocationDetail, MessageView, SessionView

Entry: TypeAlias = MessageView | InvocationDetail

_MIN_PART = 4
"""Minimum digits of a shortened id, as in all commands."""


class Transcript(Frozen):
    """The messages and tool calls of one session.

    Attributes:
        session: the session.
        entries: messages and tool calls in the order in which they were recorded; in the order of
            their times if hooks recorded calls before their messages.
        compacted: receipts of compacted calls, by invocation id; they replace the stored receipts.
        until: id of the last entry if the transcript is only the beginning of a session; None for
            the complete session.
    """

    session: SessionView
    entries: tuple[Entry, ...]
    compacted: Mapping[UUID, str] = {}
    until: UUID | None = None


def load_transcript(reader: Reader, session: str, *, payloads: bool = False) -> Transcript:
    """Read a session in a fixed number of queries, without the complete outputs of its calls.

    Args:
        reader: reader of the store.
        session: id, unique beginning or end of an id, name, or `@last`.
        payloads: whether to also read the exact bytes that providers sent.

    Raises:
        NotFoundError: no session has this name; AmbiguousNameError: several have.
    """
    view, messages, invocations = reader.conversation(session, payloads=payloads, outputs=False)
    entries: list[Entry] = sorted([*messages, *invocations], key=_seq)
    if any(call.source is not None and call.message_id is None for call in invocations):
        # Hooks record calls before the messages that ask for them are imported.
        entries.sort(key=_at)
    return Transcript(view, tuple(entries))


def damage_in(transcript: Transcript) -> list[str]:
    """The damage of a transcript: a sentence for each damaged row or missing position."""
    found = [transcript.session.damage]
    found += [
        one.damage if isinstance(one, MessageView) else one.summary.damage
        for one in transcript.entries
    ]
    if transcript.until is None:
        found += _gaps(transcript)
    return [one for one in found if one is not None]


def _gaps(transcript: Transcript) -> Iterator[str]:
    """The positions of a complete session that have no entry. The last ones cannot be known."""
    last = 0
    for seq in sorted(map(_seq, transcript.entries)):
        if seq > last + 1:
            missing = f"#{last + 1}" if seq == last + 2 else f"#{last + 1} to #{seq - 1}"
            yield f"session {transcript.session.id} is damaged: {missing} cannot be found"
        last = max(last, seq)


def until(transcript: Transcript, name: str) -> Transcript:
    """The session at the moment when one of its entries began: this entry and all before it.

    A call that had not ended at this moment is open in the result, even if the call ended later.
    The named call and the session are open too.

    Args:
        transcript: the complete transcript.
        name: name of a message or an invocation: its id, a unique beginning or end of the id with
            at least four digits, or `#SEQ`.

    Raises:
        NotFoundError: no entry has this name; AmbiguousNameError: several have.
    """
    found = [number for number, entry in enumerate(transcript.entries) if _is_named(entry, name)]
    if not found:
        raise NotFoundError(f"the session has no entry with the name {name!r}")
    if len(found) > 1:
        raise AmbiguousNameError(name, [str(_id(transcript.entries[one])) for one in found[::-1]])
    return _as_of(transcript, found[0])


def _as_of(transcript: Transcript, last: int) -> Transcript:
    seq = _seq(transcript.entries[last])
    entries = tuple(_known_by(seq, entry) for entry in transcript.entries[: last + 1])
    calls = [entry.summary for entry in entries if isinstance(entry, InvocationDetail)]
    session = transcript.session.replaced(
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
    """The entry as known when the entry with this sequence number began."""
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


def _at(entry: Entry) -> datetime:
    return entry.created_at if isinstance(entry, MessageView) else entry.summary.started_at


def _seq(entry: Entry) -> int:
    return entry.seq if isinstance(entry, MessageView) else entry.summary.seq
