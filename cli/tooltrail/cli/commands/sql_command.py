"""`tooltrail sql`: run a query over the views and tables of a store."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain, count, islice
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import output_options, store_options
from tooltrail.cli._output import Listing, printable, say
from tooltrail.cli._tables import print_list, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_ROWS = 1_000
"""Most rows of a table, whose columns must be measured before the first row is printed."""


@click.command("sql")
@store_options
@output_options
@click.argument("query", required=False)
def command(*, location: Location, output: Listing, query: str | None) -> None:
    """Run a query over the views and tables, or list the views.

    QUERY is one SELECT. It can read, and nothing else: tooltrail sql "SELECT tool_name, count(*)
    FROM v_invocations GROUP BY 1". In the views, ids and times are text. docs/tables.md describes
    the tables. Bytes are printed as hexadecimal digits.

    A table has at most 1,000 rows, and 1,000 characters in a cell. --json, --ndjson and --csv
    print everything, each row as it arrives.
    """
    with location.open() as store:
        if query is None:
            views = store.reader.view_columns()
            members = {"view": itemgetter(0), "column": itemgetter(1)}
            print_list(views, output, members, {"VIEW": itemgetter(0), "COLUMN": itemgetter(1)})
            return
        with store.reader.query(query) as (names, rows):
            _print(_distinct(list(map(printable, names))), rows, output)


def _print(names: Sequence[str], rows: Iterator[Sequence[Any]], output: Listing) -> None:
    records = (tuple(map(_plain, row)) for row in rows)
    if output.print_records(records, {name: itemgetter(n) for n, name in enumerate(names)}):
        return
    cells = (["" if value is None else str(value) for value in row] for row in records)
    print_table(names, islice(cells, _MOST_ROWS))
    if next(records, None) is not None:
        say(f"only the first {_MOST_ROWS:,} rows; --csv, --json or --ndjson for all")


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns; a name that stands there again gets a number: `count_2`."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2))
        found.append(next(one for one in chain([name], numbered) if one not in found))
    return found


def _plain(value: Any) -> Any:
    """A value as JSON can hold it, if JSON has the type; `Listing` makes texts of the others."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal) and isfinite(value):
        return int(value) if value == int(value) else float(value)
    return str(value) if isinstance(value, float) and not isfinite(value) else value
