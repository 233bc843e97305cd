"""What is searched for, and where it stands in the texts of a call: line, byte and context."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unicodedata import normalize

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.search.texts import Piece, bytes_of, text_of
from tooltrail.store.search.words import Phrase

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactReader

MOST_CHARS: Final = 1_000
"""Longest part of a line that a place keeps, in characters."""

_LED: Final = 200
"""Characters before the match in a longer line."""

FOLDER: Final = "folder"
"""The name of the piece with the folder in which a call ran."""

_MARKS: Final = r"""["'\\]*"""
"""What a shell or a JSON text may add to the characters of a path."""

_SLASH: Final = rf"{_MARKS}[/\\]+(?:\.[/\\]+)*"
_NAME_ENDS: Final = r"(?![\w~%@+-])(?!\.\w)"

_BEGINS: Final = r"(?:^|[^\w.~%+/\\-]|\\[ntr]|(?<![\w-])-\w)"
_BASE: Final = r"(?:(?:\S*/)?\.\.?|~\w*|\$\w+|\S*[)}%`]|[ab])/+"
"""Where a path may begin: behind a space, a quote, `=`, `-I`, … And folders that may stand for any
folder: `..`, `~`, `$DIR`, `$(pwd)`, and `a` and `b` of a patch."""

_RELATIVE: Final = rf"{_BEGINS}(?:{_BASE})?$"
_FROM_ROOT: Final = rf"{_BEGINS}(?:{_BASE}|/+)?$"
_ANYWHERE: Final = rf"(?:{_BEGINS}|[/\\])$"


class Place(Piece):
    """One place where something was found: the line; of a long line, the part around the match.

    Attributes:
        offset: offset of the match in the text, in bytes.
        start: offset of the match in the line, in characters.
        length: characters of the match.
        before: lines before it, as many as were asked for.
        after: lines after it.
    """

    start: int = 0
    length: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass
class WordQuery:
    """Texts that together have every phrase.

    Attributes:
        phrases: the words that a hit has; None for a query that does not use the index.
    """

    phrases: Sequence[Phrase]

    def find(self, pieces: Iterable[Piece], context: int) -> list[Place]:
        """The first place in each piece that has one; empty if the call is no hit."""
        found: list[Place] = []
        missing = set(range(len(self.phrases)))
        for piece in pieces:
            spans = {n: one.find(piece.text) for n, one in enumerate(self.phrases)}
            if there := {n: span for n, span in spans.items() if span is not None}:
                missing -= there.keys()
                found.append(place_of(piece, *min(there.values()), context))
        return [] if missing else found


class LineQuery:
    """Lines that match a regular expression or contain a text: in all texts, without the index.

    Raises `InvalidRecordError` for a pattern that `ArtifactReader.grep` does not accept.
    """

    def __init__(self, pattern: str, *, literal: bool, ignore_case: bool) -> None:
        from tooltrail.artifacts.grep import LinePattern  # noqa: PLC0415  slow, not for words

        self.phrases = None
        self._pattern = pattern
        self._options = {"literal": literal, "ignore_case": ignore_case}
        self._lines = LinePattern(pattern, literal=literal, ignore_case=ignore_case)
        source = bytes_of(pattern)
        flags = re.IGNORECASE if ignore_case else 0
        self._in_line = re.compile(re.escape(source) if literal else source, flags)

    def find(self, pieces: Iterable[Piece], context: int) -> list[Place]:
        """See `WordQuery.find`."""
        found: list[Place] = []
        for piece in pieces:
            data = bytes_of(piece.text)
            if span := next(self._lines.spans(data), None):
                begin = len(text_of(data[: span[0]]))
                start, end = self._within(data[slice(*span)])
                found.append(place_of(piece, begin + start, begin + end, context))
        return found

    def grep(self, reader: "ArtifactReader", context: int) -> list[Place]:
        """The first place in an artifact, with the name of no stream; at constant memory.

        Raises:
            DamageError, UnavailableError: the artifact cannot be read.
        """
        around: tuple[list[str], list[str]] = [], []
        found: Place | None = None
        options: dict[str, Any] = {**self._options, "before": context, "after": context}
        for match in reader.grep(self._pattern, max_count=1, **options):
            line = match.line.removesuffix(b"\n")
            if match.is_context:
                around[found is not None].append(text_of(line))
            else:
                at = (reader.path, match.offset, match.line_number)
                found = place_of(Piece("", text_of(line), "complete", *at), *self._within(line), 0)
        before, after = map(_lines, around)
        return [] if found is None else [found.replaced(before=before, after=after)]

    def _within(self, line: bytes) -> tuple[int, int]:
        """The match in a line, in characters."""
        if (found := self._in_line.search(line)) is None:
            return 0, 0
        start = len(text_of(line[: found.start()]))
        return start, start + len(text_of(found[0]))


class PathQuery:
    """Calls that name a path in their arguments or in what they say they changed, or ran there.

    A path in a folder names the folder, too. A relative path may be relative to any folder: what
    is wanted and what is named must agree from the end, as far as both go.

    Raises `InvalidRecordError` for a path without a name, such as `/` and `..`.
    """

    def __init__(self, path: str) -> None:
        path = _spelled(posixpath.normpath(path))
        *folders, name = path.lstrip("/").split("/")
        if name in ("", ".", ".."):
            raise InvalidRecordError(f"{path!r} has no name; name a folder or a file")
        parts = [_MARKS.join(map(re.escape, one)) for one in (*folders, name)]
        pattern = "()"  # group 1 is empty if all folders are there, and None otherwise
        for part in parts[:-1]:
            pattern = f"(?:{pattern}{part}{_SLASH})?"
        self._pattern = re.compile(pattern + parts[-1] + _NAME_ENDS)
        self._before_all = re.compile(_FROM_ROOT if path.startswith("/") else _ANYWHERE)
        self._before_some = re.compile(_RELATIVE)
        phrase = Phrase(name, is_prefix=False)
        self.phrases = [phrase] if phrase.words else None
        self._words = re.findall(r"\w+", name)

    def find(self, pieces: Iterable[Piece], context: int) -> list[Place]:
        """See `WordQuery.find`."""
        found: list[Place] = []
        for piece in pieces:
            if piece.name.startswith(("arguments", "output", FOLDER)):
                text = piece.text if piece.text.isascii() else _spelled(piece.text)
                if span := self.span(text):
                    found.append(place_of(piece.replaced(text=text), *span, context))
        return found

    def span(self, text: str) -> tuple[int, int] | None:
        """The first place of the path in a text, as offsets in it; None if there is none."""
        if not all(word in text for word in self._words):
            return None
        for found in self._pattern.finditer(text):
            before = self._before_some if found[1] is None else self._before_all
            *_, word = f"{text[max(0, found.start() - _LED) : found.start()]}|".split()
            if before.search(word[:-1]):
                return found.span()
        return None


Query: TypeAlias = WordQuery | LineQuery | PathQuery


def _spelled(path: str) -> str:
    """A path in one form of Unicode, with a byte that is not UTF-8 as an escape, as in a record."""
    return normalize("NFC", path.encode(errors="backslashreplace").decode())


def folder_of(environment: Mapping[str, Any]) -> Piece:
    """The folder in which a call ran, by the members of its environment."""
    return Piece(FOLDER, str(environment.get("cwd") or ""), "")


def place_of(piece: Piece, start: int, end: int, context: int) -> Place:
    """The place of a match from `start` to `end` in a piece."""
    text = piece.text
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    first = begin if stop - begin <= MOST_CHARS else max(begin, start - _LED)
    line = text[first : min(stop, first + MOST_CHARS)]
    rest = text[stop + 1 :]
    return Place(
        piece.name,
        line,
        piece.surface,
        piece.path,
        piece.offset + len(bytes_of(text[:start])),
        piece.line + text.count("\n", 0, start),
        start - first,
        max(0, min(end, first + len(line)) - start),
        _lines(text[:begin].split("\n")[-context - 1 : -1] if context else []),
        _lines(rest.removesuffix("\n").split("\n", context)[:context] if rest else []),
    )


def _lines(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line[:MOST_CHARS] for line in lines)
