"""Commands that did not end: made a background task, or found to be running as one already."""

from typing import Literal

from tooltrail.records._model import Sentence
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import ArtifactReference, FamilyOutput
from tooltrail.records.families._commands import CommandBudget, CommandSummary, summarize_command
from tooltrail.records.families._receipts import (
    artifact_lines,
    artifact_section,
    joined,
    one_line,
)
from tooltrail.records.families._shared import SENTENCE_CHARS, SparseRecord
from tooltrail.records.families._tasks import TaskHandle
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord


class PromotedCommand(FamilyOutput):
    """A command that took long and goes on in the background.

    Attributes:
        command: what was run, as a shell would spell it.
        cwd: the folder it runs in, as it was asked for.
        task_handle: the task that it became.
        initial_output: what it printed until then, role `initial_output`.
    """

    disposition: Literal["promoted_to_task"] = "promoted_to_task"
    command: str | None = None
    cwd: str | None = None
    task_handle: TaskHandle
    initial_output: StreamRecord | None = None

    def summary(self) -> str:
        """What became of the command."""
        return "command promoted to managed task"


class RunningCommand(FamilyOutput):
    """A command that was not started, because a task runs it already.

    Attributes:
        command: what was asked for, as a shell would spell it.
        cwd: the folder it was to run in.
        task_handle: the task that runs it.
        task_summary: one sentence about the task.
    """

    disposition: Literal["already_running"] = "already_running"
    command: str | None = None
    cwd: str | None = None
    task_handle: TaskHandle
    task_summary: Sentence | None = None

    def summary(self) -> str:
        """Why nothing was started."""
        return "command is already running as a background task"


class PromotedResult(SparseRecord):
    """The canonical result of a command that became a task."""

    disposition: Literal["promoted_to_task"]
    task_handle: TaskHandle
    command: CommandSummary | None = None
    initial_output_preview: str | None = None
    initial_output_encoding: Encoding | None = None
    initial_output_truncated: bool = False
    truncated: bool = False
    artifacts: tuple[ArtifactReference, ...] | None = None
    initial_output_artifact: int | None = None


class RunningResult(SparseRecord):
    """The canonical result of a command that was running already."""

    disposition: Literal["already_running"]
    task_handle: TaskHandle
    command: CommandSummary | None = None
    summary: str | None = None
    truncated: bool = False


def project_promoted(
    result: PromotedCommand, budget: CommandBudget, cutter: Cutter
) -> PromotedResult:
    """Bound the initial output and the command line."""
    (shown,) = cutter.streams([result.initial_output], budget.preview_chars)
    command = summarize_command(result.command, result.cwd, budget.command_chars, cutter)
    return PromotedResult.model_validate(
        {
            "disposition": result.disposition,
            "task_handle": result.task_handle,
            "command": command,
            **shown.named("initial_output"),
            "truncated": cutter.truncated,
            "artifacts": cutter.references,
        }
    )


def project_running(result: RunningCommand, budget: CommandBudget, cutter: Cutter) -> RunningResult:
    """Bound the command line and what is said of the task."""
    command = summarize_command(result.command, result.cwd, budget.command_chars, cutter)
    summary = result.task_summary
    if summary is not None:
        summary = cutter.text("summary", summary, SENTENCE_CHARS)
    return RunningResult(
        disposition=result.disposition,
        task_handle=result.task_handle,
        command=command,
        summary=summary,
        truncated=cutter.truncated,
    )


def render_promoted(result: PromotedResult, budget: CommandBudget) -> str:
    """The task to ask for, then what the command printed so far."""
    sections = [
        f"Command promoted to background task\nTask: {one_line(result.task_handle.task_id)}"
    ]
    if result.initial_output_preview:
        text = (result.initial_output_preview, result.initial_output_truncated)
        (body,) = readable([text], budget.spare_chars)
        sections.append(f"Initial output:\n{body}")
    roles = {result.initial_output_artifact: "initial_output"}
    sections += artifact_section(artifact_lines(result.artifacts or (), roles))
    return joined(sections)


def render_running(result: RunningResult) -> str:
    """The task that runs the command, and what is known of it."""
    handle = result.task_handle
    lines = [
        "Command is already running as a background task",
        f"Task: {one_line(handle.task_id)}",
    ]
    if handle.status is not None:
        lines.append(f"Status: {handle.status}")
    if result.command is not None:
        lines.append(f"Command: {one_line(result.command.preview)}")
    if result.summary:
        lines.append(f"Summary: {one_line(result.summary)}")
    return "\n".join(lines) + "\n"
