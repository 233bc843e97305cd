"""The workspace family: the active workspace or projection, and how the call changed it."""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    Identifier,
    Json,
    SparseRecord,
    bound_texts,
    confirming,
    json_of,
    labelled,
    one_line,
)
from tooltrail.records.family import Family

PATH_CHARS = 4096
"""Longest path of a workspace that a result includes; the longest path that Linux accepts."""


class Workspace(SparseRecord):
    """A workspace, complete or bounded.

    `kind` is for example `worktree`, and `head` is the commit that is checked out.
    """

    workspace_id: Identifier | None = None
    path: Annotated[Sentence, Field(min_length=1)]
    branch: Sentence | None = None
    kind: Sentence | None = None
    head: Sentence | None = None


class WorkspaceOutput(FamilyOutput):
    """The active workspace after the call, if there is one.

    Attributes:
        disposition: how the call changed the active workspace: `attached`, `switched`, `created`,
            `unchanged`, `exited`, or another `snake_case` word.
        projection: the runtime's name of the active view of the workspace.
    """

    disposition: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    workspace: Workspace | None = None
    projection: Sentence | None = None

    def summary(self) -> str:
        """The disposition and the path of the workspace."""
        happened = "workspace " + self.disposition.replace("_", " ")
        return happened if self.workspace is None else f"{happened}: {self.workspace.path}"


def project_workspace(result: WorkspaceOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound every name and the path."""
    workspace = None
    if result.workspace is not None:
        limits = {"branch": NAME_CHARS, "kind": NAME_CHARS, "head": NAME_CHARS}
        limits["path"] = min(budget.preview_chars, PATH_CHARS)
        workspace = bound_texts(result.workspace, "workspace", limits, cutter)
    named = bound_texts(result, "", {"projection": NAME_CHARS}, cutter)
    return confirming(named, cutter, workspace=workspace)


def render_workspace(canonical: CanonicalResult, _budget: Budget) -> str:
    """Render a line with the active workspace, and a line with its id and its projection."""
    result = json_of(canonical)
    workspace = result.get("workspace", {})
    happened = "Workspace " + result["disposition"].replace("_", " ")
    where = f": {_worded(workspace)}" if workspace else ""
    handles = labelled(workspace, {"workspace_id": "Workspace id"})
    handles += labelled(result, {"projection": "Projection"})
    lines = [happened + where, ", ".join(handles)]
    return "\n".join(filter(None, lines)) + "\n"


def _worded(workspace: Json) -> str:
    labels = {"kind": "", "branch": "branch ", "head": "head "}
    traits = [f"{label}{workspace[name]}" for name, label in labels.items() if workspace.get(name)]
    worded = ", ".join(map(one_line, traits))
    return one_line(workspace["path"]) + (f" ({worded})" if worded else "")


FAMILY = Family(
    name="workspace",
    result_types=(WorkspaceOutput,),
    projector=project_workspace,
    render=render_workspace,
    budget=Budget(preview_chars=5_000, receipt_chars=7_000),
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
