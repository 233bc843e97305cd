"""The command family: a process that ran, what it printed, and how it ended.

A command that exits with 1, is killed, or runs into its timeout is a success of the tool: the tool
did run it. That it could not be started at all is an error.
"""

import signal as signals
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records._model import Record
from tooltrail.records.digests import DigestField, digest_of
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, CompleteOutput
from tooltrail.records.families._shared import (
    SparseRecord,
    is_cut,
    preview_stream,
    readable,
    shares,
)
from tooltrail.records.omissions import Omission
from tooltrail.records.policy import Policy
from tooltrail.records.previews import Encoding
from tooltrail.records.projection import ArtifactList, Family, Projected, bounded_text
from tooltrail.records.streams import Count, StreamRecord

TOOL_NAMES = frozenset({"ExecCommand", "Bash", "exec_command", "shell", "local_shell", "exec"})

CWD_CHARS = 4096
"""Longest folder that is repeated in a result; the longest path that Linux takes."""


class CommandOutput(Record):
    """A finished command with both streams complete.

    Attributes:
        command: what was run, as a shell would spell it.
        cwd: the folder it ran in, as it was asked for.
        exit_status: 0 to 255, None when a signal ended it.
        signal: number of the signal that ended it.
        timed_out: whether it was ended because its time was over.
        timeout_ms: the time it had; given when `timed_out`.
        stdout: its standard output.
        stderr: its standard error.
        order: lines `FD BYTES MS`: how the chunks of both streams came, and when after the start.
    """

    disposition: Literal["completed"] = "completed"
    command: str | None = None
    cwd: str | None = None
    exit_status: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: Annotated[int, Field(ge=1, le=128)] | None = None
    timed_out: bool = False
    timeout_ms: Count | None = None
    stdout: StreamRecord
    stderr: StreamRecord
    order: StreamRecord | None = None

    @model_validator(mode="after")
    def _check_ending(self) -> Self:
        if (self.exit_status is None) == (self.signal is None):
            raise ValueError("a command ends with an exit status or by a signal, and not by both")
        if self.timed_out and self.timeout_ms is None:
            raise ValueError("a command that timed out had a timeout")
        return self


class CommandSummary(Record):
    """Which command it was, bounded."""

    preview: str
    char_count: Count
    cwd: str | None
    digest: DigestField


class CommandResult(SparseRecord):
    """The canonical result of a finished command.

    `truncated` says that anything was left out: of a stream, of the command or of its folder.
    """

    disposition: Literal["completed"]
    exit_status: int | None
    signal: int | None = None
    timed_out: bool
    timeout_ms: int | None = None
    command: CommandSummary | None = None
    stdout_preview: str | None
    stderr_preview: str | None
    stdout_encoding: Encoding | None = None
    stderr_encoding: Encoding | None = None
    stdout_truncated: bool
    stderr_truncated: bool
    truncated: bool
    artifacts: tuple[ArtifactReference, ...] | None = None
    stdout_artifact: int | None = None
    stderr_artifact: int | None = None


def command_completed(tool_name: str, result: CommandOutput) -> CompleteOutput:
    """The complete output of a command that ran."""
    return CompleteOutput(
        tool_name=tool_name, status="success", summary_text=_summary(result), result=result
    )


def project_command(result: CommandOutput, policy: Policy, artifacts: ArtifactList) -> Projected:
    """Bound both streams; a stream that needs less than half leaves the rest to the other."""
    budget = policy.command
    streams = [result.stdout, result.stderr]
    out_share, err_share = shares(streams, budget.preview_chars, policy)
    out, out_index, out_omissions = preview_stream(result.stdout, out_share, policy, artifacts)
    err, err_index, err_omissions = preview_stream(result.stderr, err_share, policy, artifacts)
    summary, summary_omissions = _command_summary(result, budget.command_chars)
    omissions = out_omissions + err_omissions + summary_omissions
    bounded = CommandResult(
        disposition="completed",
        exit_status=result.exit_status,
        signal=result.signal,
        timed_out=result.timed_out,
        timeout_ms=result.timeout_ms if result.timed_out else None,
        command=summary,
        stdout_preview=out.text or None,
        stderr_preview=err.text or None,
        stdout_encoding=None if out.encoding == "utf-8" else out.encoding,
        stderr_encoding=None if err.encoding == "utf-8" else err.encoding,
        stdout_truncated=is_cut(result.stdout, out),
        stderr_truncated=is_cut(result.stderr, err),
        truncated=bool(omissions),
        artifacts=artifacts.references,
        stdout_artifact=out_index,
        stderr_artifact=err_index,
    )
    return Projected(bounded, omissions)


class CommandRenderer:
    """A receipt as a shell would give it: outcome first, then each stream that spoke."""

    name = "command"
    version = 1

    def render(self, canonical: CanonicalResult, policy: Policy) -> str:
        """The receipt of a finished command."""
        result = CommandResult.model_validate(canonical.result)
        sections = [_outcome(result)]
        texts = (
            (result.stdout_preview or "", result.stdout_truncated),
            (result.stderr_preview or "", result.stderr_truncated),
        )
        budget = policy.command
        bodies = readable(texts, budget.receipt_chars - budget.frame_chars)
        spoken = zip(("stdout", "stderr"), bodies, strict=True)
        sections.extend(f"{name}:\n{body}" for name, body in spoken if body)
        if result.artifacts:
            sections.append(_artifact_lines(result, result.artifacts))
        return "\n".join(s if s.endswith("\n") else s + "\n" for s in sections)


def _artifact_lines(result: CommandResult, artifacts: tuple[ArtifactReference, ...]) -> str:
    roles = {result.stdout_artifact: "stdout", result.stderr_artifact: "stderr"}
    lines = (f"{a.path} ({roles.get(n, 'artifact')})" for n, a in enumerate(artifacts))
    return "Artifacts:\n" + "\n".join(lines)


def _outcome(result: CommandResult) -> str:
    if result.timed_out and result.timeout_ms is not None:
        return f"Process timed out after {_seconds(result.timeout_ms)}"
    if result.signal is not None:
        return f"Process killed by {_signal_name(result.signal)}"
    return f"Process exited with code {result.exit_status}"


def _summary(result: CommandOutput) -> str:
    if result.timed_out and result.timeout_ms is not None:
        return f"command timed out after {_seconds(result.timeout_ms)}"
    if result.signal is not None:
        return f"command killed by {_signal_name(result.signal)}"
    return f"command exited with status {result.exit_status}"


def _seconds(duration_ms: int) -> str:
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + " s"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signals.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _command_summary(
    result: CommandOutput, limit: int
) -> tuple[CommandSummary | None, tuple[Omission, ...]]:
    if result.command is None:
        return None, ()
    raw = _bytes_of(result.command)
    text = raw.decode("utf-8", "backslashreplace")
    preview, omissions = bounded_text("command", text, limit)
    cwd = None
    if result.cwd:
        folder = _bytes_of(result.cwd).decode("utf-8", "backslashreplace")
        cwd, cut = bounded_text("cwd", folder, CWD_CHARS)
        omissions += cut
    summary = CommandSummary(preview=preview, char_count=len(text), cwd=cwd, digest=digest_of(raw))
    return summary, omissions


def _bytes_of(text: str) -> bytes:
    """The bytes that the system saw, or as much as there can be of them."""
    try:
        # Python carries bytes that are no text as low surrogates, a JSON escape may give any.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


FAMILY = Family(
    name="command",
    result_type=CommandOutput,
    projector=project_command,
    renderer=CommandRenderer(),
    tool_names=TOOL_NAMES,
)
