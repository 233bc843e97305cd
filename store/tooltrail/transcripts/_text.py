"""Prints a transcript as plain text, for a terminal or for diff."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts._wording import arguments, heading, indented, one_line, outcome, stamp
from tooltrail.transcripts.transcript import Transcript

if TYPE_CHECKING:
    from tooltrail.transcripts._pairs import Pairs


def write_text(transcript: Transcript) -> Iterator[str]:
    """Yield one block for each entry, with its sequence number, time and role as heading.

    Messages and output are indented, so that they cannot look like lines of the transcript.
    """
    session = transcript.session
    name = f" ({one_line(session.name)})" if session.name else ""
    title = f" {one_line(session.title)}" if session.title else ""
    yield f"Session {session.id}{name}{title}, opened {stamp(session.opened_at)}\n"
    pairs: Pairs | None = None
    for entry in transcript.entries:
        if isinstance(entry, MessageView):
            pairs = pairs or _pairs_of(transcript)
            yield from _message(entry, pairs)
        else:
            yield from _call(entry, transcript.compacted.get(entry.summary.id))
    if session.closed_at is not None:
        yield f"\nClosed {stamp(session.closed_at)}\n"


def _pairs_of(transcript: Transcript) -> "Pairs":
    from tooltrail.transcripts._pairs import Pairs  # noqa: PLC0415  imports the models of messages

    return Pairs(transcript)


def _message(message: MessageView, pairs: "Pairs") -> Iterator[str]:
    from tooltrail.transcripts._parts import parts_of  # noqa: PLC0415  see `_pairs_of`

    parts = [*parts_of(message, pairs)]
    if parts:
        yield f"\n#{message.seq} {stamp(message.created_at)} {one_line(message.role)}\n"
    for part in parts:
        if part.label:
            yield f"--- {part.label} ---\n"
        if part.text or not part.label:
            yield indented(part.text)


def _call(detail: InvocationDetail, compacted: str | None) -> Iterator[str]:
    summary = detail.summary
    yield f"\n#{summary.seq} {stamp(summary.started_at)} {heading(detail)}\n"
    yield indented(arguments(detail))
    label, text = outcome(detail, compacted)
    yield f"--- {label} ---\n"
    yield indented(text)
