"""Words that the formats for people share."""

from datetime import datetime

from tooltrail.store.views import InvocationDetail

_OPEN = "[no result: the invocation has not ended]"


def heading(detail: InvocationDetail) -> str:
    """Which call it was, and how it went, on one line."""
    summary = detail.summary
    call = f" {summary.call_id}" if summary.call_id else ""
    return one_line(f"{summary.tool_name}{call} [{summary.state}]")


def arguments(detail: InvocationDetail) -> str:
    """The arguments exactly as the model sent them."""
    return detail.arguments.decode("utf-8", "surrogatepass")


def outcome(detail: InvocationDetail, compacted: str | None) -> tuple[str, str]:
    """What stands under a call, and a label: a reader must never take the one for the other."""
    if compacted is not None:
        return "compacted", compacted
    return "shown to the model", _OPEN if detail.receipt is None else detail.receipt.text


def stamp(moment: datetime) -> str:
    """A time in UTC to the second, the same on every machine."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def one_line(text: str) -> str:
    """The text with every run of white space, line ends included, as one space."""
    return " ".join(text.split())


def indented(text: str) -> str:
    """Every line moved to the right, so that no line of a tool can pass for one of ours."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines)


def ended(text: str) -> str:
    """The text with a newline at its end."""
    return text if text.endswith("\n") else f"{text}\n"
