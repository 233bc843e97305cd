"""The file read family: what is in a file, or in some lines of it.

The receipt of a whole content is that content and nothing else, laid out as it is: what the model
edits next must be what it has read.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._paths import FilePath, one_line_path, path_label
from tooltrail.records.families._shared import (
    BoundedResult,
    bounded,
    receipt,
)
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import Count, StreamRecord

Line = Annotated[int, Field(ge=1, le=2**63 - 1)]
"""Number of a line of a file, the first is 1."""


class FileReadBudget(Budget):
    """Bounds of the file read family."""


class LineRange(Record):
    """The lines that were read, the first and the last among them."""

    start: Line
    end: Line

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.end < self.start:
            raise ValueError("a range of lines must not end before it starts")
        return self


class FileReadOutput(FamilyOutput):
    """The complete result of reading a file.

    Attributes:
        path: the file, as it was asked for.
        content: what was read, without line numbers or other frames; its role is `content`.
        line_range: the lines that were asked for; None for the whole file.
    """

    path: FilePath
    content: StreamRecord
    line_range: LineRange | None = None

    def summary(self) -> str:
        """How much was read of which file."""
        return f"read {self.content.produced_size:,} bytes of {one_line_path(self.path)}"


class FileReadResult(BoundedResult):
    """The canonical result of reading a file.

    `size` is what was read of it, in bytes. `truncated` says that anything was left out, be it of
    the path.
    """

    path: str
    content_preview: str | None
    content_encoding: Encoding | None = None
    content_truncated: bool
    line_range: LineRange | None = None
    size: Count
    content_artifact: int | None = None


def project_file_read(
    result: FileReadOutput, budget: FileReadBudget, cutter: Cutter
) -> FileReadResult:
    """Bound the content."""
    content = cutter.stream(result.content, budget.preview_chars)
    path = path_label(cutter, "path", result.path)
    size = result.content.produced_size
    shown = content.named("content")
    return bounded(FileReadResult, result, cutter, path=path, size=size, **shown)


def render_file_read(canonical: CanonicalResult, _budget: FileReadBudget) -> str:
    """The content itself; when it is a part of a file, which part."""
    result = FileReadResult.model_validate(canonical.result)
    text = result.content_preview
    if text is None:
        body = "(empty file)" if result.line_range is None else "(no content)"
    else:
        # No room to indent: JSON is shown as the file has it, and only named when it is cut.
        (body,) = readable([(text, result.content_truncated)], 0)
    artifacts = result.artifacts if result.content_truncated else None
    return receipt([_heading(result) + body], artifacts, {result.content_artifact: "content"})


def _heading(result: FileReadResult) -> str:
    lines = result.line_range
    if lines is None:
        return ""
    which = f"Lines {lines.start}-{lines.end}" if lines.end > lines.start else f"Line {lines.start}"
    return f"{which} of {result.path}\n"


FAMILY = Family(
    name="file_read",
    result_types=(FileReadOutput,),
    projector=project_file_read,
    renderer=Renderer("file_read", 2, render_file_read),
    budget=FileReadBudget(),
    tool_names=frozenset({"cat_file", "open", "Read", "read", "read_file", "view"}),
)
