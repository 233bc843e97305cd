"""A process that captures, one step for each line of input; it can leave a child behind.

`python -m tests.support.spool_writer DB ARTIFACTS SPOOL` reads commands from its standard input
and answers each with a line, so that a test knows when the step is done:

start                 begin an invocation; answers its id
write ROLE TEXT       capture TEXT and a newline
fill ROLE BYTES       capture BYTES bytes, as lines of digits
flush ROLE            end the frame
close ROLE            end the capture
finish                finish the invocation as a command with its closed captures
fork                  start a child that waits for a signal; answers its process id
clock DAYS            continue with a clock that is DAYS days ahead, or behind
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.processes import ROOT

from tooltrail.artifacts import Capture
from tooltrail.records import CommandOutput, CompleteOutput, IdFactory, StreamRecord, ToolCall
from tooltrail.store import Invocation, open_store


def digits(size: int) -> bytes:
    """Lines of numbers, all of them different."""
    lines = b"".join(b"%d\n" % n for n in range(size // 2 + 1))
    return lines[:size]


class SpoolWriter:
    """The process, as the test sees it; killed at the end of a `with` block."""

    def __init__(
        self, database: str, artifacts: Path | str, spool: Path, *, within: Sequence[str] = ()
    ) -> None:
        """Start the process.

        Args:
            database: database of the store.
            artifacts: root of its artifacts.
            spool: folder for captures.
            within: a command that runs the process, such as `unshare`.
        """
        places = (database, str(artifacts), str(spool))
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "tests.support.spool_writer", *places],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={k: v for k, v in os.environ.items() if not k.startswith("COV")},
        )

    def do(self, *words: object) -> str:
        """Send a command, wait until it is done, and return the answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode()
        assert answer, "the writer has gone"
        return answer.strip()

    def kill(self) -> None:
        """Kill the process as with `kill -9`."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Let the process end by itself."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdout.close()
        with suppress(OSError):  # the process did not read the rest
            self.process.stdin.close()


class _Tool:
    def __init__(self, database: str, artifacts: str, spool: str) -> None:
        self._store = open_store(database, artifacts=artifacts, spool=Path(spool))
        self._session = self._store.open_session()
        self._invocation: Invocation | None = None
        self._captures: dict[str, Capture] = {}
        self._streams: dict[str, StreamRecord] = {}

    def start(self) -> str:
        self._invocation = self._session.start(ToolCall(tool_name="Bash"))
        self._captures, self._streams = {}, {}
        return str(self._invocation.id)

    def write(self, role: str, text: str) -> None:
        self._capture(role).write(f"{text}\n".encode())

    def fill(self, role: str, size: str) -> None:
        self._capture(role).write(digits(int(size)))

    def flush(self, role: str) -> None:
        self._capture(role).flush()

    def close(self, role: str) -> None:
        assert self._invocation
        self._streams[role] = self._invocation.captured(self._capture(role).close())

    def finish(self) -> None:
        assert self._invocation
        result = CommandOutput(
            command="make",
            exit_status=0,
            stdout=self._streams.get("stdout", StreamRecord.from_bytes("stdout", b"")),
            stderr=self._streams.get("stderr", StreamRecord.from_bytes("stderr", b"")),
        )
        self._invocation.finish(CompleteOutput.success("Bash", result))

    def fork(self) -> str:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b".")
            signal.pause()  # until the test kills it
        os.read(read, 1)
        return str(child)

    def clock(self, days: str) -> None:
        def shifted() -> datetime:
            return datetime.now(UTC) + timedelta(days=int(days))

        def shifted_ms() -> int:
            return round(shifted().timestamp() * 1000)

        for module in list(sys.modules.values()):
            if module.__name__.startswith("tooltrail.store.") and hasattr(module, "now"):
                vars(module)["now"] = shifted
        vars(sys.modules["tooltrail.journal.clock"])["_Ids"].factory = IdFactory(
            unix_ms=shifted_ms, entropy=os.urandom
        )

    def _capture(self, role: str) -> Capture:
        assert self._invocation
        if role not in self._captures:
            self._captures[role] = self._invocation.capture(role)
        return self._captures[role]


def _main(places: Sequence[str]) -> None:
    tool = _Tool(*places)
    for line in sys.stdin:
        name, *arguments = line.strip().split(maxsplit=2)
        answer = getattr(tool, name)(*arguments)
        print(answer or "done", flush=True)  # noqa: T201  the test waits for it


if __name__ == "__main__":
    _main(sys.argv[1:])
