"""Prints data on stdout in the requested style, and messages on stderr."""

import codecs
import io
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tooltrail.cli._exit_codes import ExitCode

RAW, UTC_TIMES = "tooltrail.raw", "tooltrail.utc"
"""Keys of the context of click with the values of `--raw` and `--utc`; see `is_given`."""

SCHEMA_VERSION = 1
"""Version of the JSON of every command. Increased when the meaning of a field changes."""

_HINT = "`tooltrail "
"""Begins a command in a message."""

_BLOCK = 1 << 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_DIGEST_CHARS = 19
_FILLERS = "\u115f\u3164\uffa0"
"""Letters of Hangul that are invisible, and whose width differs between terminals."""

_MOST_NAMED = 20
"""Damaged things that a command names one by one."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

Record = Mapping[str, Any]

Members = Mapping[str, Callable[[Any], object]]
"""The names of the fields of a record, and a function per field that reads it from a value."""


class ProgressLine:
    """A line about the progress of a command on the terminal of stderr, drawn again and again.

    All other output erases the line first. Output on a terminal that does not end with a newline
    is not overwritten: until the next newline, no line is drawn.
    """

    def __init__(self) -> None:
        self._is_drawn = False
        self._is_after_newline = True

    def draw(self, text: str) -> None:
        """Replace the line. Does nothing in a thread that is not the main thread."""
        if self._is_after_newline and threading.current_thread() is threading.main_thread():
            self._write(text)
            self._is_drawn = True

    def erase(self) -> None:
        """Erase the line if there is one."""
        if self._is_drawn:
            self._write("")
            self._is_drawn = False

    def follow(self, output: bytes, *, is_terminal: bool) -> None:
        """Remember whether output on a terminal, which was just written, ends with a newline."""
        if is_terminal and output:
            self._is_after_newline = output.endswith(b"\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()


PROGRESS_LINE = ProgressLine()


def say(message: str) -> None:
    """Print a message for people on stderr, safe for a terminal; see `on_terminal`.

    Further lines are indented, so that text in a message cannot look like another message.

    This is the only way to stderr for text of this program. A message that cannot be written is
    dropped without an error.
    """
    finish = getattr(sys.stdout, "finish", None)
    if finish is not None:
        finish()  # a message in the middle of a pager would be lost
    PROGRESS_LINE.erase()
    with suppress(OSError):
        indented = re.sub(r"\n(?=\S)", "\n  ", _pasteable(message))
        sys.stderr.write(f"{on_terminal(indented)}\n")
        sys.stderr.flush()
    PROGRESS_LINE.follow(b"\n", is_terminal=sys.stderr.isatty())


def _pasteable(message: str) -> str:
    """Add the named store of this command line to each `tooltrail …` command in a message."""
    if _HINT not in message:
        return message
    import shlex  # noqa: PLC0415  few messages name a command

    named = shlex.join(named_store())
    return message.replace(_HINT, f"{_HINT}{named} " if named else _HINT)


def named_store() -> list[str]:
    """The options of this command line that name the store, for a command that works when pasted.

    A message never shows a password, so `URL` stands for a URL.
    """
    given: dict[str, str] = {}
    for word, following in pairwise([*sys.argv[1:], ""]):
        name, separator, value = word.partition("=")
        if word == "--":
            break
        if name in ("--db", "--artifacts", "--spool"):
            value = value if separator else following
            given[name] = "URL" if "://" in value else value
    return [*chain.from_iterable(named for named in given.items() if named[1])]


def say_damage(found: Iterable[object]) -> ExitCode:
    """Name damaged things, the first ones of many, and return the exit code.

    `found` has one sentence or error for each of them, and None for each thing without damage.
    """
    named = [str(one) for one in found if one is not None]
    if not named:
        return ExitCode.OK
    if more := len(named[_MOST_NAMED:]):
        named[_MOST_NAMED:] = [counted(more, "more problem")]
    for one in named[:-1]:
        say(f"tooltrail: {one}")
    say(f"tooltrail: {named[-1]}; `tooltrail verify` compares all records")
    return ExitCode.DAMAGED


def write(text: str) -> None:
    """Write text to stdout. A lone surrogate is written as an escape, which is valid JSON."""
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Write exact bytes to stdout.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
        UnavailableError: the bytes cannot be written, for example on a full disk.
    """
    _put(sys.stdout.buffer, data, "standard output", is_terminal=sys.stdout.isatty())


