"""Workspaces: what is active now, in one line or two."""

import pytest
from pydantic import ValidationError
from tests.records.support import check_golden, omitted, result_of, run, run_result
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import Policy, Workspace, WorkspaceOutput

SMALL = policy_with(workspace={"preview_chars": 1000, "receipt_chars": 3000})


def at(path: str) -> WorkspaceOutput:
    return WorkspaceOutput(disposition="switched", workspace=Workspace(path=path))


SWITCHED = WorkspaceOutput(
    disposition="switched", workspace=Workspace(path="/srv/app", branch="main")
)
CREATED = WorkspaceOutput(
    disposition="created",
    workspace=Workspace(
        workspace_id="ws_2", path="/srv/app-fix", branch="fix", kind="worktree", head="3fa9c1d"
    ),
    projection="git_worktree",
)
EXITED = WorkspaceOutput(disposition="exited")
PROJECTION = WorkspaceOutput(disposition="attached_read_only", projection="canonical_root")


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("workspace", 1),
        workspace_switched=SWITCHED,
        workspace_created=CREATED,
        workspace_exited=EXITED,
        workspace_projection=PROJECTION,
    )


def test_the_canonical_result_has_the_fields_of_the_family_and_no_idle_ones() -> None:
    assert run_result(CREATED) == {
        "disposition": "created",
        "workspace": {
            "workspace_id": "ws_2",
            "path": "/srv/app-fix",
            "branch": "fix",
            "kind": "worktree",
            "head": "3fa9c1d",
        },
        "projection": "git_worktree",
    }
    assert run_result(EXITED) == {"disposition": "exited"}


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (SWITCHED, "workspace switched: /srv/app"),
        (EXITED, "workspace exited"),
        (PROJECTION, "workspace attached read only"),
    ],
)
def test_the_summary_says_what_happened_and_where(output: WorkspaceOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary


@each_case("disposition", ["", "Switched", "two words", "1st", "a" * 65])
def test_a_disposition_that_is_no_word_is_refused(disposition: str) -> None:
    with pytest.raises(ValidationError):
        WorkspaceOutput(disposition=disposition)


def test_a_workspace_is_somewhere() -> None:
    with pytest.raises(ValidationError):
        Workspace(path="")


@pytest.mark.parametrize(
    ("policy", "limit"), [(None, 4096), (SMALL, 1000)], ids=["default", "small"]
)
def test_a_path_is_whole_up_to_the_longest_that_there_can_be_or_the_budget(
    policy: Policy | None, limit: int
) -> None:
    projection, receipt = run(at("/" + "d" * (limit - 1)), policy)
    assert "truncated" not in result_of(projection)
    assert receipt.text == f"Workspace switched: /{'d' * (limit - 1)}\n"
    projection, receipt = run(at("/" + "d" * limit), policy)
    assert result_of(projection)["truncated"] is True
    assert omitted(projection.omissions, "workspace.path", "chars") == 2
    assert receipt.text == f"Workspace switched: /{'d' * (limit - 2)}\u2026\n"


def test_every_long_name_is_cut_and_counted_under_its_own_name() -> None:
    long = "n" * 300
    workspace = Workspace(path="/", branch=long, kind=long, head=long)
    output = WorkspaceOutput(disposition="created", workspace=workspace, projection=long)
    projection, _ = run(output)
    cut = "n" * 239 + "\u2026"
    assert result_of(projection) == {
        "disposition": "created",
        "workspace": {"path": "/", "branch": cut, "kind": cut, "head": cut},
        "projection": cut,
        "truncated": True,
    }
    for field in ("workspace.branch", "workspace.kind", "workspace.head", "projection"):
        assert omitted(projection.omissions, field, "chars") == 61
