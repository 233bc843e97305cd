"""Models of background tasks, shared by several families."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record, Sentence
from tooltrail.records.families._shared import ExitStatus, Identifier

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

    `kind` is for example `command_task`, and `summary` is often a command.
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
