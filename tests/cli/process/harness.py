"""Starts the driver with real pipes or a real terminal, and reads its report."""

import base64
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

DRIVER = Path(__file__).with_name("driver.py")
PYTHON = sys.executable
HANG_S = 60.0


@dataclass(frozen=True)
class Report:
    """What the driver saw: the fields of `ChildExit` or `SpawnFailure`, and more."""

    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.fields[name]

    def stream(self, name: str) -> bytes:
        return base64.b64decode(self.fields["streams"][name])


@dataclass
class Driver:
    """A driver with its specification; `start` and `command` may be used once."""

    folder: Path

    @property
    def report_path(self) -> Path:
        return self.folder / "report.json"

    def command(self, *argv: str, **spec: Any) -> list[str]:
        spec_path = self.folder / "spec.json"
        spec_path.write_text(json.dumps({"argv": argv, "report": str(self.report_path), **spec}))
        return [PYTHON, str(DRIVER), str(spec_path)]

    def start(
        self, *argv: str, popen: dict[str, Any] | None = None, **spec: Any
    ) -> subprocess.Popen[bytes]:
        plan: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            # `communicate` does not see what a buffered read took too much.
            "bufsize": 0,
            **(popen or {}),
        }
        return subprocess.Popen[bytes](self.command(*argv, **spec), **plan)

    def run(self, *argv: str, popen: dict[str, Any] | None = None, **spec: Any) -> Report:
        """Start, read everything, and check that what was passed on is what was recorded."""
        with self.start(*argv, popen=popen, **spec) as process:
            out, err = process.communicate(timeout=HANG_S)
        report = self.report()
        if not popen and "kind" not in report.fields:
            assert (out, err) == (report.stream("stdout"), report.stream("stderr"))
        assert b"Traceback" not in (err or b"")
        return report

    def report(self) -> Report:
        report = Report(json.loads(self.report_path.read_text()))
        assert report.left_behind == []
        return report


def finish(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    with process:
        return process.communicate(timeout=HANG_S)


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def python(code: str) -> list[str]:
    """A child in Python; it must not load our coverage, so it starts without site."""
    return [PYTHON, "-I", "-S", "-c", code]


class Terminal:
    """A program in a session of its own on a new pseudo-terminal."""

    def __init__(self, *argv: str) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # pragma: no cover - becomes another program
            os.execve(argv[0], argv, {**os.environ, "TERM": "dumb", "PS1": "ready> "})
        self.seen = b""
        self._rest = b""

    @property
    def descriptor(self) -> int:
        """Our end of the terminal."""
        return self._fd

    def send(self, text: bytes) -> None:
        os.write(self._fd, text)

    def expect(self, text: bytes) -> bytes:
        """Read until `text` has come; what came up to there."""
        deadline = time.monotonic() + HANG_S
        while text not in self._rest:
            self._read(text, deadline)
        found, _, self._rest = self._rest.partition(text)
        return found

    def wait(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + HANG_S
        with suppress(EOFError):
            while True:
                self._read(b"the end", deadline)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self) -> int:
        """Close our end, as a terminal window does; the exit code."""
        os.close(self._fd)
        self._fd = -1
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        # A program that was waited for is not our child any more, its number may be anybody's.
        with suppress(ChildProcessError):
            if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)

    def _read(self, wanted: bytes, deadline: float) -> None:
        if not select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"waited in vain for {wanted!r}, saw {self.seen!r}")
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # Linux says EIO at the end
            data = b""
        if not data:
            raise EOFError(f"the program ended before {wanted!r}, saw {self.seen!r}")
        self.seen += data
        self._rest += data
