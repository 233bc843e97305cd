"""The file mutation family: files that a tool added, changed, moved or deleted.

The receipt names the files and repeats no diff: the model has just written what is in them.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Message, Record
from tooltrail.records.budgets import Budget, ItemCount, ReceiptChars
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, FamilyOutput
from tooltrail.records.families._paths import FilePath, path_label
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    ConfirmingResult,
    SparseRecord,
    bounded,
    hidden_lines,
    one_line,
    receipt,
)
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.sharing import fair_shares
from tooltrail.records.streams import Count, StreamRecord

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
    return bounded(
        ChangedFile,
        file,
        cutter,
        path=path_label(cutter, f"{field}.path", file.path),
        from_path=from_path,
        hunks=tuple(cutter.items(f"{field}.hunks", file.hunks, max_hunks)),
        **({} if file.diff is None else diff.named("diff")),
    )


_LETTERS: dict[Action, str] = {"add": "A", "modify": "M", "delete": "D", "move": "R"}
"""As `git status` abbreviates them."""


class FileMutationBudget(Budget):
    """Bounds of the file mutation family: `max_items` files, and as many diagnostics.

    Attributes:
        diff_lines: lines of a diff that are shown for one file, the marker of a cut among them.
        max_hunks: hunks that are listed for one file.
    """

    item_chars: ClassVar[int] = 840
    """A file with two paths, its artifact with a third, and the end of a diagnostic."""

    receipt_chars: ReceiptChars = 50_000
    diff_lines: Annotated[int, Field(ge=2, le=10_000)] = 80
    max_hunks: ItemCount = 16


class FileMutationOutput(FamilyOutput):
    """The complete result of a tool that changes files.

    Attributes:
        changed_files: in the tool's order.
        diagnostics: what a linter or a compiler says of the files now, a finding each.
    """

    changed_files: tuple[FileChange, ...] = ()
    diagnostics: tuple[Message, ...] = ()

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        for n, file in enumerate(self.changed_files):
            if file.diff is not None and file.diff.role != f"diff.{n}":
                raise ValueError(f"the diff of changed_files[{n}] must have the role diff.{n}")
        return self

    def summary(self) -> str:
        """How many files were changed."""
        count = len(self.changed_files)
        if count == 0:
            return "no file was changed"
        return f"{count:,} {'file was' if count == 1 else 'files were'} changed"


class FileMutationResult(ConfirmingResult):
    """The canonical result of a tool that changed files.

    `hidden_artifact` lists the files, hunks and diagnostics that are left out here.
    """

    changed_files: tuple[ChangedFile, ...]
    changed_paths: tuple[str, ...]
    changed_file_count: Count
    diagnostics: tuple[str, ...] | None = None
    diagnostic_count: Count | None = None


def project_file_mutation(
    result: FileMutationOutput, budget: FileMutationBudget, cutter: Cutter
) -> FileMutationResult:
    """Bound the list of files, each diff in lines, and all diffs in characters."""
    diffs_of_files = ((file.diff,) for file in result.changed_files)
    count = cutter.sharing.fitting(diffs_of_files, budget, lines=budget.diff_lines)
    files = cutter.items("changed_files", result.changed_files, count, budget.max_items)
    diffs = cutter.streams([f.diff for f in files], budget.preview_chars, budget.diff_lines)
    changed = tuple(
        project_change(n, file, diff, budget.max_hunks, cutter)
        for n, (file, diff) in enumerate(zip(files, diffs, strict=True))
    )
    diagnostics = _bound_diagnostics(result.diagnostics, budget, cutter)
    return bounded(
        FileMutationResult,
        result,
        cutter,
        changed_files=changed,
        changed_paths=tuple(file.path for file in changed),
        changed_file_count=len(result.changed_files),
        diagnostics=diagnostics or None,
        diagnostic_count=len(result.diagnostics) or None,
    )


def render_file_mutation(canonical: CanonicalResult, _budget: FileMutationBudget) -> str:
    """A line for each file, then what was found in them."""
    result = FileMutationResult.model_validate(canonical.result)
    artifacts = result.artifacts or ()
    sections = ["\n".join(_file_lines(result, artifacts))]
    if result.diagnostics:
        lines = ["Diagnostics:", *map(one_line, result.diagnostics)]
        hidden = (result.diagnostic_count or 0) - len(result.diagnostics)
        lines += hidden_lines(hidden, "diagnostic", artifacts, result.hidden_artifact)
        sections.append("\n".join(lines))
    roles: dict[int | None, str] = {
        file.diff_artifact: f"diff of {file.path}" for file in result.changed_files
    }
    roles[result.hidden_artifact] = "hidden"
    return receipt(sections, artifacts, roles)


def _file_lines(result: FileMutationResult, artifacts: Sequence[ArtifactReference]) -> list[str]:
    if not result.changed_files:
        return ["Success. No file was changed."]
    lines = ["Success. Updated the following files:"]
    for file in result.changed_files:
        source = "" if file.from_path is None else f"{file.from_path} -> "
        lines.append(f"{_LETTERS[file.action]} {source}{file.path}")
    hidden = result.changed_file_count - len(result.changed_files)
    return lines + hidden_lines(hidden, "file", artifacts, result.hidden_artifact)


def _bound_diagnostics(
    diagnostics: Sequence[str], budget: FileMutationBudget, cutter: Cutter
) -> tuple[str, ...]:
    """Diagnostics take the room that diffs do not need, as the receipt repeats no diff."""
    shown = cutter.items("diagnostics", diagnostics, budget.max_items)
    needs = [min(len(text), SENTENCE_CHARS) for text in shown]
    shares = fair_shares(needs, budget.preview_chars)
    return tuple(
        cutter.text(f"diagnostics[{n}]", text, share)
        for n, (text, share) in enumerate(zip(shown, shares, strict=True))
    )


FAMILY = Family(
    name="file_mutation",
    result_types=(FileMutationOutput,),
    projector=project_file_mutation,
    renderer=Renderer("file_mutation", 1, render_file_mutation),
    budget=FileMutationBudget(),
    tool_names=frozenset(
        {
            "apply_patch",
            "ApplyPatch",
            "edit",
            "Edit",
            "edit_file",
            "MultiEdit",
            "NotebookEdit",
            "str_replace_editor",
            "write",
            "Write",
            "write_file",
        }
    ),
)
