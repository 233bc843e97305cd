"""The file mutation family: files that a tool added, changed, moved or deleted.

The receipt names the files and contains no diff: the model has just written their content.
"""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tooltrail.records._model import Message, Record
from tooltrail.records.budgets import Budget, ReceiptChars, fair_shares
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._paths import FilePath, path_label
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    Json,
    Number,
    confirming,
    entry,
    hidden_lines,
    json_of,
    one_line,
    receipt,
)
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

Action = Literal["add", "modify", "delete", "move"]


class Hunk(Record):
    """A changed range of a file, as in `@@ -old_start,old_lines +new_start,new_lines @@`."""

    old_start: Number
    old_lines: Number
    new_start: Number
    new_lines: Number


class FileChange(Record):
    """The change of one file; a move may change the content too.

    Attributes:
        path: current path of the file, or its path before it was deleted.
        from_path: path before a move.
        hunks: changed ranges of the content.
        diff: the unified diff; its role is `diff.N`, where N is the file's index from 0.
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


_LETTERS: dict[Action, str] = {"add": "A", "modify": "M", "delete": "D", "move": "R"}
"""The letters of `git status`."""


class FileMutationBudget(Budget):
    """Bounds of the file mutation family: `max_items` files, diagnostics, and hunks of one file."""

    item_chars: ClassVar[int] = 840
    """Room for a file with two paths, its artifact with a third, and the end of a diagnostic."""

    receipt_chars: ReceiptChars = 50_000


class FileMutationOutput(FamilyOutput):
    """The changed files in the tool's order, and what a linter or a compiler says about them."""

    changed_files: tuple[FileChange, ...] = ()
    diagnostics: tuple[Message, ...] = ()

    def summary(self) -> str:
        """The number of changed files."""
        count = len(self.changed_files)
        if count == 0:
            return "no file was changed"
        return f"{count:,} {'file was' if count == 1 else 'files were'} changed"


def project_file_mutation(
    result: FileMutationOutput, budget: FileMutationBudget, cutter: Cutter
) -> Json:
    """Bound the list of files, and all diffs together in characters."""
    diffs_of_files = ((file.diff,) for file in result.changed_files)
    count = cutter.fitting(diffs_of_files, budget)
    files = cutter.items("changed_files", result.changed_files, count)
    diffs = cutter.streams([f.diff for f in files], budget.preview_chars)
    changed = [
        _project_change(n, file, diff, budget.max_items, cutter)
        for n, (file, diff) in enumerate(zip(files, diffs, strict=True))
    ]
    listed = cutter.items("diagnostics", result.diagnostics, budget.max_items)
    # Diagnostics may use the room of the diffs, which the receipt does not show.
    shares = fair_shares([min(len(text), SENTENCE_CHARS) for text in listed], budget.preview_chars)
    diagnostics = [
        cutter.text(f"diagnostics[{n}]", text, share)
        for n, (text, share) in enumerate(zip(listed, shares, strict=True))
    ]
    return confirming(
        result,
        cutter,
        diagnostics=diagnostics or None,
        changed_files=changed,
        changed_paths=[file["path"] for file in changed],
        changed_file_count=len(result.changed_files),
        diagnostic_count=len(result.diagnostics) or None,
    )


def _project_change(n: int, file: FileChange, diff: Shown, max_items: int, cutter: Cutter) -> Json:
    """Bound one file, the entry `n` of the list; `diff` is the already cut diff."""
    field = f"changed_files[{n}]"
    from_path = file.from_path
    if from_path is not None:
        from_path = path_label(cutter, f"{field}.from_path", from_path)
    path = path_label(cutter, f"{field}.path", file.path)
    hunks = cutter.items(f"{field}.hunks", file.hunks, max_items)
    shown = {} if file.diff is None else diff.named("diff")
    return entry(file, path=path, from_path=from_path, hunks=hunks, **shown)


def render_file_mutation(canonical: CanonicalResult, _budget: FileMutationBudget) -> str:
    """Render a line for each file, then the diagnostics."""
    result = json_of(canonical)
    files, diagnostics = result["changed_files"], result.get("diagnostics", [])
    lines = [f"Success. {'Updated the following files:' if files else 'No file was changed.'}"]
    for file in files:
        source = f"{file['from_path']} -> " if "from_path" in file else ""
        lines.append(f"{_LETTERS[file['action']]} {source}{file['path']}")
    lines += hidden_lines(result, result["changed_file_count"] - len(files), "file")
    if diagnostics:
        lines += ["", "Diagnostics:", *map(one_line, diagnostics)]
        lines += hidden_lines(result, result["diagnostic_count"] - len(diagnostics), "diagnostic")
    diffs = {f["diff_artifact"]: f"diff of {f['path']}" for f in files if "diff_artifact" in f}
    return receipt(["\n".join(lines)], result, diffs)


FAMILY = Family(
    name="file_mutation",
    result_types=(FileMutationOutput,),
    projector=project_file_mutation,
    render=render_file_mutation,
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
