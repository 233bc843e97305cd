"""`tooltrail gc`: delete stored objects that no record refers to."""

from datetime import timedelta

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array
from tooltrail.cli._times import DURATION


@click.command("gc")
@store_options
@click.option(
    "--grace",
    type=DURATION,
    default="24h",
    show_default=True,
    help="Keep objects that are younger than this: 30s, 15m, 24h, 7d.",
)
@click.option(
    "--yes", is_flag=True, help="Delete. Without --yes, only print what would be deleted."
)
@json_option
def command(location: Location, grace: timedelta, yes: bool, as_json: bool) -> None:
    """Delete stored objects that no record refers to, such as leftovers of a crash.

    Without --yes, this is a dry run. The command is safe while other programs record and read, on
    any machine and with any grace period. Other programs can still record into their journals.
    Nothing is ingested until the objects are deleted. Objects that a record refers to, damaged
    objects that were set apart, and files of other programs are never deleted. An artifact root
    that is marked as the root of another store is refused.

    With --yes, the words of erased texts are removed from the index of `tooltrail search`, too.

    A run that deleted objects appends a maintenance fact to the journal, even if the run fails.
    The fact contains the number of deleted objects and bytes.
    """
    from tooltrail.cli._indexing import forget_with_bar
    from tooltrail.cli._pruning import (
        plan_with_bar,
        print_plan,
        prune_with_bar,
        record_of,
        say_outcome,
    )

    with location.open() as store:
        plan = plan_with_bar(store, grace)
        report = prune_with_bar(store, plan) if yes and plan.total.count else None
        if yes:
            forget_with_bar(store)
    if as_json:
        print_array([record_of(plan, report, dry_run=not yes)])
    else:
        print_plan(plan)
    say_outcome(plan, report, dry_run=not yes)
