"""Record real commands of this machine, show the record, and prove that it is complete.

    python examples/demo.py [--keep]

Every command runs twice: once by itself, with both streams hashed by hashlib alone, and once under
`tooltrail exec`. What came through exec, and what the store gives back, must have the same digests
as what the command wrote. The exit code is 1 when any differs.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

BIG_SIZE = 256 * 1024 * 1024
"""Bytes of real text that the largest command prints at the least."""

RECEIPT_LINES = 10
"""Lines of each receipt that the demo prints; `tooltrail transcript` prints them all."""

TOOLTRAIL = [sys.executable, "-m", "tooltrail.cli"]

BIG_TEXT = f"""
import pathlib, sys
files = sorted(pathlib.Path({sysconfig.get_path("stdlib")!r}).rglob("*.py"))
written = 0
for turn in range(1, 1_000_000):
    for file in files:
        text = f"==> {{turn}} {{file}}\\n".encode() + file.read_bytes()
        sys.stdout.buffer.write(text)
        written += len(text)
        if written >= {BIG_SIZE}:
            sys.exit()
"""

INTERLEAVED = 'for n in 1 2 3; do echo "step $n"; echo "warning $n" >&2; sleep 0.15; done'
SETTINGS = "import json, sysconfig; print(json.dumps(sysconfig.get_paths()))"

WIDE = 120
"""Characters of a line when the output is not a terminal."""

console = Console(highlight=False, markup=False, emoji=False)
width = console.width if console.is_terminal else WIDE


@dataclass(frozen=True)
class Case:
    """One command of the demo."""

    label: str
    argv: Sequence[str]
    exit_code: int
    state: str = "success"
    error_kind: str | None = None
    options: Sequence[str] = ()
    timeout: float | None = None

    @property
    def can_start(self) -> bool:
        """Whether the command is meant to start at all."""
        return self.error_kind is None


CASES = (
    Case("succeeds", ["ls", "-l", "/bin/"], 0),
    Case("exits with 1", ["diff", "/etc/passwd", "/etc/group"], 1),
    Case("writes to stderr only", ["sh", "-c", "ls /no/such/file; exit 2"], 2),
    Case("interleaves both streams", ["sh", "-c", INTERLEAVED], 0),
    Case("prints JSON", [sys.executable, "-c", SETTINGS], 0),
    Case("prints bytes, not text", ["head", "-c", "20000", "/bin/sh"], 0),
    # Sources of programs hold examples of credentials, which `exec` would replace.
    Case("prints at least 256 MB", [sys.executable, "-c", BIG_TEXT], 0, options=["--no-redact"]),
    Case("is killed by a signal", ["sh", "-c", "echo before; kill -SEGV $$"], 128 + 11),
    Case(
        "runs into its timeout",
        ["sh", "-c", "echo started; sleep 60"],
        124,
        options=["--timeout", "1"],
        timeout=1,
    ),
    Case(
        "does not exist", ["no-such-command-on-this-machine"], 127, "error", "command_spawn_failed"
    ),
    Case(
        "its folder does not exist",
        ["ls"],
        126,
        "error",
        "workdir_not_found",
        options=["--cwd", "/no/such/folder"],
    ),
)


@dataclass
class StreamHash:
    """What is known of a stream that was read to its end."""

    size: int = 0
    hasher: Any = field(default_factory=hashlib.sha256)

    def drain(self, source: IO[bytes]) -> None:
        """Read a stream to its end."""
        while block := source.read(1 << 20):
            self.size += len(block)
            self.hasher.update(block)

    @property
    def digest(self) -> str:
        """The digest as Tooltrail spells it."""
        return f"sha256:{self.hasher.hexdigest()}"


Hashes = dict[str, StreamHash]


def run_hashed(
    argv: Sequence[str], env: dict[str, str], timeout: float | None = None
) -> tuple[Hashes, int]:
    """Run a command to its end, or to its timeout; hash both of its streams.

    Returns:
        The streams, and the exit code that a shell would give.
    """
    hashes = {"stdout": StreamHash(), "stderr": StreamHash()}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, process_group=0
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        threads = [
            threading.Thread(target=hashes["stdout"].drain, args=[process.stdout]),
            threading.Thread(target=hashes["stderr"].drain, args=[process.stderr]),
        ]
        for thread in threads:
            thread.start()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)
        for thread in threads:
            thread.join()
    return hashes, process.returncode if process.returncode >= 0 else 128 - process.returncode


@dataclass(frozen=True)
class Run:
    """What one case gave: written by itself, passed through exec, and exec's exit code."""

    case: Case
    written: Hashes
    passed: Hashes
    exit_code: int


