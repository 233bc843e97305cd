"""`tooltrail artifact relocate`: move a store's artifacts to another root."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_records


@click.command("relocate")
@store_options
@click.option("--delete-old", is_flag=True, help="Delete at the old root what has arrived.")
@click.option(
    "--allow-damage", is_flag=True, help="Move although artifacts are damaged or missing."
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
    """Copy the artifacts to NEW_ROOT, verify them there, and use them there.

    NEW_ROOT is a folder or a URL, and belongs to this store alone. The store remembers it once
    every artifact was read back from it, in one transaction. When artifacts are damaged or missing
    nothing is changed, unless --allow-damage is given. After an interruption the same command goes
    on: what has arrived is read, not copied again.

    Programs that record meanwhile, or that have the store open, go on at the new root with their
    next record. Programs that only read are to be started again before the old objects are
    deleted, with which the mark of the old root goes, `store-ID`. The old root can still be named
    with --artifacts, from where a later relocate --delete-old deletes what has arrived.
    """
    from tooltrail.cli._relocating import (
        code_of,
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
        print_records([record_of(report)], "json")
    else:
        print_problems(report)
    say_outcome(report)
    return code_of(report)
