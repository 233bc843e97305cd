"""Printing: data on stdout in the style that was asked for, messages on stderr."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO
from uuid import UUID

import click

SCHEMA_VERSION = 1
"""Of the JSON that every command prints; raised when a field changes its meaning."""

_BLOCK = 1 << 20
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")

Record = Mapping[str, Any]


def say(message: str) -> None:
    """A message for people, on stderr."""
    click.echo(message, err=True)


def write(text: str) -> None:
    """Text on stdout; what no encoding can carry is spelled out, which in JSON is an escape."""
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Exact bytes on stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def copy_stream(source: BinaryIO, target: BinaryIO) -> None:
    """Copy exact bytes at constant memory."""
    while block := source.read(_BLOCK):
        target.write(block)
    target.flush()


def print_records(records: Sequence[Record], style: str, fields: str | None) -> None:
    """Print records as `json`, `ndjson` or `csv`.

    Raises:
        click.UsageError: a field that the records do not have.
    """
    rows = [_chosen(record, fields) for record in records]
    if style == "csv":
        write(_csv(rows))
    elif style == "ndjson":
        write("".join(f"{_json(row)}\n" for row in rows))
    else:
        write("[" + ",\n ".join(map(_json, rows)) + "]\n")


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """A table of aligned columns; on a narrow terminal the last column is cut, never the others.

    Args:
        header: a name for each column.
        rows: cells.
        right: columns that are aligned to the right.
    """
    from rich.console import Console  # noqa: PLC0415  only lists need it
    from rich.table import Table  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in header:
        last = name == header[-1]
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=True,
            overflow="ellipsis" if last else "fold",
            min_width=None if last else len(name),
        )
    for row in rows:
        table.add_row(*map(_cell, row))
    console = Console(
        width=None if terminal else 10_000, highlight=False, markup=False, emoji=False
    )
    with console.capture() as captured:
        console.print(table)
    write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


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
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _chosen(record: Record, fields: str | None) -> Record:
    if fields is None:
        return {"schema_version": SCHEMA_VERSION, **record}
    names = [name.strip() for name in fields.split(",")]
    unknown = [name for name in names if name not in record]
    if unknown:
        raise click.UsageError(f"unknown field {', '.join(unknown)}; there are {', '.join(record)}")
    return {name: record[name] for name in names}


def _json(row: Record) -> str:
    return json.dumps(row, ensure_ascii=False, default=_plain)


def _csv(rows: Sequence[Record]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell_value(value) for name, value in row.items()})
    return buffer.getvalue()


def _cell_value(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    return _plain(value) if isinstance(value, datetime | UUID) else _json({"value": value})


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _cell(text: str) -> str:
    # A control character in a cell could move the cursor or hide what follows it.
    return "".join(c if c.isprintable() else "�" for c in text)