class Demo:
    """One run of the demo in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "TOOLTRAIL_DB": str(folder / "tooltrail.db"),
            "COLUMNS": str(width),
        }
        for name in ("TOOLTRAIL_ARTIFACTS", "TOOLTRAIL_SPOOL", "TOOLTRAIL_SESSION"):
            self.env.pop(name, None)
        self.failures: list[str] = []

    def tooltrail(self, *args: str) -> str:
        """Run a tooltrail command and give its stdout."""
        done = subprocess.run([*TOOLTRAIL, *args], env=self.env, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode("utf-8", "replace")

    def show(self, title: str, *args: str) -> None:
        """Print a heading, a tooltrail command, and what that command prints."""
        _head(title)
        print("$ tooltrail", *args, flush=True)
        subprocess.run([*TOOLTRAIL, *args], env=self.env, check=True)

    def record_all(self) -> list[Run]:
        """Run every case by itself and under exec."""
        self.env["TOOLTRAIL_SESSION"] = self.tooltrail("session", "open", "--title", "demo").strip()
        columns = (
            TextColumn("{task.completed:>2}/{task.total}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=len(CASES))
            return [self._record(case, progress, task) for case in CASES]

    def _record(self, case: Case, progress: Progress, task: TaskID) -> Run:
        progress.update(task, description=f"a command that {case.label}")
        written: Hashes = {}
        if case.can_start:
            written, code = run_hashed(case.argv, self.env, case.timeout)
            if code != case.exit_code and case.timeout is None:
                self.failures.append(f"{case.label}: by itself exited with {code}")
        command = [*TOOLTRAIL, "exec", *case.options, "--", *case.argv]
        passed, code = run_hashed(command, self.env)
        progress.advance(task)
        return Run(case, written, passed, code)

    def show_log(self) -> list[dict[str, Any]]:
        """Print the log table and give its rows, the oldest first."""
        self.show("What ran", "log", "--reverse")
        rows: list[dict[str, Any]] = json.loads(self.tooltrail("log", "--reverse", "--json"))
        return rows

    def show_surfaces(self, invocation: str) -> None:
        """Print one invocation with its surfaces."""
        self.show("One invocation, three surfaces", "show", invocation[-8:])

    def show_transcript(self) -> None:
        """Print the transcript with every receipt cut to a few lines, and say so."""
        _head("What the model saw")
        print(f"$ tooltrail transcript    (each entry cut to {RECEIPT_LINES} lines)")
        shown = 0
        hidden = 0
        for line in self.tooltrail("transcript").splitlines():
            if line.startswith("#") and line[1:2].isdigit():
                _print_hidden(hidden)
                shown = hidden = 0
            shown += 1
            if shown <= RECEIPT_LINES:
                print(line[: width - 1])
            else:
                hidden += 1
        _print_hidden(hidden)

    def show_tail(self, rows: list[dict[str, Any]]) -> None:
        """Print the last lines of the largest output, read from its artifact."""
        largest = max(rows, key=lambda row: row["output_size"] or 0)
        artifacts = json.loads(
            self.tooltrail("artifact", "ls", "--json", "--invocation", largest["id"])
        )
        path = max(artifacts, key=lambda artifact: artifact["size"])["path"]
        self.show("The end of the large output", "artifact", "tail", "-n", "5", path)

    def show_status(self) -> None:
        """Print what was captured and how much room it takes."""
        self.show("What was captured, and the room it takes", "status")

    def prove(self, rows: list[dict[str, Any]], runs: list[Run]) -> None:
        """Compare what each command wrote and did with what came through exec and is stored."""
        _head("Proof: written = passed through = stored, by sha256")
        print(
            f"{'command':28} {'stream':6} {'bytes':>12}  {'sha256 of what was written':34} verdict"
        )
        for row, run in zip(rows, runs, strict=True):
            self._check_ending(row, run)
            for stream, expected in run.written.items():
                verdict = self._verdict(row["id"], stream, expected, run.passed[stream])
                digest = f"{expected.digest[:31]}…"
                label = run.case.label
                print(f"{label:28} {stream:6} {expected.size:>12,}  {digest:34} {verdict}")

    def _check_ending(self, row: dict[str, Any], run: Run) -> None:
        case = run.case
        recorded = (run.exit_code, row["state"], row["error_kind"])
        if recorded != (case.exit_code, case.state, case.error_kind):
            self.failures.append(f"{case.label}: exit code, state, error kind are {recorded}")

    def _verdict(
        self, invocation: str, stream: str, written: StreamHash, passed: StreamHash
    ) -> str:
        stored = StreamHash()
        with subprocess.Popen(
            [*TOOLTRAIL, "show", "--stream", stream, invocation],
            env=self.env,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            stored.drain(process.stdout)
        for name, other in (("passed through", passed), ("stored", stored)):
            if other.digest != written.digest or other.size != written.size:
                fault = f"{name}: {other.size:,} bytes, {other.digest}"
                self.failures.append(f"{invocation} {stream}: {fault}")
                return f"DIFFERS, {fault}"
        return "equal"


def _head(title: str) -> None:
    print(f"\n── {title} " + "─" * max(0, width - len(title) - 5))


def _print_hidden(count: int) -> None:
    if count:
        print(f"  … {count:,} further lines of this entry")


def main() -> int:
    """Run the demo; 0 when every stream is proved equal."""
    folder = Path(tempfile.mkdtemp(prefix="tooltrail-demo-"))
    demo = Demo(folder)
    try:
        demo.tooltrail("init")
        runs = demo.record_all()
        rows = demo.show_log()
        demo.show_surfaces(rows[3]["id"])
        demo.show_transcript()
        demo.show_tail(rows)
        demo.show_status()
        demo.prove(rows, runs)
    finally:
        if "--keep" in sys.argv:
            print(f"kept: export TOOLTRAIL_DB={folder / 'tooltrail.db'}")
        else:
            shutil.rmtree(folder)
    proved = [stream for run in runs for stream in run.written.values()]
    largest = max(stream.size for stream in proved)
    if largest < BIG_SIZE:
        demo.failures.append(f"the largest output has {largest:,} bytes, not {BIG_SIZE:,}")
    if demo.failures:
        print("\n".join(["NOT PROVED:", *demo.failures]))
        return 1
    print(
        f"\n{len(proved)} streams proved equal, byte for byte; "
        f"{len(runs)} commands ended as expected."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
