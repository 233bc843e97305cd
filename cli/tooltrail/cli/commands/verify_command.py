"""`tooltrail verify`: compare every record with the ledger."""

from contextlib import suppress

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, printable, say, write


@click.command("verify")
@store_options
@click.option("--receipts", is_flag=True, help="Also recompute every result and receipt.")
@click.option("--no-artifacts", "is_quick", is_flag=True, help="Do not read the artifacts.")
@json_option
def command(location: Location, receipts: bool, is_quick: bool, as_json: bool) -> int:
    """Compare every record with the ledger, and print one line per problem.

    The hash chain of each journal is recomputed. Every column and text of every invocation,
    message and session is compared with its fact. Every body and artifact is compared with its
    digest. A removed invocation, message, session or end of a journal is detected. With
    --receipts, results and receipts that the ingester made are recomputed and compared. Changes
    nothing.

    Exits with 1 if a record was altered, removed or added, and with 4 if something is incomplete:
    an invocation that has not ended, a fact that could not be applied, or facts that could not be
    ingested and were not compared.
    """
    from tooltrail.cli._long_commands import share_bar
    from tooltrail.records import DamageError
    from tooltrail.store.verify import Totals, verify

    totals = Totals()
    with location.open() as store, share_bar("checking") as update:
        _ = store.reader  # ingests facts that wait
        archive = None
        with suppress(DamageError):  # the row of the store is damaged, which is a finding
            archive = store.archive
        found = verify(
            store.database,
            archive,
            families=store.families if receipts else None,
            with_artifacts=not is_quick,
            totals=totals,
            on_progress=update,
        )
        if as_json:
            print_array([one.as_dict() for one in found])
        else:
            for one in found:
                write(f"{one.kind:10} {printable(one.message)}\n")
    checked = ", ".join(_number(count, what) for what, count in totals.checked.items() if count)
    damaged, incomplete = totals.damage_count, totals.incomplete_count
    say(f"compared {checked or 'nothing'}: {damaged:,} damaged, {incomplete:,} incomplete")
    is_incomplete = incomplete > 0 or store.lag is not None
    return ExitCode.of_damage(is_damaged=damaged > 0, is_incomplete=is_incomplete)


def _number(count: int, plural: str) -> str:
    """A number with its noun: `1 ledger entry`, `2 ledger entries`."""
    singular = plural.removesuffix("s").removesuffix("ie") + "y" * plural.endswith("ies")
    return f"{count:,} {singular if count == 1 else plural}"
