"""Compares a stored receipt with the text of the current renderer."""

import difflib
import io

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._output import printable
from tooltrail.store import Rerendering, RerenderingState

CODES: dict[RerenderingState, ExitCode] = {
    "same": ExitCode.OK,
    "drifted": ExitCode.DAMAGED,
    "incomparable": ExitCode.INCOMPLETE,
    "not_rendered": ExitCode.OK,
    "open": ExitCode.INCOMPLETE,
}


def sentence_of(found: Rerendering) -> str:
    """One sentence with the result of comparing a receipt."""
    about = f"the receipt of invocation {found.invocation_id}"
    if found.today is not None and not found.drifted:
        return f"{about} is the text that renderer {found.today.renderer} makes today"
    if found.drifted:
        return f"{about} differs from the text of today's renderer: {printable(found.reason)}"
    if found.state == "not_rendered":
        return f"invocation {found.invocation_id} has nothing to compare: {found.reason}"
    return f"{about} cannot be compared: {printable(found.reason)}"


def diff_of(found: Rerendering) -> str:
    """The unified diff from the stored text to today's text; empty if one of them is missing."""
    if found.stored is None or found.today is None:
        return ""
    # Split at newlines only, like `diff`. `str.splitlines` also splits at a form feed.
    before, after = (
        io.StringIO(one.text, newline="\n").readlines() for one in (found.stored, found.today)
    )
    names = f"stored ({found.stored.renderer})", f"today ({found.today.renderer})"
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, *names)
    )
