"""Calls `run_child` as a process of its own, so that descriptors, signals and terminals are real.

Usage: driver.py SPEC_FILE. The specification and the report it names are JSON; see `harness.py`.
"""

import base64
import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tooltrail.cli._process import ChildExit, SpawnFailure, loop, run_child, spawn
from tooltrail.cli._process.child import Child

_WATCHED = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGCONT", "SIGCHLD"),
    *("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH"),
)


class Recording:
    """The callbacks, and what they saw."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.chunks: list[tuple[str, bytes]] = []
        self.pids: list[int] = []
        self.idle_count = 0

    def chunk(self, name: str, data: bytes) -> None:
        self.chunks.append((name, data))

    def child(self, process: subprocess.Popen[bytes]) -> Child:
        """Make the child as the runner does, and note its process id."""
        self.pids.append(process.pid)
        if path := self.spec.get("pid_file"):
            Path(path).write_text(str(process.pid))
        return Child(process)

    def idle(self) -> None:
        self.idle_count += 1
        if path := self.spec.get("poke_when_idle"):
            Path(path).write_text("go\n")

    def streams(self) -> dict[str, str]:
        joined = {
            name: b"".join(data for stream, data in self.chunks if stream == name)
            for name in ("stdout", "stderr")
        }
        return {name: base64.b64encode(data).decode() for name, data in joined.items()}


def _open_fds() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def _foreground() -> bool | None:
    with contextlib.suppress(OSError):
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(fd) == os.getpgrp()
        finally:
            os.close(fd)
    return None


def _state() -> list[str]:
    """What a run must leave as it was."""
    handlers = [repr(signal.getsignal(getattr(signal, name))) for name in _WATCHED]
    mask = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, set()))
    return [*handlers, str(mask), f"{_open_fds()} fds", f"{threading.active_count()} threads"]


def _outcome(found: ChildExit) -> dict[str, Any]:
    return {
        "exit_status": found.exit_status,
        "signal": found.signal,
        "timed_out": found.timed_out,
        "duration_ms": found.duration_ms,
        "mirrored": found.mirrored,
        "tee_closed": list(found.tee_closed),
    }


def _run(spec: dict[str, Any], recording: Recording) -> dict[str, Any]:
    try:
        found = run_child(
            spec["argv"],
            on_chunk=recording.chunk,
            cwd=spec.get("cwd"),
            timeout_s=spec.get("timeout_s"),
            grace_s=spec.get("grace_s", 5.0),
            on_idle=recording.idle,
            has_terminal=spec.get("has_terminal", False),
        )
    except SpawnFailure as failure:
        return {
            "kind": failure.kind,
            "exit_code": failure.exit_code,
            "message": str(failure),
            "same": failure.message == str(failure),
        }
    return _outcome(found)


def _prepare(spec: dict[str, Any]) -> None:
    for name in spec.get("without", []):
        delattr(os, name)
    for name in spec.get("ignore", []):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if "stall_s" in spec:
        loop.__dict__["STALL_S"] = spec["stall_s"]


def main() -> None:
    faulthandler.dump_traceback_later(120, exit=True)
    spec = json.loads(Path(sys.argv[1]).read_text())
    _prepare(spec)
    recording = Recording(spec)
    before = _state()
    spawn.__dict__["Child"] = recording.child
    report = _run(spec, recording)
    report["left_behind"] = sorted(set(_state()) ^ set(before))
    report["chunks"] = [[name, len(data)] for name, data in recording.chunks]
    report["streams"] = recording.streams()
    report["pids"] = recording.pids
    report["idle_count"] = recording.idle_count
    report["group"] = os.getpgrp()
    report["foreground"] = _foreground()
    Path(spec["report"]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
