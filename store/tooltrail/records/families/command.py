"""The command family: a process that ran, its output, and how it ended.

A command that exits with 1, is killed, or reaches its time limit is a success of the tool: the tool
did run it. A command that could not be started is an error. A command that does not end in time may
become a background task. A command that already runs as a task is not started again.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.command_documents import worded_end
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.envelope import CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    ExitStatus,
    Json,
    Milliseconds,
    SignalNumber,
    artifact_roles,
    body_of,
    bounded,
    json_of,
    labelled,
    one_line,
    receipt,
)
from tooltrail.records.families.tasks import TaskHandle
from tooltrail.records.family import Family
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

CWD_CHARS = 4096
"""Longest working directory that a result includes; the longest path that Linux accepts."""


class CommandBudget(Budget):
    """Bounds of the command family.

    Attributes:
        preview_chars: both streams together; room that one stream does not need goes to the other.
        command_chars: most characters of the command line that the result includes.
    """

    preview_chars: PreviewChars = 32_000
    receipt_chars: ReceiptChars = 34_000
    command_chars: Annotated[int, Field(ge=16, le=240)] = 240


class _AnyCommand(FamilyOutput):
    """A requested command.

    Attributes:
        command: the command line, as a shell would spell it.
        cwd: the requested working directory.
    """

    command: str | None = None
    cwd: str | None = None


class CommandOutput(_AnyCommand):
    """A finished command with its complete output: two streams, or both in one.

    Attributes:
        exit_status: 0 to 255; None if a signal ended the command, or if the status is unknown.
        signal: number of the signal that ended the command.
        timed_out: whether the command was ended because its time limit was reached.
        timeout_ms: the time limit; given if `timed_out`.
        stdout: the standard output.
        stderr: the standard error.
        combined: the output to a terminal, which does not separate the streams; instead of both.
        order: lines `FD BYTES MS`: chunks of both streams in arrival order, timed from the start.
    """

    disposition: Literal["completed"] = "completed"
    exit_status: ExitStatus | None = None
    signal: SignalNumber | None = None
    timed_out: bool = False
    timeout_ms: Milliseconds | None = None
    stdout: StreamRecord | None = None
    stderr: StreamRecord | None = None
    combined: StreamRecord | None = None
    order: StreamRecord | None = None

    @model_validator(mode="after")
    def _check_ending(self) -> Self:
        if self.exit_status is not None and self.signal is not None:
            raise ValueError("a command ends with an exit status or by a signal, and not by both")
        if self.timed_out and self.timeout_ms is None:
            raise ValueError("a command that timed out had a timeout")
        return self

    @model_validator(mode="after")
    def _check_streams(self) -> Self:
        separate = (self.stdout is not None, self.stderr is not None)
        if separate != (self.combined is None, self.combined is None):
            raise ValueError("a command has stdout and stderr, or one combined stream")
        return self

    def summary(self) -> str:
        """How the command ended."""
        return f"command {worded_end(vars(self), f'exited with status {self.exit_status}')}"

    def facts(self) -> Facts:
        """How the command ended, for lists."""
        return Facts(self.exit_status, self.signal, self.timed_out)


class PromotedCommand(_AnyCommand):
    """A long-running command that continues in the background.

    Attributes:
        task_handle: handle of the task that the command became.
        initial_output: the output until then; its role is `initial_output`.
    """

    disposition: Literal["promoted_to_task"] = "promoted_to_task"
    task_handle: TaskHandle
    initial_output: StreamRecord | None = None

    def summary(self) -> str:
        """That the command became a task."""
        return "command promoted to managed task"


class RunningCommand(_AnyCommand):
    """A command that was not started, because a task already runs it.

    Attributes:
        task_handle: handle of the task that runs the command.
        task_summary: one sentence about the task.
    """

    disposition: Literal["already_running"] = "already_running"
    task_handle: TaskHandle
    task_summary: Sentence | None = None

    def summary(self) -> str:
        """Why nothing was started."""
        return "command is already running as a background task"


def project_command(
    result: CommandOutput | PromotedCommand | RunningCommand, budget: CommandBudget, cutter: Cutter
) -> Json:
    """Bound the streams and the command line."""
    if isinstance(result, CommandOutput):
        return project_completed(result, budget.preview_chars, budget.command_chars, cutter)
    shown: Json = {}
    if isinstance(result, PromotedCommand):
        (initial,) = cutter.streams([result.initial_output], budget.preview_chars)
        shown = initial.named("initial_output")
    command = _summarize_command(result, budget.command_chars, cutter)
    if isinstance(result, RunningCommand) and result.task_summary is not None:
        shown = {"summary": cutter.text("summary", result.task_summary, SENTENCE_CHARS)}
    return bounded(result, cutter, command=command, cwd=None, task_summary=None, **shown)


def project_completed(
    result: CommandOutput, room: int, command_chars: int, cutter: Cutter, *, prefix: str = ""
) -> Json:
    """Bound the streams of a finished command to `room` characters together.

    Args:
        result: the command.
        room: most characters of all previews.
        command_chars: most characters of the command line.
        cutter: the cutter of this result; its artifacts are listed beside the previews.
        prefix: path of this result in the tool's result, for the names of omissions.
    """
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    if result.combined is not None:
        streams = {"combined_output": result.combined}
    shown: Json = {}
    for name, one in zip(streams, cutter.streams([*streams.values()], room), strict=True):
        shown |= one.named(name)
    if result.order is not None:
        cutter.count_losses(result.order)  # the stream is never shown, but its losses count
    line = _summarize_command(result, command_chars, cutter, prefix=prefix)
    limit = result.timeout_ms if result.timed_out else None
    nullable = {"exit_status", *(f"{name}_preview" for name in streams)}
    return bounded(result, cutter, nullable, command=line, cwd=None, timeout_ms=limit, **shown)


def _summarize_command(
    result: _AnyCommand, limit: int, cutter: Cutter, *, prefix: str = ""
) -> Json | None:
    """Bound a command line to `limit` characters and its folder to `CWD_CHARS`.

    Args:
        result: the requested command; an unknown command has no summary.
        limit: most characters of the preview.
        cutter: counts what is left out.
        prefix: path of the summary in the result, for the names of omissions.
    """
    command, cwd = result.command, result.cwd
    if command is None:
        return None
    text = encodable(command)
    preview = cutter.text(f"{prefix}command", text, limit)
    folder = cutter.text(f"{prefix}cwd", encodable(cwd), CWD_CHARS) if cwd else None
    digest = digest_of(_bytes_of(command))
    return {"preview": preview, "char_count": len(text), "cwd": folder, "digest": digest}


def encodable(text: str) -> str:
    r"""A command line or a folder with undecodable bytes escaped: `caf\xe9`."""
    return _bytes_of(text).decode("utf-8", "backslashreplace")


def _bytes_of(text: str) -> bytes:
    """The bytes that the system saw, as far as they can be restored."""
    try:
        # Python represents undecodable bytes as low surrogates; JSON escapes can contain any.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def render_command(canonical: CanonicalResult, budget: CommandBudget) -> str:
    """Render a receipt like a shell's output: the outcome, then each stream that has output."""
    result = json_of(canonical)
    match result["disposition"]:
        case "promoted_to_task":
            return _render_promoted(result, budget)
        case "already_running":
            return _render_running(result)
        case _:
            return _render_completed(result, budget)


