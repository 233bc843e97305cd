"""The work of `tooltrail db`: checks and backups, each with a progress bar."""

from collections.abc import Iterator
from contextlib import closing

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._interruption import interruptible_between_steps
from tooltrail.cli._location import Location
from tooltrail.cli._output import counted, print_array, printable, say, size_of, write
from tooltrail.cli._progress import progress_bar
from tooltrail.store import (
    Backup,
    back_up_store,
    iter_problems,
    open_existing,
    parse_target,
)

_ALL = 100
"""Of a hundred: what a bar shows where the whole is known only when the work is under way."""


def check_with_bar(location: Location, *, as_json: bool) -> ExitCode:
    """Print every problem when it is found."""
    count = 0

    def counting(problems: Iterator[str]) -> Iterator[str]:
        nonlocal count
        for problem in problems:
            count += 1
            yield problem

    with (
        closing(open_existing(parse_target(location.database))) as database,
        progress_bar("checking", _ALL) as update,
    ):
        found = counting(
            iter_problems(database, lambda done, of: update(done * _ALL // of, 0)),
        )
        if as_json:
            print_array({"problem": problem} for problem in found)
        else:
            for problem in found:
                write(f"{printable(problem)}\n")
    say(f"{counted(count, 'problem')} found" if count else "no problem found")
    return ExitCode.DAMAGED if count else ExitCode.OK


def back_up_with_bar(location: Location, path: str) -> Backup:
    """Copy the database; Ctrl-C leaves nothing."""
    with interruptible_between_steps() as check, progress_bar("copying", _ALL) as update:

        def tell(done: int, of: int) -> None:
            update(done * _ALL // max(of, 1), done)
            check()

        return back_up_store(
            location.database, path, artifacts=location.artifacts, on_progress=tell
        )


def say_backup(backup: Backup) -> None:
    """What was made, and what is not in it."""
    say(f"{backup.path}: {size_of(backup.size)}, the whole database at revision {backup.revision}")
    say(
        f"the artifacts are not in it; they are in {backup.artifacts}, "
        "and --artifacts leads there from a store that is opened elsewhere"
    )
