"""`tooltrail gc`: delete stored objects that no record refers to."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import amount_of, interruptible, progress_bar, with_amounts
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, say, size_of
from tooltrail.cli._tables import print_table
from tooltrail.cli._times import DURATION

if TYPE_CHECKING:
    from tooltrail.store import Amount, PruningPlan, PruningReport, Store


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

    Facts that wait in the journal of this machine are ingested first. If they cannot be ingested,
    the command refuses to run: they may refer to objects.

    Without --yes, this is a dry run. The command is safe while other programs record and read, on
    any machine and with any grace period. Other programs can still record into their journals.
    Nothing is ingested until the objects are deleted. Objects that a record refers to, damaged
    objects that were set apart, and files of other programs are never deleted. An artifact root
    that is marked as the root of another store is refused.

    A run that deleted objects appends a maintenance fact to the journal, even if the run fails.
    The fact contains the number of deleted objects and bytes.
    """
    from tooltrail.store import plan_pruning

    with location.open() as store:
        with progress_bar("checking objects") as update:
            plan = plan_pruning(store, grace, on_progress=update)
        report = _prune(store, plan) if yes and plan.total.count else None
    if as_json:
        print_array([_record(plan, report, dry_run=not yes)])
    else:
        _print_plan(plan)
    if report is not None:
        say(f"pruned {amount_of(report.total)}")
    elif yes or not plan.total.count:
        say("there is nothing to prune")
    else:
        say(f"dry run, nothing was deleted: use --yes to prune {amount_of(plan.total)}")


def _prune(store: Store, plan: PruningPlan) -> PruningReport:
    """Delete the objects of a plan with a progress bar; if interrupted, print what was deleted."""
    from tooltrail.store import Amount, prune

    done = Amount()

    def report(count: int, stored_bytes: int) -> None:
        done.count, done.stored_bytes = count, stored_bytes
        update(count, stored_bytes)
        check()

    try:
        with (
            interruptible(between_steps=True) as check,
            progress_bar("pruning", plan.total.count, may_wait=True) as update,
        ):
            return prune(store, plan, on_progress=report)
    except KeyboardInterrupt:
        say(f"interrupted: {amount_of(done)} pruned so far")
        raise


def _record(plan: PruningPlan, report: PruningReport | None, *, dry_run: bool) -> dict[str, Any]:
    """Plan and report as one record; `report` is None if nothing was deleted."""
    from tooltrail.store import Amount

    return with_amounts(
        {
            "root": plan.root,
            "grace_s": int(plan.grace.total_seconds()),
            "dry_run": dry_run,
            "run_id": report.run_id if report else None,
            **_amounts(plan),
            "pruned": report.total if report else Amount(),
        }
    )


def _print_plan(plan: PruningPlan) -> None:
    """Print the objects of the root, and which of them a run with `--yes` deletes."""
    why = {
        "unreferenced": "prunable: older than --grace",
        "unfinished": "prunable: older than --grace",
        "young": "kept: younger than --grace",
        "referenced": "kept: records refer to them",
        "damaged": "kept: evidence of damage",
        "foreign": "kept: not made by tooltrail",
    }
    rows = [
        (name, f"{amount.count:,}", size_of(amount.stored_bytes), why[name])
        for name, amount in _amounts(plan).items()
    ]
    print_table(("OBJECTS", "COUNT", "STORED", ""), rows, right=("COUNT", "STORED"))


def _amounts(plan: PruningPlan) -> dict[str, Amount]:
    from tooltrail.store.keep.pruning import total_of

    return {
        "unreferenced": total_of(plan.unreferenced),
        "unfinished": total_of(plan.leftovers),
        "young": plan.young,
        "referenced": plan.referenced,
        "damaged": plan.damaged,
        "foreign": plan.foreign,
    }
