"""`tooltrail db`: the schema of a store, for operators."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import counted, print_records, say, write
from tooltrail.migrations import HEAD_REVISION


@click.group("db")
def command() -> None:
    """The schema of the store: which revision, bring it to head, check it."""


@command.command()
@store_options
@json_option
def current(location: Location, as_json: bool) -> int:
    """Print the revision of the store and that of this program."""
    from tooltrail.store import store_revision

    revision = store_revision(location.database)
    if as_json:
        print_records([{"revision": revision, "head": HEAD_REVISION}], "json")
    else:
        write(f"{revision}{' (head)' if revision == HEAD_REVISION else ''}\n")
    if revision == HEAD_REVISION:
        return ExitCode.OK
    say(f"this program needs revision {HEAD_REVISION}")
    return ExitCode.UNAVAILABLE


@command.command()
@store_options
def upgrade(location: Location) -> None:
    """Bring the store to this program's revision, in one transaction."""
    from tooltrail.store import upgrade_store

    before, after = upgrade_store(location.database)
    say(f"at {after} already" if before == after else f"upgraded from {before} to {after}")


@command.command()
@store_options
@json_option
def check(location: Location, as_json: bool) -> int:
    """Check the database itself: pages, references, tables, append-only triggers."""
    from tooltrail.store import check_database

    with location.open() as store:
        problems = check_database(store.database)
    if as_json:
        print_records([{"problem": problem} for problem in problems], "json")
    else:
        write("".join(f"{problem}\n" for problem in problems))
    say(f"{counted(len(problems), 'problem')} found" if problems else "no problem found")
    return ExitCode.DAMAGED if problems else ExitCode.OK
