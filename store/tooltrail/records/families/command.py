"""The command family: a process that ran, what it printed, and how it ended.

A command that exits with 1, is killed, or runs into its timeout is a success of the tool: the tool
did run it. That it could not be started at all is an error. A command that does not end in time may
become a background task, or be found to run as one already.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import DigestField, Record, Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.command_documents import worded_end
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.envelope import CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    BoundedResult,
    ExitStatus,
    Milliseconds,
    SignalNumber,
    SparseRecord,
    bounded,
    one_line,
    receipt,
)
from tooltrail.records.families._tasks import TaskHandle
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import Count, StreamRecord

CWD_CHARS = 4096
"""Longest folder that is repeated in a result; the longest path that Linux takes."""


class CommandBudget(Budget):
    """Bounds of the command family.

    Attributes:
        preview_chars: both streams together; a stream that needs less than half leaves the rest.
        command_chars: how much of the command line is repeated in the result.
    """

    preview_chars: PreviewChars = 32_000
    receipt_chars: ReceiptChars = 34_000
    command_chars: Annotated[int, Field(ge=16, le=240)] = 240


class CommandOutput(FamilyOutput):
    """A finished command with its complete output: two streams, or both in one.

    Attributes:
        command: what was run, as a shell would spell it.
        cwd: the folder it ran in, as it was asked for.
        exit_status: 0 to 255; None when a signal ended it, or when nobody knows.
        signal: number of the signal that ended it.
        timed_out: whether it was ended because its time was over.
        timeout_ms: the time it had; given when `timed_out`.
        stdout: its standard output.
        stderr: its standard error.
        combined: what it printed to a terminal, which knows no two streams; instead of both.
        order: lines `FD BYTES MS`: how the chunks of both streams came, and when after the start.
    """

    disposition: Literal["completed"] = "completed"
    command: str | None = None
    cwd: str | None = None
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
        return f"command {worded_end(self, f'exited with status {self.exit_status}')}"

    def facts(self) -> Facts:
        """How the command ended, for lists."""
        return Facts(self.exit_status, self.signal, self.timed_out)


class PromotedCommand(FamilyOutput):
    """A command that took long and goes on in the background.

    Attributes:
        command: what was run, as a shell would spell it.
        cwd: the folder it runs in, as it was asked for.
        task_handle: the task that it became.
        initial_output: what it printed until then, role `initial_output`.
    """

    disposition: Literal["promoted_to_task"] = "promoted_to_task"
    command: str | None = None
    cwd: str | None = None
    task_handle: TaskHandle
    initial_output: StreamRecord | None = None

    def summary(self) -> str:
        """What became of the command."""
        return "command promoted to managed task"


class RunningCommand(FamilyOutput):
    """A command that was not started, because a task runs it already.

    Attributes:
        command: what was asked for, as a shell would spell it.
        cwd: the folder it was to run in.
        task_handle: the task that runs it.
        task_summary: one sentence about the task.
    """

    disposition: Literal["already_running"] = "already_running"
    command: str | None = None
    cwd: str | None = None
    task_handle: TaskHandle
    task_summary: Sentence | None = None

    def summary(self) -> str:
        """Why nothing was started."""
        return "command is already running as a background task"


class CommandSummary(Record):
    """Which command it was, bounded."""

    preview: str
    char_count: Count
    cwd: str | None
    digest: DigestField


class _CompletedResult(BoundedResult):
    disposition: Literal["completed"]
    exit_status: int | None
    signal: int | None = None
    timed_out: bool = False
    timeout_ms: int | None = None
    command: CommandSummary | None = None


class CommandResult(_CompletedResult):
    """The canonical result of a finished command with two streams.

    `truncated` says that anything was left out: of a stream, of the command or of its folder.
    """

    stdout_preview: str | None
    stderr_preview: str | None
    stdout_encoding: Encoding | None = None
    stderr_encoding: Encoding | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_artifact: int | None = None
    stderr_artifact: int | None = None


class CombinedCommandResult(_CompletedResult):
    """The canonical result of a finished command with one combined stream."""

    combined_output_preview: str | None
    combined_output_encoding: Encoding | None = None
    combined_output_truncated: bool
    combined_output_artifact: int | None = None


class PromotedResult(BoundedResult):
    """The canonical result of a command that became a task."""

    disposition: Literal["promoted_to_task"]
    task_handle: TaskHandle
    command: CommandSummary | None = None
    initial_output_preview: str | None = None
    initial_output_encoding: Encoding | None = None
    initial_output_truncated: bool = False
    initial_output_artifact: int | None = None


class RunningResult(BoundedResult):
    """The canonical result of a command that was running already."""

    disposition: Literal["already_running"]
    task_handle: TaskHandle
    command: CommandSummary | None = None
    summary: str | None = None


CompletedResult = CommandResult | CombinedCommandResult


def project_command(
    result: CommandOutput | PromotedCommand | RunningCommand, budget: CommandBudget, cutter: Cutter
) -> SparseRecord:
    """Bound the streams and the command line."""
    if isinstance(result, PromotedCommand):
        return _project_promoted(result, budget, cutter)
    if isinstance(result, RunningCommand):
        return _project_running(result, budget, cutter)
    return project_completed(result, budget.preview_chars, budget.command_chars, cutter)


def project_completed(
    result: CommandOutput, room: int, command_chars: int, cutter: Cutter, *, prefix: str = ""
) -> CompletedResult:
    """Bound the streams of a finished command to `room` characters together.

    Args:
        result: the command.
        room: characters of all previews.
        command_chars: characters of the command line.
        cutter: whose list of artifacts stands beside the previews.
        prefix: where the result stands in that of the tool, for the names of omissions.
    """
    shown = _shown_streams(result, room, cutter)
    if result.order is not None:
        cutter.count_losses(result.order)  # none of it is to be shown, but what is lost is lost
    line = _summarize_command(result.command, result.cwd, command_chars, cutter, prefix=prefix)
    limit = result.timeout_ms if result.timed_out else None
    fields = {"command": line, "timeout_ms": limit, **shown}
    if result.combined is None:
        return bounded(CommandResult, result, cutter, **fields)
    return bounded(CombinedCommandResult, result, cutter, **fields)


def _project_promoted(
    result: PromotedCommand, budget: CommandBudget, cutter: Cutter
) -> PromotedResult:
    """Bound the initial output and the command line."""
    (shown,) = cutter.streams([result.initial_output], budget.preview_chars)
    command = _summarize_command(result.command, result.cwd, budget.command_chars, cutter)
    initial = shown.named("initial_output")
    return bounded(PromotedResult, result, cutter, command=command, **initial)


def _project_running(
    result: RunningCommand, budget: CommandBudget, cutter: Cutter
) -> RunningResult:
    """Bound the command line and what is said of the task."""
    command = _summarize_command(result.command, result.cwd, budget.command_chars, cutter)
    summary = result.task_summary
    if summary is not None:
        summary = cutter.text("summary", summary, SENTENCE_CHARS)
    return bounded(RunningResult, result, cutter, command=command, summary=summary)


def _summarize_command(
    command: str | None, cwd: str | None, limit: int, cutter: Cutter, *, prefix: str = ""
) -> CommandSummary | None:
    """Bound a command line to `limit` characters and its folder to `CWD_CHARS`.

    Args:
        command: what was run; None when it is not known.
        cwd: the folder it ran in.
        limit: characters of the preview.
        cutter: counts what is left out.
        prefix: where the summary stands in the result, for the names of omissions.
    """
    if command is None:
        return None
    raw = _bytes_of(command)
    text = encodable(command)
    preview = cutter.text(f"{prefix}command", text, limit)
    folder = cutter.text(f"{prefix}cwd", encodable(cwd), CWD_CHARS) if cwd else None
    return CommandSummary(preview=preview, char_count=len(text), cwd=folder, digest=digest_of(raw))


def encodable(text: str) -> str:
    r"""A command line or a folder, what is no text in it spelled out: `caf\xe9`."""
    return _bytes_of(text).decode("utf-8", "backslashreplace")


def _bytes_of(text: str) -> bytes:
    """The bytes that the system saw, or as much as there can be of them."""
    try:
        # Python carries bytes that are no text as low surrogates, a JSON escape may give any.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _shown_streams(result: CommandOutput, room: int, cutter: Cutter) -> dict[str, object]:
    if result.combined is None:
        out, err = cutter.streams([result.stdout, result.stderr], room)
        return out.named("stdout") | err.named("stderr")
    (combined,) = cutter.streams([result.combined], room)
    return combined.named("combined_output")


def render_command(canonical: CanonicalResult, budget: CommandBudget) -> str:
    """A receipt as a shell would give it: outcome first, then each stream that spoke."""
    match canonical.result:
        case {"disposition": "promoted_to_task"}:
            return _render_promoted(PromotedResult.model_validate(canonical.result), budget)
        case {"disposition": "already_running"}:
            return _render_running(RunningResult.model_validate(canonical.result))
        case {"combined_output_truncated": bool()}:
            combined = CombinedCommandResult.model_validate(canonical.result)
            return _render_completed(combined, budget)
        case _:
            return _render_completed(CommandResult.model_validate(canonical.result), budget)


def _render_completed(result: CompletedResult, budget: CommandBudget) -> str:
    sections = [f"Process {worded_end(result, f'exited with code {result.exit_status}')}"]
    texts = printed_texts(result)
    bodies = readable(texts.values(), budget.spare_chars)
    sections.extend(f"{name}:\n{body}" for name, body in zip(texts, bodies, strict=True))
    return receipt(sections, result.artifacts, artifact_roles(result))


def _render_promoted(result: PromotedResult, budget: CommandBudget) -> str:
    """The task to ask for, then what the command printed so far."""
    sections = [
        f"Command promoted to background task\nTask: {one_line(result.task_handle.task_id)}"
    ]
    if result.initial_output_preview:
        text = (result.initial_output_preview, result.initial_output_truncated)
        (body,) = readable([text], budget.spare_chars)
        sections.append(f"Initial output:\n{body}")
    roles = {result.initial_output_artifact: "initial_output"}
    return receipt(sections, result.artifacts, roles)


def _render_running(result: RunningResult) -> str:
    """The task that runs the command, and what is known of it."""
    handle = result.task_handle
    lines = [
        "Command is already running as a background task",
        f"Task: {one_line(handle.task_id)}",
    ]
    if handle.status is not None:
        lines.append(f"Status: {handle.status}")
    if result.command is not None:
        lines.append(f"Command: {one_line(result.command.preview)}")
    if result.summary:
        lines.append(f"Summary: {one_line(result.summary)}")
    return "\n".join(lines) + "\n"


def printed_texts(result: CompletedResult) -> dict[str, tuple[str, bool]]:
    """What a command printed, by heading: each text that is not empty, and whether it was cut."""
    if isinstance(result, CombinedCommandResult):
        texts = {"output": (result.combined_output_preview, result.combined_output_truncated)}
    else:
        texts = {
            "stdout": (result.stdout_preview, result.stdout_truncated),
            "stderr": (result.stderr_preview, result.stderr_truncated),
        }
    return {name: (text, truncated) for name, (text, truncated) in texts.items() if text}


def artifact_roles(result: CompletedResult) -> dict[int | None, str]:
    """What each artifact of a command is, by index."""
    if isinstance(result, CombinedCommandResult):
        return {result.combined_output_artifact: "combined"}
    return {result.stdout_artifact: "stdout", result.stderr_artifact: "stderr"}


FAMILY = Family(
    name="command",
    result_types=(CommandOutput, PromotedCommand, RunningCommand),
    projector=project_command,
    renderer=Renderer("command", 2, render_command),
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
)
