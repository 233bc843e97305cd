"""`tooltrail db`: show, check, upgrade and back up the database of a store."""

from contextlib import suppress
from pathlib import Path

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import counted, print_array, printable, say, size_of, write
from tooltrail.migrations import HEAD_REVISION
from tooltrail.records.errors import SchemaMismatchError


@click.group("db")
def command() -> None:
    """Show, check, upgrade and back up the database of a store."""


@command.command()
@store_options
@json_option
def current(location: Location, as_json: bool) -> int:
    """Print the schema revision of the store.

    Exits with 5 if this program needs a different revision.
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
    are safe. Afterwards, programs of an earlier version cannot read or ingest. They can still
    record into their journals.
    """
    from tooltrail.cli._long_commands import progress_bar
    from tooltrail.store import upgrade_store

    with progress_bar("upgrading", may_wait=True):
        before, after = upgrade_store(location.database)
    say(f"already at {after}" if before == after else f"upgraded from {before} to {after}")


@command.command()
@store_options
@json_option
def check(location: Location, as_json: bool) -> int:
    """Check the schema and the pages of the database, and print one line per problem.

    The schema must match its revision, and the row that identifies the store must exist. On
    SQLite, all pages are read, and the definition of every table, index, trigger and view is
    compared. On PostgreSQL, the names of tables, columns, indexes, triggers and views are
    compared, and no trigger may be disabled. All blocks of the index of words are read. Damage
    that prevents one check is reported as a problem, and the other checks still run. `verify`
    checks the records, and compares each journal with its ledger.

    Changes nothing. Exits with 1 if there is a problem, with 5 if the store needs an upgrade.
    """
    from contextlib import closing

    from tooltrail.cli._long_commands import share_bar
    from tooltrail.store import iter_problems, open_existing, parse_target

    with (
        closing(open_existing(parse_target(location.database))) as database,
        share_bar("checking") as update,
    ):
        count = 0
        found = iter_problems(database, update)
        if as_json:
            count = print_array({"problem": problem} for problem in found)
        else:
            for problem in found:
                write(f"{printable(problem)}\n")
                count += 1
    say(f"{counted(count, 'problem')} found" if count else "no problem found")
    return ExitCode.DAMAGED if count else ExitCode.OK


@command.command()
@store_options
@json_option
@click.argument("target")
def backup(location: Location, as_json: bool, target: str) -> int:
    """Copy the database of an SQLite store to the file TARGET.

    Programs can record during the copy, which is a consistent snapshot. TARGET appears only when
    the copy is complete and synced to the disk. Only you can read the file. An existing file is
    never overwritten. To open the copy as a store, pass --artifacts.

    Facts that wait in the journal are ingested first. If that fails, the copy lacks these facts,
    and the exit code is 4. The copy does not contain the artifacts, nor output that waits in the
    spool. Copy the artifacts after the database, so that every artifact that the copy refers to
    exists. The database can have any schema revision.

    Pages are copied as they are, damaged ones too. Run `db check --db TARGET` before you rely on
    the copy.

    For a store on a PostgreSQL server, use pg_dump.
    """
    from tooltrail.cli._long_commands import interruptible, share_bar
    from tooltrail.store import back_up_store
    from tooltrail.store.engines.targets import SqliteTarget, parse_target

    if not target:
        raise click.UsageError("TARGET is empty; name a file")
    lag = None
    is_file = isinstance(parse_target(location.database), SqliteTarget)
    if is_file and not Path(target).exists():  # else the backup is refused
        # Another revision is copied as it is.
        with suppress(SchemaMismatchError), location.open() as store:
            _ = store.reader  # ingests what waits
            lag = store.lag
    with interruptible(between_steps=True) as check, share_bar("copying") as update:

        def report(done: int, of: int) -> None:
            update(done, of)
            check()

        made = back_up_store(
            location.database, target, artifacts=location.artifacts, on_progress=report
        )
    if as_json:
        print_array([made.as_dict()])
    say(f"{made.path}: {size_of(made.size)}, the complete database at revision {made.revision}")
    say(
        f"the copy does not contain the artifacts, which are in {made.artifacts}; "
        "pass --artifacts to open the copy as a store"
    )
    return ExitCode.OK if lag is None else ExitCode.INCOMPLETE


@command.command()
@store_options
@click.option("--off", "change", flag_value="off", help="Remove the index.")
@click.option(
    "--rebuild", "change", flag_value="rebuild", help="Remove the index, and make it again."
)
@json_option
def index(location: Location, change: str | None, as_json: bool) -> None:
    """Print the size and the coverage of the index of words, which `search` uses.

    A new store has an index, which is filled while facts are ingested. It is derived from the
    records, and can be removed and rebuilt at any time. `db check` finds damage in it. Without an
    index, `search --literal` and `search --regex` still work.
    """
    from tooltrail.cli._indexing import index_line, index_record, rebuild_with_bar, switch_off

    changes = {"off": switch_off, "rebuild": rebuild_with_bar}
    with location.open() as store:
        _ = store.reader  # ingests what waits
        if change is not None:
            changes[change](store)
        record = index_record(store)
    if as_json:
        print_array([record])
    else:
        write(f"index  {index_line(record)}\n")
