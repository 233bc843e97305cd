"""`tooltrail gc`: delete stored objects that no record refers to."""

from datetime import timedelta

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_records
from tooltrail.cli._times import Duration


@click.command("gc")
@store_options
@click.option(
    "--grace",
    type=Duration(),
    default="24h",
    show_default=True,
    help="Leave alone what is younger: 30s, 15m, 24h, 7d.",
)
@click.option("--yes", is_flag=True, help="Delete; without it, only say what would be deleted.")
@json_option
def command(location: Location, grace: timedelta, yes: bool, as_json: bool) -> None:
    """Delete stored objects that no record refers to, as crashes leave them.

    A dry run unless --yes is given. Safe beside running writers and readers, on any machine, with
    any grace period. Never deleted: what a record refers to, what was kept aside as damaged, and
    files that tooltrail has not made. An artifact root belongs to one store: one that is
    marked as that of another is refused.

    A run with --yes that finds something to delete is on record in the table maintenance_runs, also
    when it fails or is interrupted.
    """
    from tooltrail.cli._pruning import (
        plan_with_bar,
        print_plan,
        prune_with_bar,
        record_of,
        say_outcome,
    )
    from tooltrail.store import refuse_read_only

    with location.open() as store:
        if yes:
            refuse_read_only(store)
        plan = plan_with_bar(store, grace)
        report = prune_with_bar(store, plan) if yes and plan.total.count else None
    if as_json:
        print_records([record_of(plan, report, dry_run=not yes)], "json")
    else:
        print_plan(plan)
    say_outcome(plan, report, dry_run=not yes)
