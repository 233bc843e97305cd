"""The work of `tooltrail import`: find files, import them with a progress bar, and report."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from tooltrail.artifacts import FOLLOW_INTERVAL_S
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._failures import code_of, say_error
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import progress_bar
from tooltrail.cli._output import counted, print_array, printable, say
from tooltrail.cli._tables import print_table
from tooltrail.cli._waiting import wait_for_more
from tooltrail.importers import (
    FORMATS,
    Imported,
    Importer,
    find_files,
    session_files,
    usual_folders,
)
from tooltrail.importers.hook_importing import has_events
from tooltrail.records.errors import DiskFullError, NotFoundError, TooltrailError
from tooltrail.redaction import RuleSet

_MOST_DAMAGED = 10
"""Damaged parts of a file that are printed."""

_COLUMNS = ("sessions", "messages", "calls", "results", "new", "known")


def import_with_bar(
    spool: Path,
    paths: Sequence[Path],
    format_name: str | None,
    rules: RuleSet | None,
    *,
    since: datetime | None = None,
    is_dry_run: bool = False,
) -> tuple[list[Imported], TooltrailError | None]:
    """Import files into a spool, with a progress bar on a terminal.

    Without paths, says first what the usual folders hold. Files that have not changed after `since`
    are left out. What cannot be imported is reported, and the other files are still imported.

    Returns:
        What was imported, and the last error.

    Raises:
        NotFoundError: nothing is found.
        click.UsageError: there is no such format.
        TooltrailError: none of the paths can be imported.
    """
    files, failure = _found(paths, format_name, since)
    importer = Importer(spool, rules, is_dry_run=is_dry_run)
    imported: list[Imported] = []
    read = 0
    with progress_bar("importing", len(files)) as update:

        def on_progress(size: int) -> None:
            nonlocal read
            read += size
            update(len(imported), read)

        for path, name in files:
            try:
                imported.append(importer.import_file(path, name, on_progress))
            except TooltrailError as error:
                failure = error
                say_error(error)
                if isinstance(error, DiskFullError):
                    break  # for the other files there is no room either
    return imported, failure


def _found(
    paths: Sequence[Path], format_name: str | None, since: datetime | None
) -> tuple[list[tuple[Path, str | None]], TooltrailError | None]:
    """The files to import with their formats, and the last error, which was reported."""
    found: list[tuple[Path, str | None]] = []
    failures: list[TooltrailError] = []
    for path in _folders(paths, format_name):
        try:
            files = find_files(path, format_name)
            found += [one for one in files if since is None or changed_at(one[0]) >= since]
        except TooltrailError as error:
            failures.append(error)
    if not found and failures:
        raise failures[0]
    if not found and since is None:
        where = f" in {', '.join(map(str, paths))}" if paths else "; name a file or a folder"
        raise NotFoundError(f"no sessions of known agents found{where}")
    for failure in failures:
        say_error(failure)
    if not paths:
        for name, count in Counter(format_of for _, format_of in found if format_of).items():
            say(f"found {counted(count, 'session file')} of {name}")
    return found, failures[-1] if failures else None


def _folders(paths: Sequence[Path], format_name: str | None) -> Sequence[Path]:
    if format_name is not None and format_name not in FORMATS:
        raise click.UsageError(f"no format {format_name}; the formats are {', '.join(FORMATS)}")
    return paths or usual_folders(os.environ, Path.home())


def changed_at(file: Path) -> datetime:
    """When a file changed last.

    Raises:
        OSError: the file is gone.
    """
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def follow(
    location: Location,
    paths: Sequence[Path],
    format_name: str | None,
    rules: RuleSet | None,
) -> Iterator[Imported]:
    """Import each file when it changes, and ingest what was recorded. Never ends.

    The first pass imports everything. Files of other formats are skipped, and a file that cannot be
    imported is reported each time it changes.

    Raises:
        click.UsageError: there is no such format.
    """
    importer = Importer(location.spool_folder, rules)
    seen: dict[Path, tuple[datetime, int]] = {}
    while True:
        has_new = False
        for path in _folders(paths, format_name):
            for file in session_files(path):
                try:
                    state = (changed_at(file), file.stat().st_size)
                    if seen.get(file) == state:
                        continue
                    seen[file] = state
                    imported = importer.import_file(file, format_name)
                except (OSError, NotFoundError):  # it was deleted since, or is no session
                    continue
                except TooltrailError as error:
                    say_error(error)
                    continue
                if imported.counts.get("new"):
                    has_new = True
                    yield imported
        if has_new or has_events(location.spool_folder):
            with location.open(create=True) as store:  # imports hook events
                _ = store.reader  # ingests
        wait_for_more(FOLLOW_INTERVAL_S)


def print_report(
    imported: Sequence[Imported],
    failure: TooltrailError | None,
    *,
    as_json: bool,
    is_dry_run: bool,
) -> int:
    """Print what was imported from each file, and return the exit code."""
    if as_json:
        print_array([_record_of(one) for one in imported])
    else:
        names = [name.upper() for name in _COLUMNS]
        rows = [[one.format, *_numbers(one), str(one.path)] for one in imported]
        print_table(["FORMAT", *names, "FILE"], rows, right=names)
    totals = sum((Counter(one.counts) for one in imported), Counter[str]())
    verb = "would be recorded" if is_dry_run else "recorded"
    say(f"{counted(totals['new'], 'new fact')} {verb}, {totals['known']:,} known already")
    for one in imported:
        _say_problems(one)
    if failure is not None:
        return code_of(failure)
    return ExitCode.INCOMPLETE if any(one.damaged for one in imported) else ExitCode.OK


def _numbers(one: Imported) -> list[str]:
    return [f"{one.counts.get(name, 0):,}" for name in _COLUMNS]


def _say_problems(one: Imported) -> None:
    name = printable(str(one.path))
    for damaged in one.damaged[:_MOST_DAMAGED]:
        size = counted(len(damaged.data), "byte")
        say(f"{name}:{damaged.number}: {size} at offset {damaged.offset:,}: {damaged.reason}")
    if (more := len(one.damaged) - _MOST_DAMAGED) > 0:
        say(f"{name}: {counted(more, 'more damaged part')}; --json lists them all")
    if unpaired := one.counts.get("unpaired_calls", 0):
        say(f"{name}: {counted(unpaired, 'call')} without a result")
    if unpaired := one.counts.get("unpaired_results", 0):
        say(f"{name}: {counted(unpaired, 'result')} without a call, each recorded as a message")
    for what, count in one.counts.items():
        if what.startswith("unknown: "):
            say(f"{name}: {counted(count, 'line')} of the unknown type {what[9:]}")


def _record_of(one: Imported) -> dict[str, object]:
    return {
        "path": str(one.path),
        "format": one.format,
        "counts": dict(one.counts),
        "damaged": [
            {
                "line": part.number,
                "offset": part.offset,
                "size": len(part.data),
                "reason": part.reason,
            }
            for part in one.damaged
        ],
    }
