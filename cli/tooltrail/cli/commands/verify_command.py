"""`tooltrail verify`: whether what is stored is still what it was."""

from dataclasses import asdict

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, say, write


@click.command("verify")
@store_options
@click.option("--receipts", is_flag=True, help="Compare receipts alone.")
@click.option("--session", metavar="SESSION", help="What belongs to this session alone.")
@json_option
def command(location: Location, receipts: bool, session: str | None, as_json: bool) -> int:
    """Check invocations, messages, receipts and artifacts: a line for each that is not right.

    Records: every invocation has its three surfaces, and they, its input and its state are what
    its entries in the ledger commit to. Messages: so are each one's text, its document, what the
    provider sent, and the tools that it offers. Receipts: each one is what today's renderer gives
    for the stored canonical result and policy; `show ID --rerender` prints the difference.
    Artifacts: each one is read through, as by `artifact verify`. Nothing is written.

    Not checked yet: the ledger's own chain, sessions, and what lists show besides, as the exit
    status. `db check` looks at the database itself.
    """
    from tooltrail.cli._verification import CHECKS, Tally, findings_of

    names = ["receipt"] if receipts else CHECKS
    tally = Tally(names)
    with location.open() as store:
        only = None if session is None else store.reader.session(session).id
        found = tally.counting(
            finding for name in names for finding in findings_of(store, name, only)
        )
        if as_json:
            print_array(map(asdict, found))
        else:
            for finding in found:
                if finding.state != "ok":
                    write(finding.line)
    for summary in tally.summaries():
        say(summary)
    return tally.code
