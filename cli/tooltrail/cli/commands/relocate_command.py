"""`tooltrail artifact relocate`: move a store's artifacts to another root."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array


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
    from tooltrail.cli._relocating import (
        print_problems,
        record_of,
        relocate_with_bar,
        say_outcome,
    )

    if not new_root:
        raise click.UsageError("NEW_ROOT is empty; name a folder or a URL")
    with location.open() as store:
        report = relocate_with_bar(
            store, new_root, allow_damage=allow_damage, delete_old=delete_old
        )
    if as_json:
        print_array([record_of(report)])
    else:
        print_problems(report)
    say_outcome(report)
    return ExitCode.of_damage(is_damaged=report.damaged, is_incomplete=report.missing)
