"""`tooltrail retries`: list calls that were made again with the same arguments."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

from tooltrail.cli._filters import filter_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import count_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing, Members, Record, say
from tooltrail.cli._tables import Columns, print_list
from tooltrail.cli._times import shown_in_list
from tooltrail.records.ids import short_id

if TYPE_CHECKING:
    from tooltrail.store import InvocationFilter, Retried

_RUNS: Final = 4
"""Most outcomes in a row of the table; the last ones are shown."""


@click.command("retries")
@store_options
@filter_options
@count_option
@output_options
@time_option
def command(*, location: Location, where: InvocationFilter, count: int, output: Listing) -> None:
    """List calls that were made again in a session, with the same tool and arguments.

    OUTCOMES says how the attempts ended, in their order: `exit 1 x3 → ok`. CHANGED says whether not
    all of them ended in the same way. Arguments are compared byte for byte. Only
    calls that match the filters count as attempts.
    """
    with location.open() as store:
        found = store.reader.retries(where, limit=count + 1 if count else None)
    listed = found[: count or None]
    spare = ("TIMES", "LAST", "TOOL")
    print_list(listed, output, _MEMBERS, _COLUMNS, right=("TIMES",), spare=spare)
    if len(listed) < len(found):
        say(f"{count:,} listed; -n 0 for all")


def _runs(one: Retried) -> str:
    counts = [(outcome, len([*same])) for outcome, same in groupby(one.outcomes)]
    runs = [f"{outcome} x{count}" if count > 1 else outcome for outcome, count in counts]
    return " → ".join([*(["…"] if len(runs) > _RUNS else []), *runs[-_RUNS:]])


def _attempts(one: Retried) -> list[Record]:
    names = ("id", "seq", "started_at", "duration_ms", "outcome")
    return [{name: getattr(view, name) for name in names} for view in one.attempts]


_COLUMNS: Final[Columns] = {
    "SESSION": lambda one: short_id(one.attempts[-1].session_id),
    "LAST": lambda one: shown_in_list(one.attempts[-1].started_at),
    "TOOL": lambda one: one.attempts[-1].tool_name,
    "TIMES": lambda one: f"{len(one.attempts):,}",
    "CHANGED": lambda one: "yes" if one.is_changed else "no",
    "OUTCOMES": _runs,
    "CALL": lambda one: one.attempts[-1].arguments_preview,
}

_MEMBERS: Final[Members] = {
    "session_id": lambda one: one.attempts[0].session_id,
    "tool_name": lambda one: one.attempts[0].tool_name,
    "arguments_preview": lambda one: one.attempts[0].arguments_preview,
    "attempt_count": lambda one: len(one.attempts),
    "is_changed": lambda one: one.is_changed,
    "attempts": _attempts,
}
