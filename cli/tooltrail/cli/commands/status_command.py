"""`tooltrail status`: where the store is, what it holds, and what needs attention."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options, time_option
from tooltrail.cli._output import print_array, printable, say, write


@click.command("status")
@store_options
@click.option(
    "--bodies", is_flag=True, help="Also count the bodies in the database, which reads them all."
)
@json_option
@time_option
def command(location: Location, bodies: bool, as_json: bool) -> int:
    """Print where the store is, what it holds, and what needs attention.

    Exits with 4 if a recorded fact could not be applied, or if damage keeps newer facts from the
    database.
    """
    from tooltrail.cli._status import is_complete, lines_of, status_of, warnings_of
    from tooltrail.records.errors import DamageError

    with location.open() as store:
        status = status_of(store, with_bodies=bodies)
        is_damaged = isinstance(store.lag, DamageError)
        store.lag = None  # `warnings_of` reports the lag instead
    if as_json:
        print_array([status])
    else:
        write("".join(f"{printable(line)}\n" for line in lines_of(status)))
    for warning in warnings_of(status):
        say(f"warning: {printable(warning)}")
    return ExitCode.INCOMPLETE if is_damaged or not is_complete(status) else ExitCode.OK
