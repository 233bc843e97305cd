"""Tables, which fit the terminal, and colours."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tooltrail.cli._output import Listing, Members, counted, printable, say, terminal_columns, write
from tooltrail.cli._pager import page_output

_GAP = 2
"""Spaces between two columns of a table."""

_LEAST = 8
"""Fewest columns of the terminal for a cell that is cut: the width of a short id."""

_ARTIFACT = "sha256/"
"""Begins the path of an artifact."""

_MOST_CHARS = 1_000
"""Characters of a cell; a name may have millions."""

PLAIN, BOLD, RED, GREEN, YELLOW, CYAN = 0, 1, 31, 32, 33, 36
"""Styles and colours as numbers of ECMA-48."""


Columns = Mapping[str, Callable[[Any], str]]
"""The names of the columns of a table, and a function per column that makes a cell of a value."""

Colours = Mapping[str, Callable[[str], int]]
"""The colour of a cell by its text, for each column that has colours; see `coloured`."""

_NO_COLOURS: Colours = {}


def print_list(
    values: Iterable[Any],
    output: Listing,
    members: Members,
    columns: Columns,
    *,
    right: Sequence[str] = (),
    colours: Colours = _NO_COLOURS,
    spare: Sequence[str] = (),
    least: int = _LEAST,
) -> None:
    """Print values in the requested style, or as a table."""
    if output.print_records(values, members):
        return
    rows = ([cell(one) for cell in columns.values()] for one in values)
    print_table([*columns], rows, right=right, colours=colours, spare=spare, least=least)


def count_damaged(values: Iterable[Any], output: Listing) -> None:
    """Count damaged rows of a table on stderr; a record names its damage itself."""
    damaged = sum(one.damage is not None for one in values)
    if damaged and output.is_table:
        say(f"{counted(damaged, 'row')} with damaged values; `tooltrail verify` names them")


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    colours: Colours = _NO_COLOURS,
    spare: Sequence[str] = (),
    least: int = _LEAST,
) -> None:
    """Print a table of aligned columns. On a narrow terminal, the widest columns are cut.

    Args:
        header: the names of the columns.
        rows: the cells of each row.
        right: the columns that are aligned to the right.
        colours: see `Colours`.
        spare: the columns to leave out, in this order, as long as the table does not fit even if
            each cell is cut to `least` characters.
        least: the characters of a cell for which spare columns make room.
    """
    cells = (
        [printable(cell[:_MOST_CHARS] + "…" * (len(cell) > _MOST_CHARS)) for cell in row]
        for row in rows
    )
    columns = dict(zip(header, zip(header, *cells, strict=True), strict=True))
    widths = {name: max(map(_cells, column)) for name, column in columns.items()}
    if sys.stdout.isatty():
        room = terminal_columns() + _GAP
        for name in spare:
            if sum(min(width, least) + _GAP for width in widths.values()) > room:
                widths.pop(name, None)
        _fit(widths, room - _GAP * len(widths))
        page_output()
    printed: list[list[str]] = []
    for name, width in widths.items():
        aligned = [_aligned(cell, width, to_right=name in right) for cell in columns[name]]
        if name in colours:
            styles = map(colours[name], columns[name][1:])
            aligned[1:] = map(coloured, aligned[1:], styles)
        printed.append(aligned)
    lines = map((" " * _GAP).join, zip(*printed, strict=True))
    write("".join(f"{line.rstrip()}\n" for line in lines))


def _fit(widths: dict[str, int], room: int) -> None:
    """Make the widest columns narrower until all fit into the room, or have `_LEAST` columns."""
    while sum(widths.values()) > room and max(widths.values()) > _LEAST:
        widths[max(widths, key=widths.__getitem__)] -= 1


def coloured(text: str, colour: int) -> str:
    """The text in a colour, on a terminal that shows colours (https://no-color.org)."""
    is_plain = colour == PLAIN or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not sys.stdout.isatty():
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def colour_of_outcome(outcome: str) -> int:
    """Green for a call that succeeded, red for one that failed, yellow for one without an end."""
    return {"ok": GREEN, "running": YELLOW, "unfinished": YELLOW}.get(outcome, RED)


def _aligned(cell: str, width: int, *, to_right: bool) -> str:
    """Pad or cut a cell to `width` terminal columns. East Asian characters are two columns wide.

    A path is cut at its beginning, since its end tells more. The path of an artifact is cut at its
    end: the beginning of the digest is a name of the artifact.
    """
    room = width - _cells(cell)
    if room >= 0:
        return " " * room + cell if to_right else cell + " " * room
    from rich.cells import set_cell_size  # noqa: PLC0415  few cells are cut

    if "/" in cell and " " not in cell and not cell.startswith(_ARTIFACT):
        return "…" + set_cell_size(cell[::-1], width - 1)[::-1]
    return set_cell_size(cell, width - 1) + "…"


def _cells(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  only for text beyond ASCII

    return cell_len(text)
