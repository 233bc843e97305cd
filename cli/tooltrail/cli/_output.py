"""Printing: data on stdout in the style that was asked for, messages on stderr."""

import io
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

SCHEMA_VERSION = 1
"""Of the JSON that every command prints; raised when a field changes its meaning."""

_BLOCK = 1 << 20
_GAP = 2
"""Spaces between two columns of a table."""

_DIGEST_CHARS = 19
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

Record = Mapping[str, Any]

Members = Mapping[str, Callable[[Any], object]]
"""The fields of a record for programs, and how each is read from a value."""


def say(message: str) -> None:
    """Print a message for people on stderr, safe for a terminal; see `on_terminal`.

    This is the only way to stderr for text of this program. A message that cannot be written is
    dropped without an error.
    """
    with suppress(OSError):
        sys.stderr.write(f"{on_terminal(message)}\n")
        sys.stderr.flush()


def write(text: str) -> None:
    """Text on stdout; what no encoding can carry is spelled out, which in JSON is an escape."""
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Exact bytes on stdout.

    Raises:
        BrokenPipeError: the reader has gone.
        UnavailableError: they cannot be written, as on a full disk.
    """
    with _writing("standard output"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def copy_stream(source: BinaryIO, target: BinaryIO) -> None:
    """Copy exact bytes at constant memory; raises as `write_bytes` does."""
    copy_blocks(iter(lambda: source.read(_BLOCK), b""), target)


def copy_blocks(blocks: Iterable[bytes], target: BinaryIO) -> None:
    """Write exact bytes as they come; raises as `write_bytes` does."""
    for block in blocks:
        write_block(target, block)


def write_block(target: BinaryIO, block: bytes) -> None:
    """Exact bytes on stdout or stderr; raises as `write_bytes` does."""
    with _writing("the output"):
        target.write(block)
        target.flush()


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """Text into a file, which is there whole or stays as it was; a device is written to as it is.

    Raises:
        UnavailableError: the file cannot be written.
    """
    with _writing(str(path)):
        if path.exists() and not path.is_file():
            _write_pieces(path, pieces)
            return
        # A link stays a link: what it leads to is replaced.
        target = path.resolve()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            _write_pieces(part, pieces)
            if target.exists():
                import shutil  # noqa: PLC0415  few outputs go into files

                shutil.copymode(target, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _write_pieces(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines(pieces)


def attributes(*names: str) -> dict[str, Callable[[Any], object]]:
    """Members of a record that are attributes of these names."""
    return {name: attrgetter(name) for name in names}


class Listing(NamedTuple):
    """How a list is to be printed: as a table for people, unless one of these is given.

    Attributes:
        style: `json`, `ndjson` or `csv`.
        fields: which of the members, separated by commas; all when None.
    """

    style: str | None
    fields: str | None

    def print_records(self, values: Iterable[Any], members: Members) -> bool:
        """Print values as records, unless a table is asked for; whether they were printed.

        Raises:
            click.UsageError: a field that the records do not have.
        """
        if not self.style and not self.fields:
            return False
        version = {"schema_version": SCHEMA_VERSION} if self.fields is None else {}
        names = list(members) if self.fields is None else _chosen(members, self.fields)
        rows = [{**version, **{name: members[name](one) for name in names}} for one in values]
        if self.style == "csv":
            write(_csv(rows, [*version, *names]))
        elif self.style == "ndjson":
            write("".join(f"{_json(row)}\n" for row in rows))
        else:
            write("[" + ",\n ".join(map(_json, rows)) + "]\n")
        return True


def print_array(records: Iterable[Record]) -> int:
    """Print records as one JSON array, each as it arrives, and return how many there were.

    After an error the array is closed all the same, so that it is valid JSON. The exit code says
    that it is not complete.
    """
    count = 0
    try:
        for record in records:
            row = _json({"schema_version": SCHEMA_VERSION, **record})
            write((",\n " if count else "[") + row)
            count += 1
    except Exception:
        if count:
            write("]\n")
        raise
    write("]\n" if count else "[]\n")
    return count


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """A table of aligned columns; on a narrow terminal the last column is cut, never the others.

    Args:
        header: a name for each column.
        rows: cells.
        right: columns that are aligned to the right.
    """
    table = [header, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(_cells, column)) for column in zip(*table, strict=True)]
    if sys.stdout.isatty():
        room = _terminal_columns() - sum(widths[:-1]) - _GAP * len(widths[:-1])
        widths[-1] = min(widths[-1], max(room, len(header[-1])))
    gap = " " * _GAP
    lines = (
        gap.join(
            _aligned(cell, width, to_right=name in right)
            for cell, width, name in zip(row, widths, header, strict=True)
        )
        for row in table
    )
    write("".join(f"{line.rstrip()}\n" for line in lines))


def size_of(count: int | None) -> str:
    """Bytes for people, in powers of 1000: `1.2 MB`."""
    if count is None:
        return ""
    value = float(count)
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{count} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def duration_of(milliseconds: int | None) -> str:
    """A duration for people: `0.31 s`, `4 min 12 s`."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    # 59.995 and more would be rounded to a minute's worth of seconds.
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def short_digest(digest: str | None) -> str:
    """A digest in a table: its algorithm and twelve digits; that of no schema is a text."""
    return "(text)" if digest is None else digest[:_DIGEST_CHARS]


def counted(count: int, noun: str) -> str:
    """A number of things for people: `1 artifact`, `2,000 artifacts`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Text for a line of a terminal, whose cursor and colours no control character may move."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def on_terminal(text: str) -> str:
    """The same for many lines, whose breaks and tabs stay."""
    return "".join(c if c in "\n\t" else printable(c) for c in text)


def _aligned(cell: str, width: int, *, to_right: bool) -> str:
    """A cell of so many terminal columns; characters of East Asia take two."""
    room = width - _cells(cell)
    if room < 0:
        from rich.cells import set_cell_size  # noqa: PLC0415  few lists are cut

        return set_cell_size(cell, width - 1) + "…"
    return " " * room + cell if to_right else cell + " " * room


def _terminal_columns() -> int:
    import shutil  # noqa: PLC0415  not where a program reads

    return shutil.get_terminal_size().columns


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  most lists need none of it

    return cell_len(text)


@contextmanager
def _writing(what: str) -> Generator[None]:
    """Say which output failed.

    Raises:
        UnavailableError: anything but a reader that has gone, which ends a program quietly.
    """
    from tooltrail.records.errors import UnavailableError  # noqa: PLC0415  a message needs none of it

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
        import click  # noqa: PLC0415  50 ms that `exec` does not have

        raise click.UsageError(f"unknown field {', '.join(unknown)}; there are {', '.join(names)}")
    return chosen


def _json(row: Record) -> str:
    return json.dumps(row, ensure_ascii=False, default=_plain)


def _csv(rows: Sequence[Record], header: Sequence[str]) -> str:
    import csv  # noqa: PLC0415  few lists are printed so

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=header, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell_value(value) for name, value in row.items()})
    return buffer.getvalue()


def _cell_value(value: object) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return value if value is None or isinstance(value, str | int | float) else _plain(value)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
