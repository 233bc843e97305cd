"""`shell:run`: run a command line with the shell, in the folder."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tooltrail.agents.definitions import define
from tooltrail.agents.processes import run_process
from tooltrail.agents.tools import running_call
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.artifacts import Capture
from tooltrail.journal.invocation import Invocation
from tooltrail.records import CommandOutput, StreamRecord
from tooltrail.workspace._folder import WorkspaceFolder

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 3_600_000

MAX_KEPT = 16 << 20
"""Bytes of each stream that are kept without a `running_call`. Further bytes are counted."""

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH(?!OR)", re.IGNORECASE)
"""Names of variables that a command does not get, because its output is kept for ever."""

RUN = define(
    "shell:run",
    "Run a command line with /bin/sh in the workspace. Its standard input is empty. Programs that "
    "the command starts in the background end with the command.",
    ["command"],
    command={"type": "string", "minLength": 1, "description": "The command line."},
    timeout_ms={
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_TIMEOUT_MS,
        "description": f"Time limit in milliseconds; {DEFAULT_TIMEOUT_MS} if absent.",
    },
)


@dataclass(slots=True)
class _Printed:
    """Keeps the first bytes of a stream of a call without `running_call`."""

    role: str
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    newlines: int = 0
    is_open: bool = False

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self.kept += data[: max(MAX_KEPT - len(self.kept), 0)]
        self.size += len(data)
        self.newlines += data.count(b"\n")
        self.is_open = not data.endswith(b"\n")

    def record(self) -> StreamRecord:
        """The stream as a record, with its counts and the kept bytes."""
        is_whole = self.size == len(self.kept)
        produced = {
            "produced_size": self.size,
            "produced_line_count": self.newlines + self.is_open,
            "loss_reason": None if is_whole else f"more than {MAX_KEPT >> 20} MiB",
        }
        return StreamRecord.from_bytes(self.role, bytes(self.kept)).model_copy(update=produced)


async def run_command(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> CommandOutput:
    """Run a command line with the rights of this program.

    With a `running_call`, the output goes into the spool: a call that is stopped keeps the output.
    """
    command = arguments["command"]
    if "\0" in command:
        raise WrongCallError("a command cannot contain a NUL")
    timeout_ms = arguments.get("timeout_ms", DEFAULT_TIMEOUT_MS)
    call = running_call.get()
    stdout, stderr = (
        _Printed(role) if call is None else call.capture(role) for role in ("stdout", "stderr")
    )
    ended = await run_process(
        ["/bin/sh", "-c", command],
        cwd=workspace.root,
        environment=without_secrets(os.environ),
        timeout_ms=timeout_ms,
        stdout=stdout,
        stderr=stderr,
    )
    return CommandOutput(
        command=command,
        cwd=str(workspace.root),
        exit_status=ended.status if ended.status >= 0 else None,
        signal=-ended.status if ended.status < 0 else None,
        timed_out=ended.timed_out,
        timeout_ms=timeout_ms if ended.timed_out else None,
        stdout=_record(stdout, call),
        stderr=_record(stderr, call),
    )


def _record(stream: Capture | _Printed, call: Invocation | None) -> StreamRecord:
    if isinstance(stream, _Printed):
        return stream.record()
    assert call is not None
    return call.captured(stream.close())


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables whose names look like secrets."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}
