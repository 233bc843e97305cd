"""Reads the JSON values of a file or of a ZIP archive, one by one, with their offsets.

An agent may be killed in the middle of a line, or share a file with another. So a line may hold two
values, or half a value. A damaged part costs itself only. Memory is bounded by the longest value.
"""

import json
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from lzma import LZMAError
from typing import IO, Final
from zipfile import BadZipFile, ZipFile

from tooltrail.importers.events import Line

_NO_JSON: Final = "not valid JSON"
_ARCHIVE: Final = b"PK\x03\x04"
"""The first bytes of a ZIP archive."""

_UNREADABLE: Final = (
    *(BadZipFile, zlib.error, LZMAError, EOFError),  # damaged
    *(NotImplementedError, RuntimeError),  # compressed in another way, or encrypted
    *(ValueError, RecursionError),  # not JSON
)
"""What may be wrong with a file in an archive."""


_decoder: Final = json.JSONDecoder()
_MOST_FAILURES: Final = 1000
"""Places of one damaged part where an object is looked for: each takes time by its offset."""

_INSIDE: Final = re.compile(r"\s*[,\]}]")
"""What follows a value inside another one."""

_OPENINGS: Final = (b"{", b"[", b"[{", b"{}", b"[]")
"""The first line of a value that is laid out on many lines."""


def read_lines(file: IO[bytes]) -> Iterator[Line]:
    """The values of a file: one JSON value on each line, or one value on many lines.

    Of a ZIP archive: the value of each JSON file in it, at the offset of that file.
    """
    begin = file.read(len(_ARCHIVE))
    if begin == _ARCHIVE:
        yield from _archived(file)
        return
    file.seek(-len(begin), 1)
    offset = file.tell()
    for number, data in enumerate(file, 1):
        try:
            yield Line(offset, data, json.loads(data.decode("utf-8-sig")), number)
        except (ValueError, RecursionError):
            document = number == 1 and _document(file, data)
            if isinstance(document, Line):
                yield document
                return
            yield from _values_in(data, number, offset, is_open=document)
        offset += len(data)


def _archived(file: IO[bytes]) -> Iterator[Line]:
    """The values of the JSON files in a ZIP archive."""
    size = file.seek(0, 2)
    try:
        archive = ZipFile(file)
    except _UNREADABLE:  # such as an archive that is still being written
        yield Line(0, b"", None, 1, "the archive cannot be read", is_cut=True)
        return
    for number, info in enumerate(archive.infolist(), 1):
        if not info.filename.endswith(".json"):
            continue
        try:
            data = archive.read(info)
            yield Line(info.header_offset, data, json.loads(data), number)
        except _UNREADABLE:
            reason = f"{info.filename} in the archive cannot be read, and all calls in it are lost"
            yield Line(info.header_offset, b"", None, number, reason)
    file.seek(size)  # everything was read


def _document(file: IO[bytes], first_line: bytes) -> Line | bool:
    """The only value of a file whose first line was read.

    If there is no such value: whether the writer may still complete one.
    """
    if first_line.removeprefix(BOM_UTF8).strip() not in _OPENINGS:
        return False
    rest_from, is_open = file.tell(), False
    data = first_line + file.read()
    try:
        return Line(rest_from - len(first_line), data, json.loads(data))
    except json.JSONDecodeError as error:
        # A value that is cut off is wrong in its last line.
        is_open = "\n" not in error.doc[error.pos :].rstrip()
    except UnicodeDecodeError as error:
        is_open = error.reason == "unexpected end of data"
    except (ValueError, RecursionError):
        pass
    file.seek(rest_from)
    return is_open


def _values_in(data: bytes, number: int, offset: int, *, is_open: bool) -> Iterator[Line]:
    """The values of a line that is not one JSON value.

    `is_open` if the line begins a value on many lines that is not complete yet.
    """
    text, begin = data.decode("latin-1"), 0  # with one character for each byte
    while (found := _next_value(text, begin)) is not None:
        start, end = found
        if (part := data[begin:start]).strip():
            yield Line(offset + begin, part, None, number, _NO_JSON)
        value = json.loads(data[start:end].decode("utf-8", "surrogateescape"))
        yield Line(offset + start, data[start:end], value, number)
        begin = end
    if rest := data[begin:].rstrip():
        is_cut = is_open or not data.endswith(b"\n")
        yield Line(offset + begin, rest, None, number, _NO_JSON, is_cut)


def _next_value(text: str, begin: int) -> tuple[int, int] | None:
    """The start and the end of the next object in a line; None if there is none.

    An object inside a damaged one does not count. So an object that follows damage has to contain
    the place where the damaged one is wrong, or start behind it, and no comma or bracket follows.
    """
    start, failures = text.find("{", begin), 0
    is_after_damage, wrong_at = bool(text[begin:start].strip()), begin
    while start >= 0 and failures < _MOST_FAILURES:
        try:
            value, end = _decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            failures += 1
            wrong_at = max(wrong_at, error.pos)
        except (ValueError, RecursionError):
            return None
        else:
            is_part = end <= wrong_at or _INSIDE.match(text, end) or not value
            if not (is_after_damage and is_part):
                return start, end
            wrong_at = max(wrong_at, end)
        is_after_damage = True
        last = text.rfind("{", start + 1, wrong_at)
        start = last if last >= 0 else text.find("{", max(start + 1, wrong_at))
    return None
