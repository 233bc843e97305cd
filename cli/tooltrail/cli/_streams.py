"""Capturing the streams of a command, and in which order their chunks came."""

import time
from collections.abc import Callable

from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.short_capture import ShortCapture
from tooltrail.cli._process import StreamName

_TICK_MS = 100
"""Chunks of one stream within this time are one line of the order."""

_FD: dict[StreamName, int] = {"stdout": 1, "stderr": 2}


class StreamCapture:
    """The streams of one command, and the order in which their chunks came.

    Args:
        capture: makes the capture of a role.
        has_terminal: whether the command prints to a terminal, which knows one stream alone.
    """

    def __init__(self, capture: Callable[[str], ShortCapture], *, has_terminal: bool) -> None:
        self._streams: dict[StreamName, ShortCapture] = (
            {"stdout": capture("combined")}
            if has_terminal
            else {name: capture(name) for name in _FD}
        )
        self._order = capture("order")
        self._began = time.monotonic()
        self._last: tuple[StreamName, int, int] | None = None

    def write(self, name: StreamName, chunk: bytes) -> None:
        """Take a chunk in; see `ChunkHandler`."""
        self._streams[name].write(chunk)
        if len(self._streams) == 1:
            return
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

    def close(self) -> list[CapturedStream]:
        """End all streams, in the order in which a record has them."""
        self._write_order()
        captured = [capture.close() for capture in self._streams.values()]
        return captured if len(captured) == 1 else [*captured, self._order.close()]

    def _write_order(self) -> None:
        if self._last is not None:
            name, size, at = self._last
            self._order.write(f"{_FD[name]} {size} {at}\n".encode())