def write_recorded(text: str) -> None:
    """Write text that was recorded to stdout; see `write_block`."""
    write_block(sys.stdout.buffer, text.encode("utf-8", "backslashreplace"))


def write_block(target: BinaryIO, block: bytes) -> None:
    """Write one complete recorded text to stdout or stderr; see `BlockWriter`."""
    copy_blocks([block], target)


def copy_blocks(blocks: Iterable[bytes], target: BinaryIO) -> None:
    """Write each block of recorded bytes when it arrives; see `BlockWriter`."""
    writer = BlockWriter(target)
    try:
        for block in blocks:
            writer.write(block)
    finally:
        writer.finish()


class BlockWriter:
    """Writes the recorded bytes of one stream to stdout or stderr; raises like `write_bytes`.

    On a terminal, control characters are replaced, unless the option `--raw` is given. A character
    or a CR LF that is split over two blocks is then written with the second block.
    """

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._is_terminal = target.isatty()
        self._decoder: io.IncrementalNewlineDecoder | None = None
        if self._is_terminal and not is_given(RAW):
            decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
            self._decoder = io.IncrementalNewlineDecoder(decoder, translate=False)

    def write(self, block: bytes) -> None:
        """Write the next bytes of the stream."""
        self._write(block, is_last=False)

    def finish(self) -> None:
        """End the stream: write the incomplete character, or the CR, that was held back."""
        self._write(b"", is_last=True)

    def _write(self, block: bytes, *, is_last: bool) -> None:
        if self._decoder is not None:
            text = on_terminal(self._decoder.decode(block, final=is_last))
            block = text.encode("utf-8", "backslashreplace")
        if block:
            _put(self._target, block, "the output", is_terminal=self._is_terminal)


def _put(target: BinaryIO, data: bytes, what: str, *, is_terminal: bool) -> None:
    PROGRESS_LINE.erase()
    with _writing(what):
        target.write(data)
        target.flush()
    PROGRESS_LINE.follow(data, is_terminal=is_terminal)