def _render_completed(result: Json, budget: CommandBudget) -> str:
    outcome = worded_end(result, f"exited with code {result['exit_status']}")
    sections = [f"Process {outcome}"]
    texts = printed_texts(result)
    bodies = readable(texts.values(), budget.spare_chars)
    sections.extend(f"{name}:\n{body}" for name, body in zip(texts, bodies, strict=True))
    return receipt(sections, result, command_roles(result))


def _render_promoted(result: Json, budget: CommandBudget) -> str:
    """The task to query, then the output so far."""
    task = one_line(result["task_handle"]["task_id"])
    heading = f"Command promoted to background task\nTask: {task}"
    body = body_of(result, "initial_output", budget.spare_chars, "Initial output")
    return receipt([heading, *body], result)


def _render_running(result: Json) -> str:
    """The task that runs the command, with its status and summary."""
    lines = ["Command is already running as a background task"]
    lines += labelled(result["task_handle"], {"task_id": "Task", "status": "Status"})
    if "command" in result:
        lines.append(f"Command: {one_line(result['command']['preview'])}")
    lines += labelled(result, {"summary": "Summary"})
    return "\n".join(lines) + "\n"


_HEADINGS = {"combined_output": "output", "stdout": "stdout", "stderr": "stderr"}
"""The heading of each stream of a finished command."""


def printed_texts(result: Json) -> dict[str, tuple[str, bool]]:
    """The output of a command by heading: each text that is not empty, and whether it was cut."""
    return {
        heading: (result[f"{name}_preview"], result.get(f"{name}_truncated", False))
        for name, heading in _HEADINGS.items()
        if result.get(f"{name}_preview")
    }


def command_roles(result: Json) -> dict[int, str]:
    """The role of each artifact of a finished command, by index."""
    roles = artifact_roles(result)
    return {n: role.removesuffix("_output") for n, role in roles.items()}


FAMILY = Family(
    name="command",
    result_types=(CommandOutput, PromotedCommand, RunningCommand),
    projector=project_command,
    render=render_command,
    budget=CommandBudget(),
    tool_names=frozenset(
        {
            "Bash",
            "bash",
            "exec",
            "exec_command",
            "ExecCommand",
            "local_shell",
            "shell",
            "shell_command",
        }
    ),
    version=2,
)
