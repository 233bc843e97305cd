"""Models of background tasks, shared by several families."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record, Sentence
from tooltrail.records.cutting import Cutter
from tooltrail.records.families._shared import ExitStatus, Identifier, Json, bound_texts, entry

TaskState = Literal[
    "queued", "running", "cancelling", "completed", "failed", "cancelled", "interrupted"
]
"""The state of a background task; the last four are final."""

TaskKind = Annotated[Sentence, Field(max_length=64)]

_UNFINISHED = frozenset({"queued", "running", "cancelling"})


class TaskHandle(Record):
    """The handle by which a task can be queried later; never cut. An unknown status is null."""

    task_id: Identifier
    kind: TaskKind
    status: TaskState | None = None


class Task(Record):
    """The complete state of a task as reported by a tool.

    Attributes:
        task_id: id by which the task can be queried.
        kind: kind of task, for example `command_task`.
        status: current state of the task.
        summary: a sentence about the task, often its command.
        exit_status: exit status of a command that ended, 0 to 255.
    """

    task_id: Identifier
    kind: TaskKind
    status: TaskState
    summary: Sentence | None = None
    exit_status: ExitStatus | None = None

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.exit_status is not None and self.status in _UNFINISHED:
            raise ValueError(f"a task that is {self.status} has no exit status yet")
        return self


def bound_task(task: Task, field: str, limit: int, cutter: Cutter) -> Json:
    """The entry of a result for a task: without output, with its summary cut to `limit` characters.

    Args:
        task: the task.
        field: path of the task in the result, for the names of omissions.
        limit: most characters of the summary.
        cutter: counts what is left out.
    """
    return entry(bound_texts(task, field, {"summary": limit}, cutter), {"summary"})
