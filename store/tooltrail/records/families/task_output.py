"""The task output family: what a background task printed so far, or until its end.

That a task is not ready, or that the wait for it timed out, is a success of the tool.
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
    """Whether the output was there, where the task stands, then the output."""
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
