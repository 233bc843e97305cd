"""`tooltrail db`: the database of a store, for operators."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, say, write
from tooltrail.migrations import HEAD_REVISION


@click.group("db")
def command() -> None:
    """Show, check, upgrade and back up the database of a store."""


@command.command()
@store_options
@json_option
def current(location: Location, as_json: bool) -> int:
    """Print the schema revision of the store.

    Exits with 5 if this program needs another revision.
    """
    from tooltrail.store import store_revision

    revision = store_revision(location.database)
    if as_json:
        print_array([{"revision": revision, "head": HEAD_REVISION}])
    else:
        write(f"{revision}{' (head)' if revision == HEAD_REVISION else ''}\n")
    if revision == HEAD_REVISION:
        return ExitCode.OK
    say(f"this program needs revision {HEAD_REVISION}")
    return ExitCode.UNAVAILABLE


@command.command()
@store_options
def upgrade(location: Location) -> None:
    """Upgrade the store to the schema revision of this program.

    The upgrade is one transaction: a killed upgrade changes nothing. Two upgrades at the same time
    are safe. Programs of an earlier version cannot read or ingest afterwards; what they record
    waits in their journals.
    """
    from tooltrail.store import upgrade_store

    before, after = upgrade_store(location.database)
    say(f"at {after} already" if before == after else f"upgraded from {before} to {after}")


@command.command()
@store_options
@json_option
def check(location: Location, as_json: bool) -> int:
    """Check the database itself, and print one line per problem.

    The schema must be the schema of its revision, and the row that identifies the store must
    exist. On SQLite, all pages are read, and the definition of every table, index, trigger and
    view is compared. On PostgreSQL, the names of tables, columns, indexes, triggers and views are
    compared, and no trigger may be disabled. Damage that prevents a check is reported as a
    problem, and the other checks run. Use `verify` to check the records.

    Changes nothing. Exits with 1 if there is a problem, with 5 if the store needs an upgrade.
    """
    from tooltrail.cli._databases import check_with_bar

    return check_with_bar(location, as_json=as_json)


@command.command()
@store_options
@json_option
@click.argument("target")
def backup(location: Location, as_json: bool, target: str) -> None:
    """Copy the database of an SQLite store to the file TARGET, during recording too.

    The copy is a consistent snapshot. The file appears under its name only when the copy is
    complete and on the disk. Only you can read the file. An existing file is never overwritten. To
    open the copy as a store, pass --artifacts.

    The copy has neither the artifacts nor what waits in the journal and the spool. Copy the
    artifacts after the database, so that every artifact that the copy refers to exists. The schema
    revision does not matter.

    For a store on a PostgreSQL server, use pg_dump.
    """
    from tooltrail.cli._databases import back_up_with_bar, say_backup

    if not target:
        raise click.UsageError("TARGET is empty; name a file")
    made = back_up_with_bar(location, target)
    if as_json:
        from dataclasses import asdict

        print_array([asdict(made)])
    say_backup(made)
