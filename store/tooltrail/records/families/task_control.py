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
    bound_texts,
    confirming,
    entry,
    hidden_lines,
    json_of,
    labelled,
    one_line,
)
from tooltrail.records.families._tasks import Task
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
