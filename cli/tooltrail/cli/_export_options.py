"""Options of exports into the formats of providers, and the reports of differences."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._options import stacked
from tooltrail.cli._output import say, write_file

if TYPE_CHECKING:
    from tooltrail.wire import Export

PROVIDERS = (
    "openai",
    "openai-responses",
    "anthropic",
    "bedrock",
    "ollama",
    "gemini",
    "cohere",
    "text-fallback",
)
"""The wire formats of exports, listed here so that `--help` imports none of them."""

STDOUT = Path("-")
"""The file name that means standard output."""


def refuse_same_file(report: Path, output: Path | None) -> None:
    """Refuse a report that would overwrite the document; `output` is None for standard output."""
    is_same = _is_stdout(report) if output is None else _is_one_file(report, output)
    if is_same:
        raise click.UsageError(
            f"--report would overwrite the document in {report}; name another file"
        )


def _is_one_file(one: Path, other: Path) -> bool:
    with suppress(OSError):
        if one.exists() and other.exists():
            # Report and document can both be written to one device without overwriting.
            return one.is_file() and one.samefile(other)
    return one.resolve() == other.resolve()


def _is_stdout(path: Path) -> bool:
    # Standard output can be a pipe, or have no descriptor.
    with suppress(OSError, ValueError):
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False


def print_export(
    export: "Export", write: Callable[[Iterator[str]], None], report: Path | None, *, strict: bool
) -> ExitCode:
    """Print a document with `write`, and its differences from the record; return the exit code.

    The file of the report comes first: without its report, no document is printed.
    """
    from tooltrail.transcripts import write_export  # noqa: PLC0415  not for --help
    from tooltrail.wire import ExportRefusedError  # noqa: PLC0415  as above

    changes = export.report
    if report is not None:
        write_file(report, (f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in changes))
    if not (strict and changes):
        write(write_export(export))
    if changes:
        counted = Counter(change.kind for change in changes)
        note = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counted.items()))
        where = "" if report else "; --report FILE lists each difference"
        say(f"tooltrail: the export differs from the record: {note}{where}")
    if not (strict and changes):
        return ExitCode.OK
    say(f"tooltrail: {ExportRefusedError(changes)}")
    return ExitCode.DAMAGED


def _refuse_stdout(
    _context: click.Context, _parameter: click.Parameter, file: Path | None
) -> Path | None:
    if file == STDOUT:
        raise click.BadParameter("the document goes to standard output; name a file for the report")
    return file


strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Print nothing and exit with 1 if the export would differ from the record.",
)
"""`--strict`: print nothing instead of a document that differs from the record."""

report_option = click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_refuse_stdout,
    metavar="FILE",
    help="Write each difference from the record to FILE, one line of JSON each.",
)
"""`--report`: the file that lists each difference."""

export_options = stacked(
    click.option(
        "--as-seen",
        is_flag=True,
        help="Print only what the model was shown. Mark what is unknown.",
    ),
    strict_option,
    click.option(
        "--ids",
        type=click.Choice(["fallback", "synthesise"]),
        help="If the provider needs an id and a call has none: write the call as text "
        "(fallback, the default), or make an id (synthesise).",
    ),
    click.option(
        "--unanswered",
        type=click.Choice(["mark", "drop"]),
        help="If a call has no result: write a result that says so (mark, the default), or "
        "leave the call out (drop).",
    ),
    click.option(
        "--text-family",
        metavar="NAME",
        help="Text format of calls that are written as text. By default, tool_result.",
    ),
    click.option(
        "--provider",
        metavar="NAME",
        help="Target provider. Leave out data for other providers of the same format.",
    ),
    report_option,
)
"""The options of an export into the format of a provider."""
