"""`tooltrail verify`: whether what is stored is still what it was."""

from dataclasses import asdict

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, say, write


@click.command("verify")
@store_options
@click.option("--receipts", is_flag=True, help="Check only receipts.")
@click.option("--session", metavar="SESSION", help="Check only this session.")
@json_option
def command(location: Location, receipts: bool, session: str | None, as_json: bool) -> int:
    """Check invocations, messages, receipts and artifacts, and print one line per problem.

    Records: every invocation has its three surfaces. The surfaces, the input and the state match
    the ledger. Messages: text, document, provider bytes and offered tools match the ledger.
    Receipts: today's renderer gives the stored text for the stored canonical result and policy;
    `show ID --rerender` prints a difference. Artifacts: every artifact is read, as `artifact
    verify` does. Changes nothing.

    Not checked yet: the chain of the ledger, sessions, and columns of lists such as the exit
    status. Use `db check` to check the database itself.
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
