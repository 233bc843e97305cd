"""`tooltrail status`: the store at a glance, for the engineer on call."""

from contextlib import suppress

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options, time_option
from tooltrail.cli._output import print_records, say, write


@click.command("status")
@store_options
@click.option(
    "--bodies", is_flag=True, help="Also count the bodies in the database. This reads all of them."
)
@json_option
@time_option
def command(location: Location, bodies: bool, as_json: bool, utc: bool) -> None:
    """Print where the store is, what it holds, and what needs attention."""
    from tooltrail.cli._status import lines_of, status_of
    from tooltrail.cli._status_warnings import warnings_of
    from tooltrail.records import UnavailableError

    try:
        with location.open(announce=False) as store:
            status = status_of(store, location.other_spools(), with_bodies=bodies)
    except UnavailableError:
        _say_what_waits(location, utc=utc)
        raise
    if as_json:
        print_records([status], "json")
    else:
        write("".join(f"{line}\n" for line in lines_of(status, utc=utc)))
    for warning in warnings_of(status, utc=utc):
        say(f"warning: {warning}")


def _say_what_waits(location: Location, *, utc: bool) -> None:
    """What is known without the store, when it matters most."""
    from tooltrail.cli._status import outbox_members
    from tooltrail.cli._status_warnings import outbox_warnings
    from tooltrail.records import TooltrailError
    from tooltrail.store import find_backlog_of_place

    with suppress(TooltrailError):
        spools = location.other_spools()
        found = find_backlog_of_place(location.database, spool=location.spool, also=spools)
        for warning in outbox_warnings(outbox_members(found), utc=utc):
            say(f"warning: {warning}")
