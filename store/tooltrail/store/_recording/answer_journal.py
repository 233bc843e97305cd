"""What has come of an answer that is being streamed, so that who is killed meanwhile loses none.

    <spool>/
    ├── answer-<message id>                     a line that says whose it is, then what came of it
    └── answer-<message id>.owner -> owner-…    its process; see `tooltrail.artifacts.SpoolOwner`

The file is there from the first chunk until the message is recorded; of a process that is gone,
`repair` records it. Nothing is synced: a kill loses nothing, and a power cut what the system had
not written yet.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import SpoolOwner, create_private, is_in_use
from tooltrail.artifacts.spool_owner import LINK_SUFFIX, names_in
from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.errors import InvalidRecordError, TooltrailError, UnavailableError
from tooltrail.store.spools import ANSWER_PREFIX

_NAME = re.compile(rf"{ANSWER_PREFIX}([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBeginning:
    """What is known of an answer before anything of it has come.

    Attributes:
        store: whose it is.
        session: that it belongs to.
        wire_format: in which it comes.
        provider: whose server gives it, where the format does not say that.
        id: of its message.
        at: when it began.
    """

    store: UUID
    session: UUID
    wire_format: str
    provider: str | None
    id: UUID
    at: datetime

    def to_line(self) -> bytes:
        """The first line of the file."""
        told = {
            "v": _VERSION,
            "store": str(self.store),
            "session": str(self.session),
            "format": self.wire_format,
            "provider": self.provider,
            "id": str(self.id),
            "at": self.at.isoformat(),
        }
        return encode(told) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "AnswerBeginning":
        """What such a line says.

        Raises:
            InvalidRecordError: it is none, or of a newer program.
        """
        told = decode(line)
        try:
            if not isinstance(told, dict) or told["v"] != _VERSION:
                raise InvalidRecordError("it is none that this program knows")
            provider = told["provider"]
            return cls(
                store=UUID(str(told["store"])),
                session=UUID(str(told["session"])),
                wire_format=str(told["format"]),
                provider=None if provider is None else str(provider),
                id=UUID(str(told["id"])),
                at=datetime.fromisoformat(str(told["at"])),
            )
        except (KeyError, ValueError) as error:
            raise InvalidRecordError(f"it is not as it was written: {error}") from error


class AnswerJournal:
    """Writes down what comes of one answer. Not safe to share between threads.

    Where the spool cannot be written the answer goes on without: it is recorded at its end all the
    same. What was written then has no gaps, since nothing more is.
    """

    def __init__(self, spool: Path, owner: SpoolOwner, beginning: AnswerBeginning) -> None:
        self._path = spool / f"{ANSWER_PREFIX}{beginning.id}"
        self._owner = owner
        self._beginning = beginning
        self._file: FileIO | None = None
        self._is_given_up = False

    def append(self, data: bytes) -> None:
        """Write down what came next."""
        if self._is_given_up:
            return
        try:
            if self._file is None:
                self._owner.claim(self._path.name)
                self._file = create_private(self._path)
                data = self._beginning.to_line() + data
            self._is_given_up = self._file.write(data) != len(data)
        except OSError:
            self._is_given_up = True

    def close(self) -> None:
        """Nothing more comes; what came stays until the message is recorded."""
        self._is_given_up = True
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """Let it go, once the message is recorded."""
        self.close()
        remove_answer(self._path)


@dataclass(frozen=True, slots=True)
class SpooledAnswer:
    """An answer in a spool.

    Attributes:
        path: of its file, which need not be there.
        id: of its message.
        is_running: whether the process lives that it is of.
    """

    path: Path
    id: UUID
    is_running: bool

    def may_be_of(self, store: UUID) -> bool:
        """Whether it is of a store; also where nobody can tell, not where nothing had come."""
        try:
            read = self.read()
        except TooltrailError:
            return True
        return read is not None and read[0].store == store

    def read(self) -> tuple[AnswerBeginning, bytes] | None:
        """What is known of it and what came; None where nothing did.

        Raises:
            InvalidRecordError: the file is not as it was written, or of a newer program.
            UnavailableError: it cannot be read.
        """
        try:
            line, newline, data = self.path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnavailableError(f"{self.path} cannot be read: {error.strerror}") from error
        if not newline:
            return None
        try:
            return AnswerBeginning.from_line(line), data
        except InvalidRecordError as error:
            raise InvalidRecordError(f"{self.path}: {error}") from error


def iter_answers(spool: Path) -> Iterator[SpooledAnswer]:
    """The answers in a spool, for whichever store, the oldest first.

    Raises:
        UnavailableError: the spool cannot be read. One that is not there is empty.
    """
    for name in sorted({name.removesuffix(LINK_SUFFIX) for name in names_in(spool)}):
        if match := _NAME.fullmatch(name):
            path = spool / name
            yield SpooledAnswer(path, UUID(match[1]), is_in_use(path))


def remove_answer(path: Path) -> None:
    """Delete an answer's file, and the link of its process last.

    Left-overs are found by their place, so no failure is worth breaking anybody.
    """
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}{LINK_SUFFIX}").unlink(missing_ok=True)
