"""The command line, run as a program like users do, or in this process for speed."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tooltrail.cli._app import app
from tooltrail.cli._failures import run
from tooltrail.store import Store, open_store

PROGRAM = (sys.executable, "-m", "tooltrail.cli")
HANG_S = 120.0
"""Seconds after which a program counts as hanging."""

_FOREIGN = ("TOOLTRAIL_", "XDG_DATA_HOME", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_")
"""Prefixes of environment variables that would change the output."""


def python(code: str) -> tuple[str, ...]:
    """A Python child; without `site` it starts faster and does not measure coverage."""
    return (sys.executable, "-I", "-S", "-c", code)


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def message(self) -> str:
        return self.stderr.decode("utf-8", "backslashreplace")

    @property
    def sentence(self) -> str:
        """The message of a failure, which must be a single line."""
        (line,) = self.message.splitlines()
        assert line.startswith("tooltrail: ")
        assert "Traceback" not in line
        return line.removeprefix("tooltrail: ")

    @property
    def usage_error(self) -> str:
        """The message of click about wrong usage."""
        *_, line = self.message.splitlines()
        assert "Traceback" not in self.message
        return line.removeprefix("Error: ")

    @property
    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.text)
        assert isinstance(found, list)
        return found


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}


@dataclass
class Cli:
    """Runs the program with one store, which `$TOOLTRAIL_DB` names."""

    database: str
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def folder(self) -> Path:
        """The folder of a SQLite store."""
        return Path(self.database).parent

    @property
    def spool(self) -> Path:
        """The spool of a SQLite store."""
        return Path(f"{self.database}-spool")

    @property
    def full_environment(self) -> dict[str, str]:
        return {**clean_environment(), "TOOLTRAIL_DB": self.database, **self.environment}

    def open(self) -> Store:
        return open_store(self.database)

    def run(self, *arguments: str) -> Ended:
        """Run a command in this process. Not for `exec`, which writes to the descriptors."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        err = io.TextIOWrapper(
            io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True
        )
        with (
            patch.dict(os.environ, self.full_environment, clear=True),
            patch.object(sys, "argv", ["tooltrail", *arguments]),
            patch.object(sys, "stdout", out),
            patch.object(sys, "stderr", err),
        ):
            code = run(app)
        return Ended(code, _tape(out), _tape(err))

    def ok(self, *arguments: str) -> Ended:
        """Run a command in this process that must succeed."""
        ended = self.run(*arguments)
        assert ended.code == 0, ended.message
        return ended

    def start(self, *arguments: str | bytes, **more: Any) -> subprocess.Popen[bytes]:
        """Start the program with pipes, in its own process group."""
        plan: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            "env": self.full_environment,
            # Do not read ahead: `communicate` would miss those bytes.
            "bufsize": 0,
            **more,
        }
        program = plan.pop("program", PROGRAM)
        return subprocess.Popen[bytes]([*program, *arguments], **plan)

    def program(self, *arguments: str | bytes, stdin: bytes | None = None, **more: Any) -> Ended:
        """Run the program to its end."""
        if stdin is not None:
            more["stdin"] = subprocess.PIPE
        with self.start(*arguments, **more) as process:
            try:
                out, err = process.communicate(stdin, timeout=HANG_S)
            except BaseException:
                kill_group(process)
                raise
        return Ended(process.returncode, out or b"", err or b"")

    def exec(self, *arguments: str | bytes, **more: Any) -> Ended:
        """Run a command under `tooltrail exec`; put options before a `--` in the arguments."""
        return self.program("exec", *arguments, **more)


def on_a_terminal(
    cli: Cli,
    *arguments: str,
    columns: int,
    code: int = 0,
    program: Sequence[str] = PROGRAM,
    **variables: str,
) -> str:
    """The output of the program on a terminal; it must end with this exit code."""
    ours, theirs = pty.openpty()
    own = {"TERM": "xterm", "PAGER": "cat", "COLUMNS": str(columns)}
    environment = {**cli.full_environment, **own, **variables}
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [*program, *arguments], stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        seen = b""
        try:
            while data := screen.read(65_536):
                seen += data
        except OSError:  # Linux reports EIO at the end
            pass
        assert process.wait(60) == code
    return seen.decode(errors="surrogateescape").replace("\r\n", "\n")


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that `Cli.start` started, and no other process."""
    os.killpg(process.pid, signal.SIGKILL)


def without_coverage(environment: Mapping[str, str]) -> dict[str, str]:
    """For processes that cannot write coverage data: of another user, or on a full disk."""
    return {k: v for k, v in environment.items() if not k.startswith("COV")}


def _tape(stream: io.TextIOWrapper) -> bytes:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()
