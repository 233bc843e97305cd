"""`tooltrail repair`: what killed programs left in the spool, brought into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import output_options, store_options
from tooltrail.cli._output import print_table, say, size_of

if TYPE_CHECKING:
    from tooltrail.store import RepairedFolder


@click.command("repair")
@store_options
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option(
    "--retry-kept",
    is_flag=True,
    help="Try records of the outbox again that could not be delivered before.",
)
@click.option(
    "--acknowledge",
    is_flag=True,
    help="Warn no more of records that were dropped or could not be delivered so far.",
)
@output_options
def command(
    *,
    location: Location,
    dry_run: bool,
    retry_kept: bool,
    acknowledge: bool,
    style: str | None,
    fields: str | None,
) -> int:
    """Record what killed programs left in the spool, and store what waits for the store.

    The captured output of a killed program is stored up to the last complete frame, and its
    invocation becomes interrupted. Bytes of an incomplete frame are counted. Running invocations
    are not changed, nor are invocations of another machine or another spool. Records that were
    set aside, records in the outbox and waiting output are stored. Only data that is in the store
    is deleted: damaged data moves to the folder `kept` of the spool. The command can be repeated,
    and killed, at any time.
    """
    from tooltrail.cli._repairing import code_of_report, print_report, say_acknowledged, summary_of
    from tooltrail.store import repair

    if sum((dry_run, retry_kept, acknowledge)) > 1:
        raise click.UsageError("--dry-run, --retry-kept and --acknowledge exclude each other")
    with location.open(announce=False) as store:
        also = location.other_spools()
        if acknowledge:
            say_acknowledged(store, also)
        report = repair(store, dry_run=dry_run, also=also, retry_kept=retry_kept)
    if style or fields:
        print_report(report, style or "json", fields)
    elif report.folders:
        header = ("INVOCATION", "OUTCOME", "RECOVERED", "LOST", "REASON")
        print_table(header, map(_row, report.folders), right=("RECOVERED", "LOST"))
    for sentence in summary_of(report, dry_run=dry_run):
        say(sentence)
    return code_of_report(report)


def _row(one: RepairedFolder) -> tuple[str, ...]:
    return (
        str(one.invocation_id),
        one.outcome,
        size_of(one.recovered_bytes)
        if one.outcome in ("interrupted", "stored", "recorded")
        else "",
        size_of(one.lost_bytes) if one.lost_bytes else "",
        one.reason,
    )
