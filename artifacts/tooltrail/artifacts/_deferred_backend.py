"""A backend that is opened on first use; a failed opening is retried on the next use."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._backends import Backend
from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts.sink import SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, UnavailableError


class DeferredBackend:
    """Any backend; all methods raise UnavailableError while the backend cannot be opened.

    Wrong options raise UnavailableError too: a caller that records must wait and retry, and must
    not drop the record as invalid. Safe for threads; two threads may both open the backend.
    """

    def __init__(self, capabilities: SinkCapabilities, open_backend: Callable[[], Backend]) -> None:
        """Open with `open_backend`, which raises UnavailableError and InvalidRecordError."""
        self._capabilities = capabilities
        self._open = open_backend
        self._opened: Backend | None = None

    @property
    def capabilities(self) -> SinkCapabilities:
        return self._capabilities

    @property
    def may_be_replaced(self) -> bool:
        return self._backend.may_be_replaced

    def locate(self, path: str) -> str:
        return self._backend.locate(path)

    def publish(self, source: Path, target: str) -> bool:
        return self._backend.publish(source, target)

    def open(self, target: str) -> BinaryIO:
        return self._backend.open(target)

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        return self._backend.read(target, start, stop)

    def facts(self, target: str) -> FileFacts:
        return self._backend.facts(target)

    def delete(self, target: str) -> None:
        self._backend.delete(target)

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        return self._backend.children(folder)

    def check_root(self) -> None:
        self._backend.check_root()

    @property
    def _backend(self) -> Backend:
        if self._opened is None:
            try:
                self._opened = self._open()
            except InvalidRecordError as error:
                raise UnavailableError(str(error)) from error
        return self._opened
