"""Texts next to each other, for people who compare them."""

import io
from collections.abc import Mapping, Sequence

MIN_WIDTH = 60
"""Characters below which three columns cannot be read."""

_MAX_LINES = 60
"""Lines of one column; the whole of each surface is one command away."""


def side_by_side(columns: Mapping[str, Sequence[str]], width: int) -> str:
    """A table with one column of folded lines for each text.

    Args:
        columns: title and lines of each text.
        width: characters; at least `MIN_WIDTH` is used.
    """
    from rich.box import SQUARE  # noqa: PLC0415  only this view needs it
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=SQUARE, expand=True)
    for title in columns:
        table.add_column(Text(title), ratio=1, overflow="fold")
    table.add_row(*(Text("\n".join(_bounded(lines))) for lines in columns.values()))
    printed = io.StringIO()
    Console(
        file=printed,
        width=max(width, MIN_WIDTH),
        highlight=False,
        color_system=None,
        emoji=False,
    ).print(table)
    return printed.getvalue()


def _bounded(lines: Sequence[str]) -> list[str]:
    rest = len(lines) - _MAX_LINES
    if rest <= 0:
        return list(lines)
    return [*lines[:_MAX_LINES], f"… {rest:,} further lines"]
