"""Handmade transcripts, and their documents as readers see them."""

import re
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tooltrail.records import DEFAULT_POLICY, InvocationState, digest_of
from tooltrail.store.views import (
    InvocationDetail,
    InvocationView,
    MessageView,
    ReceiptView,
    SessionView,
)
from tooltrail.transcripts import FORMATS, Transcript


def uuid(number: int) -> UUID:
    return UUID(f"01a20000-0000-7000-8000-{number:012}")


def at(minute: int, second: int) -> datetime:
    return datetime(2026, 1, 2, 3, minute, second, 600_000, tzinfo=UTC)


SESSION = SessionView(
    id=uuid(1),
    parent_id=uuid(9),
    title="Fix the *build*",
    agent="Ada",
    environment="{}",
    opened_at=at(4, 5),
    closed_at=at(9, 0),
    invocation_count=2,
    open_count=1,
)


def message(seq: int, role: str, text: str) -> MessageView:
    return MessageView(uuid(10 + seq), seq, role, text, at(4, 6 + seq))


def call(
    seq: int,
    tool: str,
    arguments: bytes,
    receipt: str | None,
    *,
    call_id: str | None = None,
    state: InvocationState = "success",
    exit_status: int | None = None,
) -> InvocationDetail:
    summary = InvocationView(
        id=uuid(10 + seq),
        session_id=SESSION.id,
        seq=seq,
        call_id=call_id,
        tool_name=tool,
        family="command",
        state=state,
        arguments_preview="",
        started_at=at(4, 6 + seq),
        finished_at=None if receipt is None else at(5, seq),
        duration_ms=None,
        error_kind=None,
        exit_status=exit_status,
        signal=None,
        timed_out=None,
        output_size=None,
        truncated=None,
        outcome_kind="running" if state == "started" else "exit" if exit_status else "ok",
    )
    shown = None
    if receipt is not None:
        digest = digest_of(receipt.encode())
        shown = ReceiptView(receipt, digest, "command", 1, DEFAULT_POLICY.digest)
    return InvocationDetail(
        summary, arguments, DEFAULT_POLICY.digest, None, (), None, (), shown, ()
    )


def document(transcript: Transcript, style: str) -> str:
    return "".join(FORMATS[style](transcript))


def parsed(transcript: Transcript) -> list[Token]:
    """The Markdown document, parsed by a CommonMark reader."""
    return MarkdownIt("commonmark").parse(document(transcript, "markdown"))


def top(tokens: list[Token], kind: str) -> list[Token]:
    return [token for token in tokens if token.type == kind and token.level == 0]


# Pieces with a meaning in Markdown.
TROUBLE = st.lists(
    st.sampled_from(
        [
            *("`", "```", "````json\n", "~~~", "\n", "\r", "\r\n", "\n\n", "> ", "# h", "- "),
            *("<!--", "-->", "<div>", "<script>", "[a]: b", "***", "===", "&lt;", "    ", "x"),
            *("\t", "\\", "é"),
        ]
    ),
    max_size=25,
).map("".join)


def normal(text: str) -> str:
    """Text with the line ends of a CommonMark reader."""
    return re.sub(r"\r\n?", "\n", text)
