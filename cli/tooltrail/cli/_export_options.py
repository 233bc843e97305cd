"""Exports into the formats of providers: their options, their documents, their reports."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tooltrail.cli._options import Decorated, stacked
from tooltrail.cli._output import say, write_file

if TYPE_CHECKING:
    from tooltrail.wire import ExportPolicy, ExportReport

PROVIDERS = ("openai", "openai-responses", "anthropic", "ollama", "gemini", "text-fallback")
"""The wire formats that a conversation can be written in, known before they are imported."""

STDOUT = Path("-")
"""What stands for standard output where a file is named."""


@dataclass(frozen=True, slots=True)
class Exporting:
    """What was asked of an export.

    Attributes:
        strict: whether to print nothing that is not as it is in the record.
        as_seen: whether to say of what has no receipt that it is not known.
        ids: what becomes of calls without ids.
        unanswered: what becomes of calls without results.
        text_family: the text format of calls that cannot be written natively.
        provider: to whom it goes.
        report: the file for the report.
    """

    strict: bool
    as_seen: bool
    ids: Literal["fallback", "synthesise"] | None
    unanswered: Literal["mark", "drop"] | None
    text_family: str | None
    provider: str | None
    report: Path | None

    def refuse_contradictions(self, output: Path | None) -> None:
        """Refuse what cannot be had together, or not at all.

        Args:
            output: the file of the document; None where it goes to standard output.

        Raises:
            click.UsageError: something of that kind was given.
        """
        if self.as_seen and self.unanswered:
            raise click.UsageError("--as-seen cannot be combined with --unanswered")
        if self.report is not None:
            refuse_same_file(self.report, output)
        if self.text_family is not None:
            _refuse_unknown_family(self.text_family)

    def refuse_without_provider(self) -> None:
        """Refuse what only the format of a provider has an answer to.

        Raises:
            click.UsageError: such an option was given.
        """
        asked = {
            "--strict": self.strict,
            "--as-seen": self.as_seen,
            "--ids": self.ids,
            "--unanswered": self.unanswered,
            "--text-family": self.text_family,
            "--provider": self.provider,
            "--report": self.report,
        }
        for name, value in asked.items():
            if value:
                formats = ", ".join(PROVIDERS)
                raise click.UsageError(f"{name} needs the format of a provider: {formats}")

    def policy(self) -> "ExportPolicy":
        """How what the format cannot carry is written."""
        from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy  # noqa: PLC0415  for it alone

        default = DEFAULT_EXPORT_POLICY
        return ExportPolicy(
            strict=self.strict,
            ids=self.ids or default.ids,
            unanswered="unknown" if self.as_seen else self.unanswered or default.unanswered,
            text_family=self.text_family or default.text_family,
            provider=self.provider,
        )


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


def _refuse_unknown_family(name: str) -> None:
    from tooltrail.records import NotFoundError  # noqa: PLC0415  few exports name one
    from tooltrail.wire.text_fallback.families import text_family  # noqa: PLC0415  the same

    try:
        text_family(name)
    except NotFoundError as error:
        raise click.UsageError(str(error)) from error


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


def strict_option(function: Decorated) -> Decorated:
    """`--strict`: nothing rather than something else."""
    return click.option(
        "--strict",
        is_flag=True,
        help="Print nothing and exit with 1 if the export would differ from the record.",
    )(function)


def _file_of_its_own(
    _context: click.Context, _parameter: click.Parameter, file: Path | None
) -> Path | None:
    if file == STDOUT:
        raise click.BadParameter("standard output is the document's: name a file")
    return file


def report_option(function: Decorated) -> Decorated:
    """`--report`: where each change is listed."""
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_file_of_its_own,
        metavar="FILE",
        help="Write each difference from the record to FILE, one line of JSON each.",
    )(function)


def export_options(function: Decorated) -> Decorated:
    """The options of an export, handed on as one `exporting`."""

    @wraps(function)
    def with_exporting(
        *args: Any,
        strict: bool,
        as_seen: bool,
        ids: Literal["fallback", "synthesise"] | None,
        unanswered: Literal["mark", "drop"] | None,
        text_family: str | None,
        provider: str | None,
        report: Path | None,
        **kwargs: Any,
    ) -> Any:
        asked = Exporting(strict, as_seen, ids, unanswered, text_family, provider, report)
        return function(*args, exporting=asked, **kwargs)

    return stacked(
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
    )(with_exporting)


def _lines(report: "ExportReport") -> Iterator[str]:
    for change in report:
        yield json.dumps(asdict(change), ensure_ascii=False) + "\n"
