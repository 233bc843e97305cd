"""What the readers of all formats have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tooltrail.importers.events import Event


class Line(NamedTuple):
    """One JSON value of a source, and where it stands.

    Attributes:
        offset: offset of its first byte in the file.
        data: its bytes.
        value: the value.
        number: number of its line, from 1.
    """

    offset: int
    data: bytes
    value: Any
    number: int = 1


class FileReader(ABC):
    """Reads the lines of one file, in order.

    Args:
        path: the file; its name is the id of a session that has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.stem

    @abstractmethod
    def read(self, line: Line) -> Iterable[Event]:
        """The events of one line.

        A line without events is of an unknown type. For a line of a known type that adds nothing,
        a reader yields None.
        """
