"""Capture of a stream that stays in memory while it is short."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tooltrail.artifacts.captured import CapturedStream
from tooltrail.records.counted_streams import CountedStream, check_role

if TYPE_CHECKING:
    from tooltrail.artifacts.capture import Capture


class ShortCapture:
    """Keeps a short stream in memory, and passes a long one to a `Capture`.

    A stream becomes long when it has more than `most` bytes, or when the caller calls `flush`. So
    a short output needs no file and no import of the codec. For one thread.
    """

    def __init__(self, role: str, most: int, open_capture: "Callable[[], Capture]") -> None:
        """Prepare; nothing is opened yet.

        Args:
            role: role of the stream, such as `stdout`.
            most: most bytes that stay in memory.
            open_capture: makes the capture for a long stream.

        Raises:
            InvalidRecordError: no stream can have this role.
        """
        check_role(role)
        self._role = role
        self._most = most
        self._open_capture = open_capture
        self._held = bytearray()
        self._capture: Capture | None = None

    def write(self, chunk: bytes) -> None:
        """Capture the next bytes."""
        if self._capture is not None:
            self._capture.write(chunk)
        elif len(self._held) + len(chunk) <= self._most:
            self._held += chunk
        else:
            self._hand_over().write(chunk)

    def flush(self) -> None:
        """Make all bytes so far readable from the spool file."""
        if self._capture is not None:
            self._capture.flush()
        elif self._held:
            self._hand_over().flush()

    def close(self) -> CapturedStream:
        """End the stream and return its outcome."""
        if self._capture is not None:
            return self._capture.close()
        return CapturedStream(CountedStream.of(self._role, bytes(self._held)), None)

    def _hand_over(self) -> "Capture":
        self._capture = self._open_capture()
        self._capture.write(self._held)
        self._held = bytearray()
        return self._capture
