"""The task output family: what a background task printed so far, or until its end.

That a task is not ready, or that the wait for it timed out, is a success of the tool.
"""

from typing import Literal

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import NOT_THERE, Cutter
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    SparseRecord,
    bound_texts,
    bounded,
    one_line,
    receipt,
)
from tooltrail.records.families._tasks import Task, TaskSnapshot
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

_TEXT_LIMITS = {"summary": NAME_CHARS, "result_summary": SENTENCE_CHARS}

RetrievalStatus = Literal["success", "timeout", "not_ready"]

_OUTCOMES: dict[RetrievalStatus, str] = {
    "success": "Task output retrieved",
    "timeout": "Task output wait timed out",
    "not_ready": "Task output is not ready",
}


class TaskOutputBudget(Budget):
    """Bounds of the task output family."""

    preview_chars: PreviewChars = 8_000
    receipt_chars: ReceiptChars = 10_000


class ObservedTask(Task):
    """A task and what it printed.

    Attributes:
        output: what it printed; None when nothing was asked for or can be had.
        result_summary: a sentence about what came out of it.
        failure: the log of its failure, role `failure`, of which nothing is shown.
    """

    output: StreamRecord | None = None
    result_summary: Sentence | None = None
    failure: StreamRecord | None = None


class TaskOutput(FamilyOutput):
    """The complete answer to a question for a task's output.

    Attributes:
        retrieval_status: whether the output was there, and if not, why.
        task: the task as it was then.
    """

    retrieval_status: RetrievalStatus
    task: ObservedTask

    def summary(self) -> str:
        """Whether the output was there, and where the task stands."""
        outcome = _OUTCOMES[self.retrieval_status]
        return f"{outcome[0].lower()}{outcome[1:]}; task is {self.task.status}"

    def facts(self) -> Facts:
        """How the task's command ended, for lists."""
        return Facts(exit_status=self.task.exit_status)


class ObservedTaskResult(TaskSnapshot):
    """A task in a canonical result, with its own list of artifacts.

    `truncated` says that anything was left out: of the output, of a sentence, or the failure log.
    """

    output_preview: str | None
    output_encoding: Encoding | None = None
    output_truncated: bool
    result_summary: str | None = None
    truncated: bool
    artifacts: tuple[ArtifactReference, ...] | None = None
    output_artifact: int | None = None
    failure_artifact: int | None = None


class TaskOutputResult(SparseRecord):
    """The canonical result of a question for a task's output."""

    retrieval_status: RetrievalStatus
    task: ObservedTaskResult


def project_task_output(
    result: TaskOutput, budget: TaskOutputBudget, cutter: Cutter
) -> TaskOutputResult:
    """Bound the output and the sentences about it."""
    task = result.task
    nested = cutter.beside()
    (shown,) = nested.streams([task.output], budget.preview_chars)
    failure = NOT_THERE
    if task.failure is not None:
        failure = nested.unseen(task.failure, "the log of a failure is not shown")
    observed = bounded(
        ObservedTaskResult,
        bound_texts(task, "task", _TEXT_LIMITS, nested),
        nested,
        failure_artifact=failure.artifact,
        **shown.named("output"),
    )
    return TaskOutputResult(retrieval_status=result.retrieval_status, task=observed)


def render_task_output(canonical: CanonicalResult, budget: TaskOutputBudget) -> str:
    """Whether the output was there, where the task stands, then the output."""
    result = TaskOutputResult.model_validate(canonical.result)
    task = result.task
    sections = [_heading(result)]
    if task.output_preview:
        text = (task.output_preview, task.output_truncated)
        (body,) = readable([text], budget.spare_chars)
        sections.append(f"Output:\n{body}")
    roles = {task.output_artifact: "output", task.failure_artifact: "failure"}
    return receipt(sections, task.artifacts, roles)


def _heading(result: TaskOutputResult) -> str:
    task = result.task
    lines = [
        _OUTCOMES[result.retrieval_status],
        f"Task: {one_line(task.task_id)}",
        f"Status: {task.status}",
    ]
    if task.exit_status is not None:
        lines.append(f"Exit status: {task.exit_status}")
    if task.summary:
        lines.append(f"Summary: {one_line(task.summary)}")
    if task.result_summary:
        lines.append(f"Result: {one_line(task.result_summary)}")
    return "\n".join(lines)


FAMILY = Family(
    name="task_output",
    result_types=(TaskOutput,),
    projector=project_task_output,
    renderer=Renderer("task_output", 2, render_task_output),
    budget=TaskOutputBudget(),
    tool_names=frozenset({"TaskOutput", "BashOutput", "write_stdin"}),
)
