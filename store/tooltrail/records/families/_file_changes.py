"""What happened to single files: complete, bounded, and as a list of those that are not shown."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.families._paths import FilePath, path_label
from tooltrail.records.families._shared import SparseRecord
from tooltrail.records.previews import Encoding
from tooltrail.records.streams import StreamRecord

Action = Literal["add", "modify", "delete", "move"]

Line = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""Number or count of lines of a file."""


class Hunk(Record):
    """Where a diff changed a file, as `@@ -old_start,old_lines +new_start,new_lines @@` says."""

    old_start: Line
    old_lines: Line
    new_start: Line
    new_lines: Line


class FileChange(Record):
    """What happened to one file.

    Attributes:
        action: what was done; a move may change the content too.
        path: where the file is now, or was before it was deleted.
        from_path: where it was before; given for a move alone.
        hunks: where its content changed.
        diff: the unified diff; its role must be `diff.N`, N the place of the file from 0.
    """

    action: Action
    path: FilePath
    from_path: FilePath | None = None
    hunks: tuple[Hunk, ...] = ()
    diff: StreamRecord | None = None

    @model_validator(mode="after")
    def _check_move(self) -> Self:
        if (self.action == "move") != (self.from_path is not None):
            raise ValueError("from_path must be given exactly when a file moved")
        return self


class ChangedFile(SparseRecord):
    """What happened to one file, bounded."""

    action: Action
    path: str
    from_path: str | None = None
    hunks: tuple[Hunk, ...]
    diff_preview: str | None = None
    diff_encoding: Encoding | None = None
    diff_truncated: bool | None = None
    diff_artifact: int | None = None


def project_change(
    n: int, file: FileChange, diff: Shown, max_hunks: int, cutter: Cutter
) -> ChangedFile:
    """Bound one file, the entry `n` of the list; `diff` is what the cutter made of its diff."""
    field = f"changed_files[{n}]"
    from_path = None
    if file.from_path is not None:
        from_path = path_label(cutter, f"{field}.from_path", file.from_path)
    return ChangedFile(
        action=file.action,
        path=path_label(cutter, f"{field}.path", file.path),
        from_path=from_path,
        hunks=tuple(cutter.items(f"{field}.hunks", file.hunks, max_hunks)),
        diff_preview=diff.text,
        diff_encoding=diff.encoding,
        diff_truncated=None if file.diff is None else diff.truncated,
        diff_artifact=diff.artifact,
    )
