"""Texts that the text and Markdown formats share."""

from datetime import datetime

from tooltrail.records.plain_text import text_from
from tooltrail.store.views import InvocationDetail


def heading(detail: InvocationDetail) -> str:
    """The tool, the call id and the outcome of a call, on one line."""
    summary = detail.summary
    call = f" {summary.call_id}" if summary.call_id else ""
    return one_line(f"{summary.tool_name}{call} [{summary.outcome}]")


def arguments(detail: InvocationDetail) -> str:
    """The arguments exactly as the model sent them."""
    return text_from(detail.arguments)


def outcome(detail: InvocationDetail, compacted: str | None) -> tuple[str, str]:
    """The label and the text of the result of a call: compacted, or as shown to the model."""
    if compacted is not None:
        return "compacted", compacted
    if detail.receipt is not None:
        return "shown to the model", detail.receipt.text
    return "shown to the model", f"[no result: {detail.absence_of('receipt')}]"


def stamp(moment: datetime) -> str:
    """Format a time in UTC to the second."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def one_line(text: str) -> str:
    """Replace every run of white space, including newlines, with one space."""
    return " ".join(text.split())


def indented(text: str) -> str:
    """Indent every line, so that no line of output can look like a line of the transcript."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines)


def ended(text: str) -> str:
    """Add a newline at the end if there is none."""
    return text if text.endswith("\n") else f"{text}\n"
