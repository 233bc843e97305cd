"""One stream of a running tool that stays in memory while it is short."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tooltrail.artifacts.captured import CapturedStream
from tooltrail.records.counted_streams import CountedStream, check_role

if TYPE_CHECKING:
    from tooltrail.artifacts.capture import Capture


class ShortCapture:
    """Holds a short stream in memory, and hands a long one to a `Capture`.

    A stream is long when it has more bytes than `most`, or when somebody calls `flush`. A program
    whose command prints little opens no file and loads no codec. For one thread.
    """

    def __init__(self, role: str, most: int, open_capture: "Callable[[], Capture]") -> None:
        """Prepare; nothing is opened yet.

        Args:
            role: of the stream, such as `stdout`.
            most: bytes that stay in memory.
            open_capture: makes the capture of a long stream.

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
        """Take the next bytes in."""
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
        """End the stream."""
        if self._capture is not None:
            return self._capture.close()
        return CapturedStream(CountedStream.of(self._role, bytes(self._held)), None)

    def _hand_over(self) -> "Capture":
        self._capture = self._open_capture()
        self._capture.write(self._held)
        self._held = bytearray()
        return self._capture
