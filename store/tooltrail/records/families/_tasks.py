"""Tasks that run in the background, as several families speak of them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record, Sentence
from tooltrail.records.cutting import Cutter
from tooltrail.records.families._shared import ExitStatus, Identifier, Json, bound_texts, entry

TaskState = Literal[
    "queued", "running", "cancelling", "completed", "failed", "cancelled", "interrupted"
]
"""The last four are final."""

TaskKind = Annotated[Sentence, Field(max_length=64)]

_UNFINISHED = frozenset({"queued", "running", "cancelling"})


class TaskHandle(Record):
    """What is needed to ask for a task again; kept whole, a status that nobody knows as null."""

    task_id: Identifier
    kind: TaskKind
    status: TaskState | None = None


class Task(Record):
    """What a tool says of a task, complete.

    Attributes:
        task_id: what to ask for it with.
        kind: what it is, `command_task` for instance.
        status: where it stands.
        summary: a sentence about it, often its command.
        exit_status: 0 to 255, of a command that ended.
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
    """What a result says of a task: no output, and its summary in `limit` characters.

    Args:
        task: the task.
        field: where it stands in the result, for the names of omissions.
        limit: characters of the summary.
        cutter: counts what is left out.
    """
    return entry(bound_texts(task, field, {"summary": limit}, cutter), {"summary"})
