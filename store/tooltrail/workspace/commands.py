"""`shell:run`: a command line, run by the shell in the folder."""

import os
import re
from collections.abc import Mapping
from typing import Any

from tooltrail.agents.definitions import define
from tooltrail.agents.processes import run_process
from tooltrail.records import CommandOutput
from tooltrail.workspace._folder import WorkspaceFolder

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 3_600_000

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH(?!OR)", re.IGNORECASE)
"""Names of variables whose values a command is not given: what it prints is kept for good."""

RUN = define(
    "shell:run",
    "Run a command line with /bin/sh in the workspace. It reads nothing; what it leaves running "
    "in the background is ended with it.",
    ["command"],
    command={"type": "string", "minLength": 1, "description": "The command line."},
    timeout_ms={
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_TIMEOUT_MS,
        "description": f"Milliseconds that it may take; {DEFAULT_TIMEOUT_MS} if absent.",
    },
)


async def run_command(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> CommandOutput:
    """Whatever the shell takes, with the rights of this program."""
    command = arguments["command"]
    timeout_ms = arguments.get("timeout_ms", DEFAULT_TIMEOUT_MS)
    ended = await run_process(
        ["/bin/sh", "-c", command],
        cwd=workspace.root,
        environment=without_secrets(os.environ),
        timeout_ms=timeout_ms,
    )
    return CommandOutput(
        command=command,
        cwd=str(workspace.root),
        exit_status=ended.status if ended.status >= 0 else None,
        signal=-ended.status if ended.status < 0 else None,
        timed_out=ended.timed_out,
        timeout_ms=timeout_ms if ended.timed_out else None,
        stdout=ended.stdout.record("stdout"),
        stderr=ended.stderr.record("stderr"),
    )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables whose names say that they are secrets."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}
