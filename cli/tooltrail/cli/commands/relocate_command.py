"""`tooltrail artifact relocate`: move a store's artifacts to another root."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import amount_of, interruptible, progress_bar, with_amounts
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, printable, say, write

if TYPE_CHECKING:
    from tooltrail.store import RelocationReport, Store


@click.command("relocate")
@store_options
@click.option("--delete-old", is_flag=True, help="Delete the copied objects at the old root.")
@click.option(
    "--allow-damage", is_flag=True, help="Relocate even if artifacts are damaged or missing."
)
@json_option
@click.argument("new_root")
def relocate(
    *,
    location: Location,
    delete_old: bool,
    allow_damage: bool,
    as_json: bool,
    new_root: str,
) -> ExitCode:
    """Copy the artifacts to NEW_ROOT, verify the copies, and make NEW_ROOT the artifact root.

    NEW_ROOT is a folder or a URL that no other store uses. Every copied artifact is read back.
    Then the store switches to NEW_ROOT in one transaction. If artifacts are damaged or missing,
    nothing changes unless --allow-damage is given. After an interruption, run the same command
    again: copied objects are read, not copied again.

    Other programs can still record into their journals. Nothing is ingested until the store has
    switched. Open stores find NEW_ROOT when they next read or ingest. --delete-old also deletes
    the mark of the old root, `store-ID`. To delete the old objects later, pass the old root as
    --artifacts with --delete-old.
    """
    if not new_root:
        raise click.UsageError("NEW_ROOT is empty; name a folder or a URL")
    with location.open() as store:
        report = _relocate(store, new_root, allow_damage=allow_damage, delete_old=delete_old)
    if as_json:
        print_array([with_amounts({one.name: getattr(report, one.name) for one in fields(report)})])
    else:
        for state in ("damaged", "missing"):
            for path in getattr(report, state):
                write(f"{state:10} {printable(path)}\n")
    _say_outcome(report)
    return ExitCode.of_damage(is_damaged=report.damaged, is_incomplete=report.missing)


def _relocate(
    store: Store, new_root: str, *, allow_damage: bool, delete_old: bool
) -> RelocationReport:
    """Relocate the artifacts with a progress bar; if interrupted, print the current root."""
    from tooltrail.store import relocate as relocate_store

    total = store.reader.counts().artifact_count
    try:
        with interruptible(), progress_bar("copying", total, may_wait=True) as update:
            return relocate_store(
                store,
                new_root,
                allow_damage=allow_damage,
                delete_old=delete_old,
                on_progress=update,
            )
    except KeyboardInterrupt:
        say(f"interrupted; the artifacts are in {store.archive.sink.url}")
        raise


def _say_outcome(report: RelocationReport) -> None:
    """Print what was copied, and where the artifacts are now, on stderr."""
    say(
        f"copied and verified {amount_of(report.copied)}; {amount_of(report.sound)} were there "
        f"already and are intact; {len(report.damaged):,} damaged, {len(report.missing):,} missing"
    )
    if not report.switched:
        say(
            f"not relocated: the artifacts stay in {report.root_before}; "
            "pass --allow-damage to relocate anyway"
        )
        return
    say(f"the artifacts are in {report.root_after}")
    if report.deleted.count:
        say(f"deleted {amount_of(report.deleted)} in {report.root_before}")
