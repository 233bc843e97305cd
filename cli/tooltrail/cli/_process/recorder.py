"""The caller's callbacks, kept from doing harm to the child."""

from collections.abc import Callable

from tooltrail.cli._process.outcome import ChunkHandler, StreamName


class Recorder:
    """Calls the callbacks until one raises, and never afterwards.

    What was recorded up to then is a true beginning of the output. Calls that went on after a
    failure would leave a hole that nothing marks.
    """

    def __init__(self, on_chunk: ChunkHandler, on_idle: Callable[[], None] | None) -> None:
        self._on_chunk = on_chunk
        self._on_idle = on_idle
        self.error: Exception | None = None

    def chunk(self, name: StreamName, data: bytes) -> None:
        """Record a chunk."""
        self.guard(lambda: self._on_chunk(name, data))

    def idle(self) -> None:
        """Let the caller flush."""
        if self._on_idle is not None:
            self.guard(self._on_idle)

    def guard(self, call: Callable[[], None]) -> None:
        """Make one call, unless an earlier one has failed."""
        if self.error is not None:
            return
        try:
            call()
        except Exception as error:  # noqa: BLE001 - given back in ChildExit; the child must go on
            self.error = error
