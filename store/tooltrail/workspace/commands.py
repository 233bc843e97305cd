"""`shell:run`: run a command line with the shell, in the folder."""

import os
import re
from collections.abc import Mapping
from typing import Any

from tooltrail.agents.definitions import define
from tooltrail.agents.processes import run_process
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.records import CommandOutput
from tooltrail.workspace._folder import WorkspaceFolder

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 3_600_000

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


async def run_command(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> CommandOutput:
    """Run a command line with the rights of this program."""
    command = arguments["command"]
    if "\0" in command:
        raise WrongCallError("a command cannot contain a NUL")
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
    """An environment without the variables whose names look like secrets."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}
