"""What the commands of all dispositions share: their bounds, and which command it was."""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import DigestField, Record
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.streams import Count

CWD_CHARS = 4096
"""Longest folder that is repeated in a result; the longest path that Linux takes."""


class CommandBudget(Budget):
    """Bounds of the command family.

    Attributes:
        preview_chars: both streams together; a stream that needs less than half leaves the rest.
        command_chars: how much of the command line is repeated in the result.
    """

    preview_chars: PreviewChars = 32_000
    receipt_chars: ReceiptChars = 34_000
    command_chars: Annotated[int, Field(ge=16, le=240)] = 240


class CommandSummary(Record):
    """Which command it was, bounded."""

    preview: str
    char_count: Count
    cwd: str | None
    digest: DigestField


def summarize_command(
    command: str | None, cwd: str | None, limit: int, cutter: Cutter, *, prefix: str = ""
) -> CommandSummary | None:
    """Bound a command line to `limit` characters and its folder to `CWD_CHARS`.

    Args:
        command: what was run; None when it is not known.
        cwd: the folder it ran in.
        limit: characters of the preview.
        cutter: counts what is left out.
        prefix: where the summary stands in the result, for the names of omissions.
    """
    if command is None:
        return None
    raw = _bytes_of(command)
    text = encodable(command)
    preview = cutter.text(f"{prefix}command", text, limit)
    folder = cutter.text(f"{prefix}cwd", encodable(cwd), CWD_CHARS) if cwd else None
    return CommandSummary(preview=preview, char_count=len(text), cwd=folder, digest=digest_of(raw))


def encodable(text: str) -> str:
    r"""A command line or a folder, what is no text in it spelled out: `caf\xe9`."""
    return _bytes_of(text).decode("utf-8", "backslashreplace")


def _bytes_of(text: str) -> bytes:
    """The bytes that the system saw, or as much as there can be of them."""
    try:
        # Python carries bytes that are no text as low surrogates, a JSON escape may give any.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
