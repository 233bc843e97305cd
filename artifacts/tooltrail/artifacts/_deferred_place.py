"""A place that is opened when it is first used, and tried again for as long as it is away."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._places import Place
from tooltrail.artifacts.sink import SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, UnavailableError


class DeferredPlace:
    """Any place; all methods raise UnavailableError while it cannot be opened.

    That the options for it are wrong is no fault of whoever uses it so late, and a record must not
    be lost by it: then it cannot be opened either. Safe for threads, which may both open it.
    """

    def __init__(self, capabilities: SinkCapabilities, open_place: Callable[[], Place]) -> None:
        """Open it by `open_place`, which raises UnavailableError and InvalidRecordError."""
        self._capabilities = capabilities
        self._open = open_place
        self._opened: Place | None = None

    @property
    def capabilities(self) -> SinkCapabilities:
        return self._capabilities

    @property
    def may_be_replaced(self) -> bool:
        return self._place.may_be_replaced

    def locate(self, path: str) -> str:
        return self._place.locate(path)

    def publish(self, source: Path, target: str) -> bool:
        return self._place.publish(source, target)

    def open(self, target: str) -> BinaryIO:
        return self._place.open(target)

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        return self._place.read(target, start, stop)

    def facts(self, target: str) -> FileFacts:
        return self._place.facts(target)

    def delete(self, target: str) -> None:
        self._place.delete(target)

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        return self._place.children(folder)

    def check_root(self) -> None:
        self._place.check_root()

    @property
    def _place(self) -> Place:
        if self._opened is None:
            try:
                self._opened = self._open()
            except InvalidRecordError as error:
                raise UnavailableError(str(error)) from error
        return self._opened
