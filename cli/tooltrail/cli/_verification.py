"""How `tooltrail verify` sums up."""

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.store.verify import Totals


def summary_of(totals: Totals) -> str:
    """One sentence: what was compared, and what was found."""
    checked = ", ".join(f"{count:,} {what}" for what, count in totals.checked.items() if count)
    found = f"{totals.damage_count:,} damaged, {totals.incomplete_count:,} incomplete"
    return f"compared {checked or 'nothing'}: {found}"


def code_of(totals: Totals) -> ExitCode:
    """The exit code: damage counts more than what is incomplete."""
    if totals.damage_count:
        return ExitCode.DAMAGED
    return ExitCode.INCOMPLETE if totals.incomplete_count else ExitCode.OK
