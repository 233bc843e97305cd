"""The task families: control of background tasks, and the output of one of them.

If a task refuses an input, is not ready, or the wait for its output times out, the call is still a
success of the tool.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record, Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    ExitStatus,
    Identifier,
    Json,
    Number,
    body_of,
    bound_texts,
    bounded,
    confirming,
    entry,
    hidden_lines,
    json_of,
    labelled,
    one_line,
    receipt,
)
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

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


class TaskControlBudget(Budget):
    """Bounds of the task control family: `max_items` tasks in a list. There are no previews."""

    item_chars: ClassVar[int] = 640

    preview_chars: PreviewChars = 1_000
    receipt_chars: ReceiptChars = 24_000


class TaskStatusOutput(FamilyOutput):
    """The current state of a task."""

    action: Literal["status"] = "status"
    task: Task

    def summary(self) -> str:
        """The state of the task."""
        return f"task is {self.task.status}"


class TaskListOutput(FamilyOutput):
    """A list of tasks.

    Attributes:
        total_active: number of tasks that have not ended.
        limit: most tasks that were requested; None if the tool accepts no limit.
    """

    action: Literal["list"] = "list"
    total_active: Number
    limit: Number | None = None
    tasks: tuple[Task, ...] = ()

    def summary(self) -> str:
        """The number of active tasks and of returned tasks."""
        return f"{_counted(self.total_active, 'active task')}, {len(self.tasks)} returned"


class _Request(FamilyOutput):
    """A request to a task, with the task after the request."""

    task: Task

    def summary(self) -> str:
        """The outcome of the request and the state of the task."""
        return f"{_outcome(vars(self))}; task is {self.task.status}"


class TaskStopOutput(_Request):
    """The request to end a task. `stop_requested` is false if the task had already ended."""

    action: Literal["stop"] = "stop"
    stop_requested: bool
    force_stop_requested: bool = False


class TaskInputOutput(_Request):
    """Input for a task. `bytes_written` counts the bytes that the task accepted."""

    action: Literal["input"] = "input"
    accepted_input: bool
    bytes_written: Number | None = None


TaskControlOutput = TaskStatusOutput | TaskListOutput | TaskStopOutput | TaskInputOutput


def project_task_control(
    result: TaskControlOutput, budget: TaskControlBudget, cutter: Cutter
) -> Json:
    """Bound the number of tasks and the sentences about them.

    For a list, `returned` counts the tasks that the tool returned; the result has the first ones.
    """
    if not isinstance(result, TaskListOutput):
        task = _project_task(result.task, "task", SENTENCE_CHARS, cutter)
        return confirming(result, cutter, task=task)
    tasks = [
        _project_task(task, f"tasks[{n}]", NAME_CHARS, cutter)
        for n, task in enumerate(cutter.items("tasks", result.tasks, budget.max_items))
    ]
    count = len(result.tasks)
    return confirming(result, cutter, {"limit"}, returned=count, tasks=tasks)


def _project_task(task: Task, field: str, summary_chars: int, cutter: Cutter) -> Json:
    return entry(bound_texts(task, field, {"summary": summary_chars}, cutter), {"summary"})


def render_task_control(canonical: CanonicalResult, _budget: TaskControlBudget) -> str:
    """Render one or two lines about a task, or a list with one line per task."""
    result = json_of(canonical)
    match result["action"]:
        case "list":
            lines = _list_lines(result)
        case "status":
            task = result["task"]
            lines = [f"Task {one_line(task['task_id'])}: {task['status']}"]
            lines += labelled(task, {"exit_status": "Exit status", "summary": "Summary"})
        case _:
            lines = [_request_line(result), f"Status: {result['task']['status']}"]
    return "\n".join(lines) + "\n"


def _request_line(result: Json) -> str:
    preposition = "by" if result["action"] == "input" else "for"
    name, count = one_line(result["task"]["task_id"]), result.get("bytes_written")
    written = "" if count is None else f": {_counted(count, 'byte')} written"
    return f"{_outcome(result).capitalize()} {preposition} task {name}{written}"


def _outcome(request: Json) -> str:
    if request["action"] == "input":
        return "input accepted" if request["accepted_input"] else "input refused"
    if request["force_stop_requested"]:
        return "forced stop requested"
    return "stop requested" if request["stop_requested"] else "no stop requested"


def _list_lines(result: Json) -> list[str]:
    limit = "" if result["limit"] is None else f" (limit {result['limit']:,})"
    active = _counted(result["total_active"], "active task")
    lines = [f"{active}, {result['returned']:,} returned{limit}"]
    lines.extend(map(_list_line, result["tasks"]))
    return lines + hidden_lines(result, result["returned"] - len(result["tasks"]), "task")


def _list_line(task: Json) -> str:
    """The columns, separated by more white space than a label can contain."""
    columns = [one_line(task["task_id"]), task["status"], one_line(task["kind"])]
    if "exit_status" in task:
        columns.append(f"exit={task['exit_status']}")
    if task["summary"]:
        columns.append(one_line(task["summary"]))
    return "    ".join(columns)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_RETRIEVALS = {
    "success": "task output retrieved",
    "timeout": "task output wait timed out",
    "not_ready": "task output is not ready",
}
"""What came of the request for a task's output, by `retrieval_status`."""


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

    retrieval_status: Literal["success", "timeout", "not_ready"]
    task: ObservedTask

    def summary(self) -> str:
        """Whether the output was available, and the state of the task."""
        return f"{_RETRIEVALS[self.retrieval_status]}; task is {self.task.status}"

    def facts(self) -> Facts:
        """How the task's command ended, for lists."""
        return Facts(exit_status=self.task.exit_status)


def project_task_output(result: TaskOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the output and the sentences about it. The task has its own list of artifacts."""
    task = result.task
    nested = cutter.beside()
    (shown,) = nested.streams([task.output], budget.preview_chars)
    failure = nested.unseen(task.failure, "the log of a failure is not shown")
    limits = {"summary": NAME_CHARS, "result_summary": SENTENCE_CHARS}
    observed = bounded(
        bound_texts(task, "task", limits, nested),
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
    labels = {
        "task_id": "Task",
        "status": "Status",
        "exit_status": "Exit status",
        "summary": "Summary",
        "result_summary": "Result",
    }
    lines = [_RETRIEVALS[result["retrieval_status"]].capitalize(), *labelled(task, labels)]
    return receipt(["\n".join(lines), *body_of(task, "output", budget.spare_chars, "Output")], task)


CONTROL = Family(
    name="task_control",
    result_types=(TaskStatusOutput, TaskListOutput, TaskStopOutput, TaskInputOutput),
    projector=project_task_control,
    render=render_task_control,
    budget=TaskControlBudget(),
    tool_names=frozenset(
        {"TaskStatus", "ListTasks", "TaskStop", "TaskInput", "KillShell", "KillBash"}
    ),
)

OUTPUT = Family(
    name="task_output",
    result_types=(TaskOutput,),
    projector=project_task_output,
    render=render_task_output,
    budget=Budget(preview_chars=8_000, receipt_chars=10_000),
    tool_names=frozenset({"TaskOutput", "BashOutput", "write_stdin"}),
    version=2,
)
