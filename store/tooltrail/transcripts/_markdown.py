"""Prints a transcript as Markdown, for a review, an issue or a wiki page.

Tool output and messages cannot look like entries of the transcript. Output is in fences that are
longer than any fence in the output. Messages, which can contain Markdown, are block quotes. A fence
or a comment that a message leaves open ends with the quote.
"""

import re
from collections.abc import Iterator

from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts._pairs import Pairs
from tooltrail.transcripts._parts import parts_of
from tooltrail.transcripts._wording import arguments, ended, heading, one_line, outcome, stamp
from tooltrail.transcripts.transcript import Transcript

_BACKTICKS = re.compile("`{3,}")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|&~])")
_LINE_END = re.compile(r"\r\n|\r|\n")
"""The line endings of CommonMark."""


def write_markdown(transcript: Transcript) -> Iterator[str]:
    """Yield one section for each entry."""
    session = transcript.session
    name = f" ({_escape(session.name)})" if session.name else ""
    yield f"# {_escape(session.title or f'Session {session.name or session.id}')}\n\n"
    yield f"Session `{session.id}`{name}, opened {stamp(session.opened_at)}.\n"
    pairs = Pairs(transcript)
    for entry in transcript.entries:
        if isinstance(entry, MessageView):
            yield from _message(entry, pairs)
        else:
            yield from _call(entry, transcript.compacted.get(entry.summary.id))
    if session.closed_at is not None:
        yield f"\nClosed {stamp(session.closed_at)}.\n"


def _message(message: MessageView, pairs: Pairs) -> Iterator[str]:
    parts = [*parts_of(message, pairs)]
    if parts:
        yield f"\n## {message.seq}. {_escape(message.role)}\n"
    for part in parts:
        if part.label:
            label = _escape(part.label)
            yield f"\n{label[0].upper()}{label[1:]}{':' if part.text else '.'}\n"
        if part.text or not part.label:
            is_said = part.style == "said"
            yield f"\n{_quoted(part.text) if is_said else _fenced(part.text, part.style)}"


def _call(detail: InvocationDetail, compacted: str | None) -> Iterator[str]:
    yield f"\n## {detail.summary.seq}. {_escape(heading(detail))}\n\n"
    yield f"Started {stamp(detail.summary.started_at)}.\n\n"
    yield _fenced(arguments(detail), "json")
    label, text = outcome(detail, compacted)
    yield f"\n{label.capitalize()}:\n\n"
    yield _fenced(text, "text")


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{ended(text)}{fence}\n"


def _quoted(text: str) -> str:
    lines = _LINE_END.split(ended(text))[:-1]
    return "".join(f"> {line}\n" if line else ">\n" for line in lines)


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
