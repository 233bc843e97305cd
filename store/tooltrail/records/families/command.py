"""The command family: a process that ran, its output, and how it ended.

A command that exits with 1, is killed, or reaches its time limit is a success of the tool: the tool
did run it. A command that could not be started is an error. A command that does not end in time may
become a background task. A command that already runs as a task is not started again.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.command_documents import worded_end
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.envelope import CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    ExitStatus,
    Json,
    Number,
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


class _AnyCommand(FamilyOutput):
    """A requested command: the line as a shell would spell it, and the requested folder."""

    command: str | None = None
    cwd: str | None = None


class CommandOutput(_AnyCommand):
    """A finished command with its complete output: two streams, or both in one.

    Attributes:
        exit_status: None if a signal ended the command, or if the status is unknown.
        signal: number of the signal that ended the command.
        timed_out: whether the command was ended because its time limit was reached.
        timeout_ms: the time limit; given if `timed_out`.
        combined: the output to a terminal, which does not separate the streams; instead of both.
        order: lines `FD BYTES MS`: chunks of both streams in arrival order, timed from the start.
    """

    disposition: Literal["completed"] = "completed"
    exit_status: ExitStatus | None = None
    signal: Annotated[int, Field(ge=1, le=128)] | None = None
    timed_out: bool = False
    timeout_ms: Number | None = None
    stdout: StreamRecord | None = None
    stderr: StreamRecord | None = None
    combined: StreamRecord | None = None
    order: StreamRecord | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.exit_status is not None and self.signal is not None:
            raise ValueError("a command ends with an exit status or by a signal, and not by both")
        if self.timed_out and self.timeout_ms is None:
            raise ValueError("a command that timed out had a timeout")
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
    """A long-running command that became a background task, with its `initial_output`."""

    disposition: Literal["promoted_to_task"] = "promoted_to_task"
    task_handle: TaskHandle
    initial_output: StreamRecord | None = None

    def summary(self) -> str:
        """That the command became a task."""
        return "command promoted to managed task"


class RunningCommand(_AnyCommand):
    """A command that was not started, because a task already runs it."""

    disposition: Literal["already_running"] = "already_running"
    task_handle: TaskHandle
    task_summary: Sentence | None = None

    def summary(self) -> str:
        """Why nothing was started."""
        return "command is already running as a background task"


Command = CommandOutput | PromotedCommand | RunningCommand

_STREAMS = (
    ("stdout", "stdout", "stdout"),
    ("stderr", "stderr", "stderr"),
    ("combined", "combined_output", "output"),
    ("initial_output", "initial_output", "Initial output"),
)
"""The streams of commands: the role of each, its name in a result, and its heading in a receipt."""

_TASK_OUTCOMES = {
    "promoted_to_task": "Command promoted to background task",
    "already_running": "Command is already running as a background task",
}


def project_command(result: Command, budget: Budget, cutter: Cutter) -> Json:
    """Bound the streams and the command line."""
    return bound_command(result, budget.preview_chars, cutter)


def bound_command(result: Command, room: int, cutter: Cutter, prefix: str = "") -> Json:
    """Bound the streams to `room` characters together; what one does not need goes to the others.

    The cutter's artifacts are listed beside the previews. `prefix` is the path of this result in
    the result of the tool, for the names of omissions.
    """
    members = vars(result)
    streams = {name: members[role] for role, name, _ in _STREAMS if members.get(role) is not None}
    fields: Json = {}
    for name, one in zip(streams, cutter.streams([*streams.values()], room), strict=True):
        fields |= one.named(name)
    nullable: set[str] = set()
    match result:
        case CommandOutput(timed_out=timed_out, timeout_ms=limit, order=order):
            nullable = {"exit_status", *(f"{name}_preview" for name in streams)}
            fields["timeout_ms"] = limit if timed_out else None
            if order is not None:
                cutter.count_losses(order)  # the stream is never shown, but its losses count
        case PromotedCommand():
            fields.setdefault("initial_output_truncated", False)
        case RunningCommand(task_summary=summary):
            sentence = summary and cutter.text("summary", summary, SENTENCE_CHARS)
            fields |= {"task_summary": None, "summary": sentence}
    line = _command_line(result, cutter, prefix)
    return bounded(result, cutter, nullable, command=line, cwd=None, **fields)


def _command_line(result: Command, cutter: Cutter, prefix: str) -> Json | None:
    """The bounded command line and its folder; None for an unknown command."""
    command, cwd = result.command, result.cwd
    if command is None:
        return None
    text = encodable(command)
    preview = cutter.text(f"{prefix}command", text, NAME_CHARS)
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


def render_command(canonical: CanonicalResult, budget: Budget) -> str:
    """Render a receipt like a shell's output: the outcome, then each stream that has output."""
    result = json_of(canonical)
    texts = printed_texts(result)
    bodies = readable(texts.values(), budget.spare_chars)
    sections = [f"{heading}:\n{body}" for heading, body in zip(texts, bodies, strict=True)]
    return receipt(["\n".join(_outcome_lines(result)), *sections], result, command_roles(result))


def _outcome_lines(result: Json) -> list[str]:
    """How the command ended, or the task that runs it."""
    if result["disposition"] == "completed":
        outcome = worded_end(result, f"exited with code {result['exit_status']}")
        return [f"Process {outcome}"]
    task = result["task_handle"]
    lines = [_TASK_OUTCOMES[result["disposition"]], f"Task: {one_line(task['task_id'])}"]
    if result["disposition"] == "already_running":
        lines += labelled(task, {"status": "Status"})
        if "command" in result:
            lines.append(f"Command: {one_line(result['command']['preview'])}")
        lines += labelled(result, {"summary": "Summary"})
    return lines


def printed_texts(result: Json) -> dict[str, tuple[str, bool]]:
    """The output of a command by heading: each text that is not empty, and whether it was cut."""
    return {
        heading: (result[f"{name}_preview"], result.get(f"{name}_truncated", False))
        for _, name, heading in _STREAMS
        if result.get(f"{name}_preview")
    }


def command_roles(result: Json, prefix: str = "") -> dict[int, str]:
    """The role of each artifact of a command, by index."""
    indices = {role: result.get(f"{name}_artifact") for role, name, _ in _STREAMS}
    return {index: prefix + role for role, index in indices.items() if index is not None}


FAMILY = Family(
    name="command",
    result_types=(CommandOutput, PromotedCommand, RunningCommand),
    projector=project_command,
    render=render_command,
    budget=Budget(preview_chars=32_000, receipt_chars=34_000),
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
