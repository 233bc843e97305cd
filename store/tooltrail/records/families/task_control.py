"""The task control family: query background tasks, list them, stop one, write to one.

If a task refuses an input, the result is a success with that answer, not an error.
"""

from typing import ClassVar, Literal

from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Json,
    Number,
    confirming,
    hidden_lines,
    json_of,
    labelled,
    one_line,
)
from tooltrail.records.families._tasks import Task, bound_task
from tooltrail.records.family import Family


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
        tasks: the tasks that the tool returned.
    """

    action: Literal["list"] = "list"
    total_active: Number
    limit: Number | None = None
    tasks: tuple[Task, ...] = ()

    def summary(self) -> str:
        """The number of active tasks and of returned tasks."""
        return f"{_counted(self.total_active, 'active task')}, {len(self.tasks)} returned"


class TaskStopOutput(FamilyOutput):
    """The request to end a task.

    Attributes:
        task: the task after the request.
        stop_requested: whether the task was asked to end; false if it had already ended.
        force_stop_requested: whether a forced stop was requested.
    """

    action: Literal["stop"] = "stop"
    task: Task
    stop_requested: bool
    force_stop_requested: bool = False

    def summary(self) -> str:
        """The request and the state of the task."""
        request = _request(self.stop_requested, self.force_stop_requested)
        return f"{request[0].lower()}{request[1:]}; task is {self.task.status}"


class TaskInputOutput(FamilyOutput):
    """Input for a task.

    Attributes:
        task: the task after the input.
        accepted_input: whether the task accepted the input.
        bytes_written: bytes of the input that the task accepted.
    """

    action: Literal["input"] = "input"
    task: Task
    accepted_input: bool
    bytes_written: Number | None = None

    def summary(self) -> str:
        """Whether the task accepted the input."""
        outcome = "accepted" if self.accepted_input else "refused"
        return f"input {outcome}; task is {self.task.status}"


TaskControlOutput = TaskStatusOutput | TaskListOutput | TaskStopOutput | TaskInputOutput


def project_task_control(
    result: TaskControlOutput, budget: TaskControlBudget, cutter: Cutter
) -> Json:
    """Bound the number of tasks and the sentences about them.

    For a list, `returned` counts the tasks that the tool returned; the result has the first ones.
    """
    if not isinstance(result, TaskListOutput):
        task = bound_task(result.task, "task", SENTENCE_CHARS, cutter)
        return confirming(result, cutter, task=task)
    tasks = [
        bound_task(task, f"tasks[{n}]", NAME_CHARS, cutter)
        for n, task in enumerate(cutter.items("tasks", result.tasks, budget.max_items))
    ]
    count = len(result.tasks)
    return confirming(result, cutter, {"limit"}, returned=count, tasks=tasks)


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
            lines = [_answer(result), f"Status: {result['task']['status']}"]
    return "\n".join(lines) + "\n"


def _answer(result: Json) -> str:
    name = one_line(result["task"]["task_id"])
    if result["action"] == "stop":
        request = _request(result["stop_requested"], result["force_stop_requested"])
        return f"{request} for task {name}"
    outcome = "accepted" if result["accepted_input"] else "refused"
    count = result.get("bytes_written")
    written = "" if count is None else f": {_counted(count, 'byte')} written"
    return f"Input {outcome} by task {name}{written}"


def _request(stop: bool, force: bool) -> str:
    if force:
        return "Forced stop requested"
    return "Stop requested" if stop else "No stop requested"


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


FAMILY = Family(
    name="task_control",
    result_types=(TaskStatusOutput, TaskListOutput, TaskStopOutput, TaskInputOutput),
    projector=project_task_control,
    render=render_task_control,
    budget=TaskControlBudget(),
    tool_names=frozenset(
        {"TaskStatus", "ListTasks", "TaskStop", "TaskInput", "KillShell", "KillBash"}
    ),
)
