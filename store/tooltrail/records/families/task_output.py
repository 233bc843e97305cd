"""The task output family: the output of a background task so far, or until its end.

If the task is not ready, or the wait for it timed out, the call is still a success of the tool.
"""

from typing import Literal

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Json,
    body_of,
    bound_texts,
    bounded,
    entry,
    json_of,
    labelled,
    receipt,
)
from tooltrail.records.families._tasks import Task
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

_TEXT_LIMITS = {"summary": NAME_CHARS, "result_summary": SENTENCE_CHARS}

RetrievalStatus = Literal["success", "timeout", "not_ready"]

_LABELS = {
    "task_id": "Task",
    "status": "Status",
    "exit_status": "Exit status",
    "summary": "Summary",
    "result_summary": "Result",
}

_OUTCOMES: dict[RetrievalStatus, str] = {
    "success": "Task output retrieved",
    "timeout": "Task output wait timed out",
    "not_ready": "Task output is not ready",
}


class ObservedTask(Task):
    """A task with its output.

    Attributes:
        output: the output; None if it was not requested or is not available.
        result_summary: a sentence about the task's result.
        failure: the log of the task's failure, role `failure`; it is never shown.
    """

    output: StreamRecord | None = None
    result_summary: Sentence | None = None
    failure: StreamRecord | None = None


class TaskOutput(FamilyOutput):
    """The complete result of a request for a task's output, with the task at that time."""

    retrieval_status: RetrievalStatus
    task: ObservedTask

    def summary(self) -> str:
        """Whether the output was available, and the state of the task."""
        outcome = _OUTCOMES[self.retrieval_status]
        return f"{outcome[0].lower()}{outcome[1:]}; task is {self.task.status}"

    def facts(self) -> Facts:
        """How the task's command ended, for lists."""
        return Facts(exit_status=self.task.exit_status)


def project_task_output(result: TaskOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the output and the sentences about it. The task has its own list of artifacts."""
    task = result.task
    nested = cutter.beside()
    (shown,) = nested.streams([task.output], budget.preview_chars)
    failure = nested.unseen(task.failure, "the log of a failure is not shown")
    observed = bounded(
        bound_texts(task, "task", _TEXT_LIMITS, nested),
        nested,
        {"summary", "output_preview"},
        failure_artifact=failure.artifact,
        **shown.named("output"),
    )
    return entry(result, task=observed)


def render_task_output(canonical: CanonicalResult, budget: Budget) -> str:
    """Render whether the output was available, the state of the task, then the output."""
    result = json_of(canonical)
    task = result["task"]
    lines = [_OUTCOMES[result["retrieval_status"]], *labelled(task, _LABELS)]
    return receipt(["\n".join(lines), *body_of(task, "output", budget.spare_chars, "Output")], task)


FAMILY = Family(
    name="task_output",
    result_types=(TaskOutput,),
    projector=project_task_output,
    render=render_task_output,
    budget=Budget(preview_chars=8_000, receipt_chars=10_000),
    tool_names=frozenset({"TaskOutput", "BashOutput", "write_stdin"}),
    version=2,
)
