"""The work of `tooltrail import`: find files, import them with a progress bar, and report."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tooltrail.artifacts import FOLLOW_INTERVAL_S
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._failures import code_of, say_error
from tooltrail.cli._hook_events import say_damage
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import progress_bar
from tooltrail.cli._output import counted, print_array, printable, say
from tooltrail.cli._tables import print_table
from tooltrail.cli._waiting import wait_for_more
from tooltrail.importers import Imported, Importer, ImportResult, session_files, usual_folders
from tooltrail.importers.events import Line
from tooltrail.importers.hooks import has_events
from tooltrail.importers.importing import UnknownFormatError
from tooltrail.records.errors import DiskFullError, NotFoundError, TooltrailError
from tooltrail.redaction import RuleSet

_COLUMNS = ("sessions", "messages", "calls", "results", "new", "known")


def import_with_bar(
    spool: Path,
    paths: Sequence[Path],
    format_name: str | None,
    rules: RuleSet | None,
    *,
    since: datetime | None = None,
    is_dry_run: bool = False,
) -> tuple[list[ImportResult], list[UnknownFormatError]]:
    """Import files into a spool, with a progress bar on a terminal.

    Without paths, says first what the usual folders hold. Files that have not changed after `since`
    are left out. What cannot be imported is reported, and the other files are still imported.

    Returns:
        What was imported, and why files in folders were skipped: each is of no known format.

    Raises:
        NotFoundError: nothing is found.
        TooltrailError: none of the paths can be imported.
    """
    changed_after = 0 if since is None else since.timestamp()
    found = dict(_files(paths))
    files = {
        file: 0 if state is None else state.st_size
        for file, state in found.items()
        if state is None or stat.S_ISDIR(state.st_mode) or state.st_mtime >= changed_after
    }
    for folder in () if paths else usual_folders(os.environ, Path.home()):
        inside = counted(sum(one.is_relative_to(folder) for one in files), "file")
        say(f"found {inside} in {printable(str(folder))}")
    if unchanged := len(found) - len(files):
        say(f"left out {counted(unchanged, 'file')} that did not change since then")
    importer = Importer(spool, rules, is_dry_run=is_dry_run)
    results, skipped = _import_all(importer, files, paths, format_name)
    _say_skipped([one.path for one in skipped], format_name)
    failures = [one for one in results if isinstance(one, TooltrailError)]
    if failures and len(failures) == len(results):
        raise failures[0]
    if since is None and not results:
        where = f" in {', '.join(map(str, paths))}" if paths else "; name a file or a folder"
        raise NotFoundError(f"no sessions of known agents found{where}")
    for failure in failures:
        say_error(failure)
    return results, skipped


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, os.stat_result | None]]:
    """The files to import, with their states. The import of one without a state says why."""
    for path in paths or usual_folders(os.environ, Path.home()):
        for file in session_files(path):
            state = None
            with suppress(OSError):
                state = file.stat()
            yield file, state


def _import_all(
    importer: Importer, files: Mapping[Path, int], paths: Sequence[Path], format_name: str | None
) -> tuple[list[ImportResult], list[UnknownFormatError]]:
    """The results of files, given with their sizes, and the unknown files that no path names."""
    results: list[ImportResult] = []
    skipped: list[UnknownFormatError] = []
    done = 0
    with progress_bar("importing", sum(files.values())) as update:
        importer.on_offset = lambda offset: update(done + offset, done + offset)
        for file, one in _import_each(importer, files, format_name):
            done += files[file]
            update(done, done)
            if file in paths or not isinstance(one, NotFoundError):
                results.append(one)
            elif isinstance(one, UnknownFormatError):
                skipped.append(one)
    return results, skipped


def _import_each(
    importer: Importer, files: Iterable[Path], format_name: str | None
) -> Iterator[tuple[Path, ImportResult]]:
    """Import files, and return what was imported from each, or the error. A full disk ends this."""
    for file in files:
        one: ImportResult
        try:
            one = importer.import_file(file, format_name)
            if format_name and not (one.damaged or one.counts.get("sessions")):
                one = UnknownFormatError(file, format_name, is_damaged=False)
        except TooltrailError as error:
            # A traceback keeps the content of the file in memory.
            one = error.with_traceback(None)
        yield file, one
        if isinstance(one, DiskFullError):
            break  # for the other files there is no room either


def _say_skipped(files: Sequence[Path], format_name: str | None) -> None:
    if files:
        kind = "of another format" if format_name else "of no known format"
        verb = "was" if len(files) == 1 else "were"
        such_as = printable(str(files[0]))
        say(f"{counted(len(files), 'file')} {kind} {verb} skipped, such as {such_as}")


def follow(
    location: Location, paths: Sequence[Path], format_name: str | None, rules: RuleSet | None
) -> Iterator[Imported]:
    """Import each file when it changes, and ingest what was recorded. Never ends.

    The first pass imports everything. A file of no known format and a damaged line are reported
    once, and a file that cannot be imported is reported each time it changes.
    """
    importer = Importer(location.recording_spool(), rules)
    seen: dict[Path, tuple[int, int] | None] = {}
    said: set[tuple[Path, Line | None]] = set()  # what was reported; without a line, the file

    while True:
        has_new, skipped = False, list[Path]()
        states = {
            file: None if state is None else (state.st_mtime_ns, state.st_size)
            for file, state in _files(paths)
        }
        changed = [file for file, state in states.items() if state != seen.get(file, ())]
        for file, one in _import_each(importer, changed, format_name):
            seen[file] = states[file]
            if isinstance(one, UnknownFormatError):
                skipped += [file] if (file, None) not in said else []
                said.add((file, None))
            elif isinstance(one, TooltrailError):
                if not isinstance(one, NotFoundError):  # it is gone, or does not exist yet
                    say_error(one)
            else:
                damaged = [part for part in one.damaged if not part.is_cut]
                say_damage(file, [part for part in damaged if (file, part) not in said])
                said.update((file, part) for part in damaged)
                if one.counts.get("new"):
                    has_new = True
                    yield one
        _say_skipped(skipped, format_name)
        if has_new or has_events(location.spool_folder):
            with location.open(create=True) as store:  # imports hook events
                _ = store.reader  # ingests
        wait_for_more(FOLLOW_INTERVAL_S)


def print_report(results: Sequence[ImportResult], *, as_json: bool, is_dry_run: bool) -> int:
    """Print what was imported from each file, and return the exit code."""
    imported = [one for one in results if isinstance(one, Imported)]
    if as_json:
        print_array([_record_of(one) for one in imported])
    elif imported:
        names = [name.upper() for name in _COLUMNS]
        rows = [
            [one.format, *(f"{one.counts.get(name, 0):,}" for name in _COLUMNS), str(one.path)]
            for one in imported
        ]
        print_table(["FORMAT", *names, "FILE"], rows, right=names)
    totals = sum((Counter(one.counts) for one in imported), Counter[str]())
    verb = "would be recorded" if is_dry_run else "recorded"
    say(f"{counted(totals['new'], 'new fact')} {verb}, {totals['known']:,} known already")
    for one in imported:
        _say_problems(one)
    if (failed := failure_code(results)) is not None:
        return failed
    return ExitCode.INCOMPLETE if any(one.damaged for one in imported) else ExitCode.OK


def failure_code(results: Sequence[ImportResult]) -> ExitCode | None:
    """The exit code of the last file that could not be imported; None if there is none."""
    failures = (one for one in reversed(results) if isinstance(one, TooltrailError))
    return next(map(code_of, failures), None)


def _say_problems(one: Imported) -> None:
    name = printable(str(one.path))
    say_damage(one.path, one.damaged, "; --json lists them all")
    if incomplete := one.counts.get("incomplete_outputs", 0):
        say(f"{name}: {counted(incomplete, 'incomplete output')}")
    if unpaired := one.counts.get("unpaired_calls", 0):
        say(f"{name}: {counted(unpaired, 'call')} without a result")
    if unpaired := one.counts.get("unpaired_results", 0):
        say(f"{name}: {counted(unpaired, 'result')} without a call, each recorded as a message")
    for what, count in one.counts.items():
        if what.startswith("unknown: "):
            say(f"{name}: {counted(count, 'line')} of the unknown type {what[9:]}")


def _record_of(one: Imported) -> dict[str, object]:
    damaged = [
        {"line": part.number, "offset": part.offset, "size": len(part.data), "reason": part.damage}
        for part in one.damaged
    ]
    counts = dict(one.counts)
    return {"path": str(one.path), "format": one.format, "counts": counts, "damaged": damaged}
