"""`tooltrail db`: the database of a store, for operators."""

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_records, say, write
from tooltrail.migrations import HEAD_REVISION


@click.group("db")
def command() -> None:
    """The database of a store: its revision, its soundness, a copy of it."""


@command.command()
@store_options
@json_option
def current(location: Location, as_json: bool) -> int:
    """Print the revision of the store, and whether it is that of this program.

    The exit code is 5 when it is not.
    """
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
    """Bring the store to this program's revision, in one transaction.

    Whenever it is killed, the store is at the one revision or at the other. Several at once do it
    once. Stop programs of an earlier version before, which cannot go on with the store.
    """
    from tooltrail.store import upgrade_store

    before, after = upgrade_store(location.database)
    say(f"at {after} already" if before == after else f"upgraded from {before} to {after}")


@command.command()
@store_options
@click.option("--yes", is_flag=True, help="Do it; without it, only say what would be lost.")
@click.option("--lose-data", is_flag=True, help="Delete what REVISION has no place for.")
@json_option
@click.argument("revision")
def downgrade(
    *, location: Location, yes: bool, lose_data: bool, as_json: bool, revision: str
) -> None:
    """Bring the store back to an earlier REVISION, for an earlier program.

    A dry run unless --yes is given. What REVISION has no place for is named and counted, and
    nothing is changed then unless --lose-data is given, too: it is gone afterwards, evidence or
    not, so make a backup first. In one transaction, as `db upgrade`. Stop all other programs
    before.
    """
    from tooltrail.cli._databases import downgrade_or_plan, downgrade_record, say_downgrade

    found = downgrade_or_plan(location, revision, yes=yes, lose_data=lose_data)
    if as_json:
        print_records([downgrade_record(found, yes=yes)], "json")
    say_downgrade(found, yes=yes)


@command.command()
@store_options
@json_option
def check(location: Location, as_json: bool) -> int:
    """Check the database itself, and print a line for each problem.

    Its schema is what its revision makes: tables, columns, constraints, indexes, and each
    append-only trigger with its rule; nothing is missing, altered or added. The store's own row is
    there. Of SQLite all pages are read, and every reference leads to a row; of PostgreSQL, no
    trigger and no reference is switched off. What lists are found by is compared with the
    invocations. What cannot be read for damage is a problem, and all else is checked still.
    `verify` looks at what is recorded.

    Writes nothing that stays. The exit code is 1 when there is a problem, 5 when the store is not
    at head.
    """
    from tooltrail.cli._databases import check_with_bar

    return check_with_bar(location, as_json=as_json)


@command.command()
@store_options
def index(location: Location) -> None:
    """Make anew what lists with filters are found by.

    Lists make it themselves, little by little, where they had to pass by many invocations without
    it. This does it for all at once, after an upgrade or an import of very many for instance, and
    after `db check` has found it wrong. What was known is thrown away before; none of it is
    evidence, and lists are the same without it, only slower. It can be killed at any time.
    """
    from tooltrail.cli._databases import index_with_bar

    index_with_bar(location)


@command.command()
@store_options
@json_option
@click.argument("target")
def backup(location: Location, as_json: bool, target: str) -> None:
    """Copy the database of an SQLite store to the file TARGET while others go on recording.

    The copy is of one moment, complete, on the disk, and readable for you alone when it gets its
    name; what is there already is never overwritten. It opens as the store, with --artifacts. The
    artifacts and what waits in the spool are not in it: copy the artifacts after it, so that they
    are at least all that it refers to. The store may be of another revision than this program's.

    A store on a PostgreSQL server is backed up with pg_dump.
    """
    from tooltrail.cli._databases import back_up_with_bar, say_backup

    if not target:
        raise click.UsageError("TARGET is empty; name a file")
    made = back_up_with_bar(location, target)
    if as_json:
        from dataclasses import asdict

        print_records([asdict(made)], "json")
    say_backup(made)
