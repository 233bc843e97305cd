"""A transcript as Markdown: for a review, an issue, a wiki page."""

import re
from collections.abc import Iterator

from tooltrail.store import InvocationDetail, MessageView
from tooltrail.transcripts._wording import arguments, ended, heading, shown, stamp
from tooltrail.transcripts.conversation import Conversation

_BACKTICKS = re.compile("`{3,}")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")


def write_markdown(conversation: Conversation) -> Iterator[str]:
    """One section for each entry; tool text stands in fences that it cannot break."""
    session = conversation.session
    yield f"# {_escape(session.title or f'Session {session.id}')}\n\n"
    yield f"Session `{session.id}`, opened {stamp(session.opened_at)}.\n"
    for entry in conversation.entries:
        yield from _message(entry) if isinstance(entry, MessageView) else _call(entry)
    if session.closed_at is not None:
        yield f"\nClosed {stamp(session.closed_at)}.\n"


def _message(message: MessageView) -> Iterator[str]:
    yield f"\n## {message.seq}. {_escape(message.role)}\n\n{ended(message.text)}"


def _call(detail: InvocationDetail) -> Iterator[str]:
    yield f"\n## {detail.summary.seq}. {_escape(heading(detail))}\n\n"
    yield f"Started {stamp(detail.summary.started_at)}.\n\n"
    yield _fenced(arguments(detail), "json")
    yield "\nShown to the model:\n\n"
    yield _fenced(shown(detail), "text")


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{ended(text)}{fence}\n"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
