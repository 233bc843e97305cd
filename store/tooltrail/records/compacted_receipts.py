"""The receipt of a compacted result: one wording for every family.

A renderer of a family needs the members that compaction may leave out. So what is left is listed,
one member a line, under the summary and a line that says what this is.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._error_receipts import render_error
from tooltrail.records._error_text import escaped, one_line
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.envelope import CompactedResult

COMPACTED_RENDERER_NAME = "compacted"
COMPACTED_RENDERER_VERSION = 1

_NOTICE = "[compacted: only a part of this result is left]\n"


def render_compacted(canonical: CompactedResult) -> str:
    """The summary or the error, the notice, and the members of the result that are left.

    command exited with status 3
    [compacted: only a part of this result is left]
    disposition: completed
    exit_status: 3
    artifacts: [{"path":"sha256/ab"}]
    """
    if canonical.error is not None:
        return render_error(canonical.error) + _NOTICE
    lines = _member_lines(canonical.result or {})
    return f"{one_line(canonical.summary_text)}\n{_NOTICE}{''.join(lines)}"


def _member_lines(members: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, value in members.items():
        if isinstance(value, str):
            # Only lines of the receipt itself begin at the margin.
            text = escaped(spelled_out(value.replace("\r\n", "\n")).rstrip("\n"))
            spelled = text if "\n" not in text else "\n  " + text.replace("\n", "\n  ")
        else:
            spelled = escaped(spelled_out(canonical_json.encode_text(value)))
        yield f"{one_line(name)}: {spelled}\n".replace(": \n", ":\n", 1)
