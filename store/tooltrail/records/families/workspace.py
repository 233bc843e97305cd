"""The workspace family: which workspace or projection is active now, and how it came to be so."""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    ConfirmingResult,
    Identifier,
    SparseRecord,
    bound_texts,
    bounded,
    one_line,
)
from tooltrail.records.family import Family, Renderer

PATH_CHARS = 4096
"""Longest path of a workspace that is repeated; the longest path that Linux takes."""

_NAME_LIMITS = {"branch": NAME_CHARS, "kind": NAME_CHARS, "head": NAME_CHARS}

Disposition = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""`attached`, `switched`, `created`, `unchanged`, `exited`, or another `snake_case` word."""


class WorkspaceBudget(Budget):
    """Bounds of the workspace family.

    Attributes:
        preview_chars: of the path, which is never longer than `PATH_CHARS` either.
    """

    preview_chars: PreviewChars = 5_000
    receipt_chars: ReceiptChars = 7_000


class Workspace(SparseRecord):
    """A workspace, complete or bounded.

    Attributes:
        workspace_id: what the runtime calls it.
        path: its folder.
        branch: the branch that is checked out.
        kind: what sort of workspace it is, `worktree` for instance.
        head: the commit that is checked out.
    """

    workspace_id: Identifier | None = None
    path: Annotated[Sentence, Field(min_length=1)]
    branch: Sentence | None = None
    kind: Sentence | None = None
    head: Sentence | None = None


class WorkspaceOutput(FamilyOutput):
    """What is active after the call.

    Attributes:
        disposition: how the call changed it.
        workspace: the active one; None when there is none.
        projection: the view of the workspace that is active, as the runtime names it.
    """

    disposition: Disposition
    workspace: Workspace | None = None
    projection: Sentence | None = None

    def summary(self) -> str:
        """What happened, and where."""
        happened = f"workspace {_spaced(self.disposition)}"
        return happened if self.workspace is None else f"{happened}: {self.workspace.path}"


class WorkspaceResult(ConfirmingResult):
    """The canonical result of the workspace family."""

    disposition: Disposition
    workspace: Workspace | None = None
    projection: str | None = None


def project_workspace(
    result: WorkspaceOutput, budget: WorkspaceBudget, cutter: Cutter
) -> WorkspaceResult:
    """Bound every name and the path."""
    workspace = None
    if result.workspace is not None:
        limits = {"path": min(budget.preview_chars, PATH_CHARS), **_NAME_LIMITS}
        workspace = bound_texts(result.workspace, "workspace", limits, cutter)
    named = bound_texts(result, "", {"projection": NAME_CHARS}, cutter)
    return bounded(WorkspaceResult, named, cutter, workspace=workspace)


def render_workspace(canonical: CanonicalResult, _budget: WorkspaceBudget) -> str:
    """A line with what is active now, and one with how the runtime calls it."""
    result = WorkspaceResult.model_validate(canonical.result)
    where = "" if result.workspace is None else f": {_worded(result.workspace)}"
    handles = {
        "Workspace id": None if result.workspace is None else result.workspace.workspace_id,
        "Projection": result.projection,
    }
    named = [f"{label}: {one_line(handle)}" for label, handle in handles.items() if handle]
    lines = [f"Workspace {_spaced(result.disposition)}{where}"]
    if named:
        lines.append(", ".join(named))
    return "\n".join(lines) + "\n"


def _worded(workspace: Workspace) -> str:
    traits = (
        workspace.kind,
        workspace.branch and f"branch {workspace.branch}",
        workspace.head and f"head {workspace.head}",
    )
    worded = ", ".join(one_line(trait) for trait in traits if trait)
    return one_line(workspace.path) + (f" ({worded})" if worded else "")


def _spaced(disposition: str) -> str:
    return disposition.replace("_", " ")


FAMILY = Family(
    name="workspace",
    result_types=(WorkspaceOutput,),
    projector=project_workspace,
    renderer=Renderer("workspace", 1, render_workspace),
    budget=WorkspaceBudget(),
    tool_names=frozenset(
        {
            "Attach",
            "AttachWorkspace",
            "CreateWorktree",
            "EnterWorktree",
            "ExitWorktree",
            "State",
            "Switch",
            "SwitchWorkspace",
        }
    ),
)
