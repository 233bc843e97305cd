"""The receipt of a compacted result, worded alike for every family.

Compaction may remove members that the renderer of a family needs. So this receipt lists the
remaining members, one per line, below the summary and a notice.
"""

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records._error_receipts import render_error
from tooltrail.records._error_text import escaped, one_line
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.budgets import ErrorBudget
from tooltrail.records.envelope import CompactedResult

COMPACTED_RENDERER_NAME = "compacted"
COMPACTED_RENDERER_VERSION = 1

_ERROR_BUDGET = ErrorBudget()
"""The default bounds; no policy can make the receipt of a compacted failure longer."""

_NOTICE = "[compacted: only a part of this result is left]\n"


def render_compacted(canonical: CompactedResult) -> str:
    """Render the summary or the error, a notice that it is compacted, and the remaining members.

    For example, for a command:

        command exited with status 3
        [compacted: only a part of this result is left]
        artifacts: [{"path":"sha256/ab"}]
        disposition: completed
        exit_status: 3
    """
    if canonical.error is not None:
        return render_error(canonical.error, _ERROR_BUDGET)[0] + _NOTICE
    lines = _member_lines(canonical.result or {})
    return f"{one_line(canonical.summary_text)}\n{_NOTICE}{''.join(lines)}"


def _member_lines(members: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, value in members.items():
        if isinstance(value, str):
            # Only lines of the receipt itself begin at the margin.
            text = escaped(spelled_out(value.replace("\r\n", "\n")).rstrip("\n"))
            spelled = f" {text}" if "\n" not in text else "\n  " + text.replace("\n", "\n  ")
        else:
            plain = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            spelled = f" {escaped(spelled_out(plain))}"
        yield f"{one_line(name)}:{spelled}\n"
