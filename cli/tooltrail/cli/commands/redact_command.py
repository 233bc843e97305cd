"""`tooltrail redact`: search a store for credentials."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import counted, print_array, printable, say, write


@click.command("redact")
@store_options
@click.option("--scan", is_flag=True, required=True, help="Search, and change nothing.")
@json_option
def command(*, location: Location, scan: bool, as_json: bool) -> int:
    """Search everything that a store holds for credentials, and print one line per finding.

    Names, arguments, outputs, results, receipts, messages, environments of sessions and artifacts
    are searched with the rules that replace credentials when something is recorded: those of
    well-known formats, and those of the file that $TOOLTRAIL_REDACTION names. A line says where a
    secret is, and never shows it.

    Exits with 1 if there is a secret, and with 4 if something could not be read.
    """
    del scan  # what a store holds is evidence; nothing is replaced later
    from tooltrail.cli._long_commands import progress_bar
    from tooltrail.cli._redaction import used_rules
    from tooltrail.cli._scanning import Scan

    with location.open() as store:
        totals = {
            "call": sum(store.reader.counts().invocations.values()),
            "message": store.reader.count_messages(),
        }
        with progress_bar("searching", sum(totals.values())) as update:
            search = Scan(store.reader, used_rules(), lambda done: update(done, 0))
            found = list(search.secrets())
    if as_json:
        print_array([one.as_dict() for one in found])
    else:
        for one in found:
            place = f"{one.kind} {one.id} of session {one.session}: {one.field}"
            write(f"{printable(place)}: {counted(one.count, one.rule)} at byte {one.offset:,}\n")
    counts = search.counts
    say(
        f"searched {counted(counts['call'], 'call')} and {counted(counts['message'], 'message')}:"
        f" {counted(sum(one.count for one in found), 'secret')};"
        f" {counts['replaced']:,} in calls were replaced before they were stored"
    )
    unread = [*search.unread]
    for kind, total in totals.items():
        if lost := max(0, total - counts[kind]):
            unread.append(f"{counted(lost, kind)} of sessions whose rows are lost or damaged")
    for reason in unread:
        say(f"not searched: {printable(reason)}")
    return ExitCode.of_damage(is_damaged=bool(found), is_incomplete=bool(unread))
