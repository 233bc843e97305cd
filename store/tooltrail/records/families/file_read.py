"""The file read family: the content of a file, or of some of its lines.

The receipt of a complete content is exactly that content, without reformatting: the model may edit
the file next, and must see what is really in it.
"""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import Record
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._paths import FilePath, one_line_path, path_label
from tooltrail.records.families._shared import Json, body_of, bounded, json_of, receipt
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

Line = Annotated[int, Field(ge=1, le=2**63 - 1)]
"""Number of a line in a file; the first line is 1."""


class LineRange(Record):
    """The range of lines that were read; `start` and `end` are included."""

    start: Line
    end: Line


class FileReadOutput(FamilyOutput):
    """The complete result of reading a file.

    Attributes:
        path: path of the file as requested.
        content: the content without line numbers or other additions; its role is `content`.
        line_range: the requested lines; None for the complete file.
    """

    path: FilePath
    content: StreamRecord
    line_range: LineRange | None = None

    def summary(self) -> str:
        """The number of bytes that were read, and the file."""
        return f"read {self.content.produced_size:,} bytes of {one_line_path(self.path)}"


def project_file_read(result: FileReadOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the content. `size` is the number of bytes that were read."""
    content = cutter.stream(result.content, budget.preview_chars).named("content")
    path = path_label(cutter, "path", result.path)
    size = result.content.produced_size
    return bounded(result, cutter, {"content_preview"}, path=path, size=size, **content)


def render_file_read(canonical: CanonicalResult, _budget: Budget) -> str:
    """Render the content itself; for a part of a file, name the part first."""
    result = json_of(canonical)
    lines, which = result.get("line_range"), ""
    if lines is not None:
        start, end = lines["start"], lines["end"]
        which = f"Lines {start}-{end}" if end != start else f"Line {start}"
        which += f" of {result['path']}\n"
    # Room 0 prevents indentation: JSON is shown as it is in the file, and marked if it is cut.
    empty = "(empty file)" if lines is None else "(no content)"
    (body,) = body_of(result, "content", 0) or [empty]
    return receipt([which + body], result)


FAMILY = Family(
    name="file_read",
    result_types=(FileReadOutput,),
    projector=project_file_read,
    render=render_file_read,
    tool_names=frozenset({"cat_file", "open", "Read", "read", "read_file", "view"}),
    version=2,
)
