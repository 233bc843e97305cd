"""Exports into the formats of providers: their options, their documents, their reports."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tooltrail.cli._options import stacked
from tooltrail.cli._output import say, write_file

if TYPE_CHECKING:
    from tooltrail.wire import ExportReport

PROVIDERS = (
    "openai",
    "openai-responses",
    "anthropic",
    "ollama",
    "gemini",
    "cohere",
    "text-fallback",
)
"""The wire formats that a conversation can be written in, known before they are imported."""

STDOUT = Path("-")
"""What stands for standard output where a file is named."""


def refuse_same_file(report: Path, output: Path | None) -> None:
    """Refuse a report that would take the place of the document.

    Args:
        report: the file of the report.
        output: the file of the document; None for standard output, which may be a file as well.

    Raises:
        click.UsageError: both are one file, by whatever names.
    """
    is_same = _is_stdout(report) if output is None else _is_one_file(report, output)
    if is_same:
        raise click.UsageError(
            f"--report would overwrite the document in {report}; name another file"
        )


def _is_one_file(one: Path, other: Path) -> bool:
    with suppress(OSError):
        if one.exists() and other.exists():
            # A device takes both, and keeps neither from the other.
            return one.is_file() and one.samefile(other)
    return one.resolve() == other.resolve()


def _is_stdout(path: Path) -> bool:
    # Standard output need not be a file, nor have a descriptor at all.
    with suppress(OSError, ValueError):
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False


def write_report(report: "ExportReport", file: Path | None) -> None:
    """Write each change to the file, if one was named; before the document is printed.

    Whoever asked for a report is not to get a document that nobody can tell the changes of.

    Raises:
        UnavailableError: the file cannot be written.
    """
    if file is not None:
        write_file(file, _lines(report))


def tell_report(report: "ExportReport", file: Path | None) -> None:
    """Count what was changed, on stderr, and say where each change is listed."""
    if report:
        counted = Counter(change.kind for change in report)
        note = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counted.items()))
        where = "" if file else "; --report FILE lists each difference"
        say(f"tooltrail: the export differs from the record: {note}{where}")


def _file_of_its_own(
    _context: click.Context, _parameter: click.Parameter, file: Path | None
) -> Path | None:
    if file == STDOUT:
        raise click.BadParameter("standard output is the document's: name a file")
    return file


def _lines(report: "ExportReport") -> Iterator[str]:
    for change in report:
        yield json.dumps(asdict(change), ensure_ascii=False) + "\n"


strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Print nothing and exit with 1 if the export would differ from the record.",
)
"""`--strict`: nothing rather than something else."""

report_option = click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_file_of_its_own,
    metavar="FILE",
    help="Write each difference from the record to FILE, one line of JSON each.",
)
"""`--report`: where each change is listed."""

export_options = stacked(
    click.option(
        "--as-seen",
        is_flag=True,
        help="Print only what the model was shown. Unknown parts are marked.",
    ),
    strict_option,
    click.option(
        "--ids",
        type=click.Choice(["fallback", "synthesise"]),
        help="For calls without an id where the provider needs one: write the call as text "
        "(fallback, the default), or make an id (synthesise).",
    ),
    click.option(
        "--unanswered",
        type=click.Choice(["mark", "drop"]),
        help="For calls without a result: write a result that says so (mark, the default), or "
        "leave the call out (drop).",
    ),
    click.option(
        "--text-family",
        metavar="NAME",
        help="Spelling of calls that are written as text. By default, tool_result.",
    ),
    click.option(
        "--provider",
        metavar="NAME",
        help="Target provider. Data for other providers of the format is left out.",
    ),
    report_option,
)
"""The options of an export into the format of a provider."""
