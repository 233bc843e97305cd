"""Capturing a command's two streams apart, and in which order their chunks came."""

import time
from collections.abc import Callable

from tooltrail.artifacts import Capture, CapturedStream
from tooltrail.cli._process import StreamName

_TICK_MS = 100
"""Chunks of one stream within this time are one line of the order."""

_FD: dict[StreamName, int] = {"stdout": 1, "stderr": 2}


class StreamCapture:
    """Both streams of one command, and the order in which their chunks came.

    Args:
        capture: makes the capture of a role.
    """

    def __init__(self, capture: Callable[[str], Capture]) -> None:
        self._streams = {name: capture(name) for name in _FD}
        self._order = capture("order")
        self._began = time.monotonic()
        self._last: tuple[StreamName, int, int] | None = None

    def write(self, name: StreamName, chunk: bytes | memoryview) -> None:
        """Take a chunk in; see `ChunkHandler`."""
        self._streams[name].write(chunk)
        at = int((time.monotonic() - self._began) * 1000)
        last = self._last
        if last is not None and last[0] == name and at - last[2] < _TICK_MS:
            self._last = (name, last[1] + len(chunk), last[2])
        else:
            self._write_order()
            self._last = (name, len(chunk), at)

    def flush(self) -> None:
        """Make what came so far readable from the spool."""
        for capture in self._streams.values():
            capture.flush()

    def close(self) -> dict[str, CapturedStream]:
        """End all streams; what was captured, by role."""
        self._write_order()
        closed: dict[str, CapturedStream] = {"order": self._order.close()}
        for name, capture in self._streams.items():
            closed[name] = capture.close()
        return closed

    def _write_order(self) -> None:
        if self._last is not None:
            name, size, at = self._last
            self._order.write(f"{_FD[name]} {size} {at}\n".encode())
