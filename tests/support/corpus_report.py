"""Prints the results of the families for the corpus, as the table of `docs/contract.md`."""

import sys
from collections.abc import Iterator

from tests.support.corpus.formats import CORPUS, READERS, recorded_calls
from tests.support.corpus.replay import Replayed, replay

from tooltrail.records import default_families

_COLUMNS = ("format", "calls", "families", "generic", "previews cut", "errors", "bytes seen")


def table() -> Iterator[str]:
    """The lines of the table: one for each format and one for the total."""
    families = default_families()
    yield _row(_COLUMNS)
    yield _row(["---", *["---:"] * (len(_COLUMNS) - 1)])
    total: list[Replayed] = []
    for name in READERS:
        replayed = [replay(call, families) for call in recorded_calls(name)]
        yield _row([f"`{name}`", *_cells(replayed)])
        total += replayed
    yield _row(["all", *_cells(total)])


def _cells(calls: list[Replayed]) -> Iterator[str]:
    names = [each.family.name for each in calls]
    yield f"{len(calls):,}"
    yield str(len(set(names)))
    yield _percent(names.count("generic"), len(calls))
    yield f"{sum(each.cut_previews for each in calls):,}"
    yield f"{sum(each.output.status == 'error' for each in calls):,}"
    shown = sum(len(each.receipt.to_bytes()) for each in calls)
    yield _percent(shown, sum(each.given_bytes for each in calls))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _row(cells: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table; return 3 if there is no corpus."""
    if not CORPUS.is_dir():
        sys.stderr.write(f"no corpus at {CORPUS}\n")
        return 3
    sys.stdout.writelines(f"{line}\n" for line in table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