def is_given(option: str) -> bool:
    """Whether an option for all output of a command is given: `RAW` or `UTC_TIMES`."""
    import click  # noqa: PLC0415  takes 50 ms, too slow for `exec`

    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(option))


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """Replace a file atomically with text. A device is written directly."""
    with _writing(str(path)):
        if path.exists() and not path.is_file():
            _write_pieces(path, pieces)
            return
        # A symbolic link is kept, and the file that it points to is replaced.
        target = path.resolve()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            _write_pieces(part, pieces)
            if target.exists():
                import shutil  # noqa: PLC0415  few commands write files

                shutil.copymode(target, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _write_pieces(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines(pieces)


def attributes(*names: str) -> dict[str, Callable[[Any], object]]:
    """Record fields that are read from the attributes with these names."""
    return {name: attrgetter(name) for name in names}


class Listing(NamedTuple):
    """The output style of a list. Without a style and fields, the list is printed as a table.

    Attributes:
        style: `json`, `ndjson` or `csv`.
        fields: names of the fields to print, separated by commas; None for all.
    """

    style: str | None
    fields: str | None

    @property
    def is_table(self) -> bool:
        """Whether a table is requested."""
        return not self.style and not self.fields

    def print_records(self, values: Iterable[Any], members: Members) -> bool:
        """Print values as records and return True; return False if a table is requested."""
        if self.is_table:
            return False
        version = {"schema_version": SCHEMA_VERSION} if self.fields is None else {}
        names = list(members) if self.fields is None else _chosen(members, self.fields)
        rows = ({**version, **{name: members[name](one) for name in names}} for one in values)
        if self.style == "csv":
            lines = _csv(rows, [*version, *names])
            _write_in_blocks(map(on_terminal, lines) if sys.stdout.isatty() else lines)
        elif self.style == "ndjson":
            _write_in_blocks(f"{json_of(row)}\n" for row in rows)
        else:
            _write_in_blocks(_array(rows))
        return True


def print_array(records: Iterable[Record]) -> int:
    """Print records as one JSON array, each as it arrives, and return their number.

    After an error, the array is still closed, so that it is valid JSON. The exit code shows that
    the array is incomplete.
    """
    count = 0
    for piece in _array({"schema_version": SCHEMA_VERSION, **record} for record in records):
        write(piece)
        count += 1
    return count - 1


def _array(rows: Iterable[Record]) -> Iterator[str]:
    """A JSON array in pieces: one for each row, and one for the end."""
    separator = "["
    try:
        for row in rows:
            yield separator + json_of(row)
            separator = ",\n "
    except Exception:
        if separator != "[":
            yield "]\n"
        raise
    yield "]\n" if separator != "[" else "[]\n"


def _write_in_blocks(pieces: Iterable[str]) -> None:
    """Write pieces of text at constant memory. What came before an error is written."""
    for block in in_blocks((piece.encode("utf-8", "backslashreplace") for piece in pieces), _BLOCK):
        write_bytes(block)


def in_blocks(pieces: Iterable[bytes], least: int) -> Iterator[bytes]:
    """Join pieces to blocks of at least some bytes, the last one of what came before an error."""
    waiting: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if size >= least:
                block, waiting, size = b"".join(waiting), [], 0
                yield block
    except GeneratorExit:
        raise
    except BaseException:  # also Ctrl-C
        yield b"".join(waiting)
        raise
    yield b"".join(waiting)


def size_of(count: int | None) -> str:
    """Format a number of bytes in powers of 1000: `1.2 MB`."""
    if count is None:
        return ""
    value = float(count)
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{count} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def duration_of(milliseconds: int | None) -> str:
    """Format a duration: `0.31 s`, `4 min 12 s`."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    # 59.995 and more would be shown as 60.00 s.
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def short_digest(digest: str | None) -> str:
    """A digest shortened to its algorithm and 12 digits; `(text)` for an agent without a schema."""
    return "(text)" if digest is None else digest[:_DIGEST_CHARS]


def counted(count: int, noun: str) -> str:
    """Format a number with a noun: `1 artifact`, `2,000 artifacts`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def terminal_columns() -> int:
    """The width of the terminal."""
    import shutil  # noqa: PLC0415  only for a terminal

    return shutil.get_terminal_size().columns


def printable(text: str) -> str:
    """Replace control and filler characters: text in a line cannot control the terminal."""
    return "".join(c if c.isprintable() and c not in _FILLERS else "\ufffd" for c in text)


def on_terminal(text: str) -> str:
    """Replace control characters except tabs and the ends of lines, CR LF included."""
    text = text.replace("\r\n", "\n")
    return "".join(c if c in "\n\t" else printable(c) for c in text)


@contextmanager
def _writing(what: str) -> Generator[None]:
    """Name the output in the error of a failed write. `BrokenPipeError` passes through."""
    from tooltrail.records.errors import UnavailableError  # noqa: PLC0415  `say` does not need it

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnavailableError(f"{what} cannot be written: {error.strerror}") from error


def _chosen(names: Iterable[str], fields: str) -> list[str]:
    chosen = [name.strip() for name in fields.split(",")]
    unknown = [name for name in chosen if name not in names]
    if unknown:
        import click  # noqa: PLC0415  takes 50 ms, too slow for `exec`

        raise click.UsageError(f"unknown field {', '.join(unknown)}; there are {', '.join(names)}")
    return chosen


def json_of(row: Record) -> str:
    """A record as JSON on one line, with escapes for characters that a terminal may obey."""
    text = json.dumps(row, ensure_ascii=False, default=_plain)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _csv(rows: Iterable[Record], header: Sequence[str]) -> Iterator[str]:
    """The lines of CSV, the header first."""
    import csv  # noqa: PLC0415  few lists are printed as CSV

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    values: Iterable[Iterable[object]] = (map(_cell_value, row.values()) for row in rows)
    for line in chain([header], values):
        writer.writerow(line)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _cell_value(value: object) -> object:
    """A cell of CSV. A text that a spreadsheet would run as a formula gets a leading apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return value if value is None or isinstance(value, str | int | float) else _plain(value)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
