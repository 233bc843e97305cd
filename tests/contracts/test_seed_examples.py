"""The envelopes that the design of the tool result shows: each validates and renders."""

from typing import Any

import pytest

from tooltrail.records import CanonicalResult, default_families, default_policy, render

FAMILIES = default_families()
POLICY = default_policy(FAMILIES)


def envelope(summary: str, result: dict[str, Any] | None, **error: Any) -> CanonicalResult:
    return CanonicalResult.model_validate(
        {
            "tool_name": "ExecCommand",
            "status": "error" if error else "success",
            "summary_text": summary,
            "result": result,
            "error": error or None,
        }
    )


COMPLETED = envelope(
    "command exited with status 0",
    {
        "disposition": "completed",
        "exit_status": 0,
        "stdout_preview": "short output preview",
        "stderr_preview": None,
        "truncated": False,
    },
)
PROMOTED = envelope(
    "command promoted to managed task",
    {
        "disposition": "promoted_to_task",
        "task_handle": {"task_id": "task_123", "kind": "command_task"},
        "initial_output_preview": "short output preview",
        "initial_output_truncated": False,
    },
)
OUTSIDE = "requested working directory is outside the current execution root"
FAILED = envelope(
    OUTSIDE,
    None,
    kind="execution_root_violation",
    message=OUTSIDE,
    details={"workdir": "../other-repo"},
    recovery_hint="omit workdir or use a relative path inside the active workspace",
    retryable=False,
)


PROMOTED_RECEIPT = """\
Command promoted to background task
Task: task_123

Initial output:
short output preview
"""
FAILED_RECEIPT = f"""\
Error (execution_root_violation): {OUTSIDE}
Hint: omit workdir or use a relative path inside the active workspace
Retryable: no
Details: {{"workdir":"../other-repo"}}
"""


@pytest.mark.parametrize(
    ("canonical", "receipt"),
    [
        (COMPLETED, "Process exited with code 0\n\nstdout:\nshort output preview\n"),
        (PROMOTED, PROMOTED_RECEIPT),
        (FAILED, FAILED_RECEIPT),
    ],
)
def test_an_example_of_the_design_renders(canonical: CanonicalResult, receipt: str) -> None:
    assert render(canonical, FAMILIES.named("command"), POLICY).text == receipt
