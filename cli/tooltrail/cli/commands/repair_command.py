"""`tooltrail repair`: ingest all facts that wait, and report what could not be applied."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import counted, print_array, printable, say


@click.command("repair")
@store_options
@json_option
def command(location: Location, as_json: bool) -> int:
    """Ingest all facts that wait in the journal, end the calls of killed programs, and report.

    Every reading command does the same when facts wait, so `repair` is rarely needed.
    The call of a killed program is recorded as interrupted, with the output that the program left
    in the spool. Running calls are not changed. Output that waits for the artifact root is
    stored. The command can be repeated or killed at any time.

    Exits with 4 if facts could not be applied, and with 5 if output still waits for the artifact
    root.
    """
    from tooltrail.journal.segments import JOURNAL_FOLDER
    from tooltrail.store.keep.condition import read_condition

    with location.open() as store:
        done = store.ingest()
        left = read_condition(store)
        if location.spool is not None and not (store.spool / JOURNAL_FOLDER).is_dir():
            say(f"tooltrail: there is no journal in {store.spool}")
    if as_json:
        print_array([done.as_dict()])
    say(
        f"{counted(done.frame_count, 'fact')} ingested,"
        f" {counted(done.recovered_count, 'call')} of killed programs ended as interrupted,"
        f" {counted(done.published_count, 'waiting artifact')} stored"
    )
    if left.rejected_count:
        say(f"{counted(left.rejected_count, 'fact')} could not be applied: see `tooltrail status`")
    if left.damaged_count:
        places = counted(left.damaged_count, "damaged place")
        say(f"{places} in journals: see `tooltrail status`")
    if left.pending_count:
        reason = printable(left.pending[0].reason)
        say(f"{counted(left.pending_count, 'artifact')} waiting for the artifact root: {reason}")
        return ExitCode.UNAVAILABLE
    is_complete = not (left.rejected_count or left.damaged_count)
    return ExitCode.OK if is_complete else ExitCode.INCOMPLETE
