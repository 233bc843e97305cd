"""The work and the messages of `tooltrail gc`."""

from datetime import timedelta
from typing import Any

from tooltrail.cli._long_commands import amount_of, interruptible, progress_bar
from tooltrail.cli._output import say, size_of
from tooltrail.cli._tables import print_table
from tooltrail.cli._times import lasting
from tooltrail.store import Amount, PruningPlan, PruningReport, Store, plan_pruning, prune
from tooltrail.store.keep.pruning import total_of


def plan_with_bar(store: Store, grace: timedelta) -> PruningPlan:
    """Check every object of the artifact root, with a progress bar."""
    with progress_bar("checking objects") as update:
        return plan_pruning(store, grace, on_progress=update)


def prune_with_bar(store: Store, plan: PruningPlan) -> PruningReport:
    """Delete the objects of a plan with a progress bar; if interrupted, print what was deleted."""
    done = Amount()

    def report(count: int, stored_bytes: int) -> None:
        done.count, done.stored_bytes = count, stored_bytes
        update(count, stored_bytes)
        check()

    try:
        with (
            interruptible(between_steps=True) as check,
            progress_bar("pruning", plan.total.count) as update,
        ):
            return prune(store, plan, on_progress=report)
    except KeyboardInterrupt:
        say(f"interrupted: {amount_of(done)} pruned so far")
        raise


def record_of(plan: PruningPlan, report: PruningReport | None, *, dry_run: bool) -> dict[str, Any]:
    """Plan and report as one record; `report` is None if nothing was deleted."""
    record = {
        "root": plan.root,
        "grace_s": int(plan.grace.total_seconds()),
        "dry_run": dry_run,
        "run_id": report.run_id if report else None,
    }
    amounts = _amounts(plan) | {"pruned": report.total if report else Amount()}
    for name, amount in amounts.items():
        record |= {f"{name}_count": amount.count, f"{name}_bytes": amount.stored_bytes}
    return record


def print_plan(plan: PruningPlan) -> None:
    """Print the objects of the root, and which of them a run with `--yes` deletes."""
    age = lasting(plan.grace)
    why = {
        "unreferenced": f"prunable: older than {age}",
        "unfinished": f"prunable: older than {age}",
        "young": f"kept: younger than {age}",
        "referenced": "kept: records refer to them",
        "damaged": "kept: evidence of damage",
        "foreign": "kept: not made by tooltrail",
    }
    rows = [
        (name, f"{amount.count:,}", size_of(amount.stored_bytes), why[name])
        for name, amount in _amounts(plan).items()
    ]
    print_table(("OBJECTS", "COUNT", "STORED", ""), rows, right=("COUNT", "STORED"))


def say_outcome(plan: PruningPlan, report: PruningReport | None, *, dry_run: bool) -> None:
    """Print on stderr what was deleted, or what `--yes` would delete."""
    if report is None:
        work = f"use --yes to prune {amount_of(plan.total)}" if dry_run and plan.total.count else ""
        say(f"dry run, nothing was deleted: {work}" if work else "there is nothing to prune")
        return
    say(f"pruned {amount_of(report.total)}")


def _amounts(plan: PruningPlan) -> dict[str, Amount]:
    return {
        "unreferenced": total_of(plan.unreferenced),
        "unfinished": total_of(plan.leftovers),
        "young": plan.young,
        "referenced": plan.referenced,
        "damaged": plan.damaged,
        "foreign": plan.foreign,
    }
