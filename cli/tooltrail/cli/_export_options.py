"""Exports into the formats of providers: their options, their documents, their reports."""

import json
from collections import Counter
from collections.abc import Iterator
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
"""The wire formats that a conversation can be told in, known before they are imported."""


@dataclass(frozen=True, slots=True)
class Exporting:
    """What was asked of an export.

    Attributes:
        strict: whether to print nothing that is not as it is in the record.
        as_seen: whether to say of what has no receipt that it is not known.
        ids: what becomes of calls without ids.
        unanswered: what becomes of calls without results.
        text_family: the text format of calls that cannot be told natively.
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

    def refuse_without_provider(self) -> None:
        """Refuse what only the format of a provider has an answer to.

        Raises:
            click.UsageError: such an option was given.
        """
        asked = {
            "--strict": self.strict,
            "--ids": self.ids,
            "--unanswered": self.unanswered,
            "--text-family": self.text_family,
            "--provider": self.provider,
            "--report": self.report,
        }
        for name, value in asked.items():
            if value:
                formats = ", ".join(PROVIDERS)
                raise click.UsageError(f"{name} goes with the format of a provider: {formats}")

    def policy(self) -> "ExportPolicy":
        """How what the format cannot carry is told."""
        from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy  # noqa: PLC0415  for it alone

        default = DEFAULT_EXPORT_POLICY
        return ExportPolicy(
            strict=self.strict,
            ids=self.ids or default.ids,
            unanswered="unknown" if self.as_seen else self.unanswered or default.unanswered,
            text_family=self.text_family or default.text_family,
            provider=self.provider,
        )


def tell_report(report: "ExportReport", file: Path | None) -> None:
    """Count what was changed, and write each change to the file, if one was named."""
    if file is not None:
        write_file(file, _lines(report))
    if report:
        counted = Counter(change.kind for change in report)
        told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counted.items()))
        where = "" if file else "; --report FILE has each"
        say(f"tooltrail: not in the export as in the record: {told}{where}")


def strict_option(function: Decorated) -> Decorated:
    """`--strict`: nothing rather than something else."""
    return click.option(
        "--strict",
        is_flag=True,
        help="Print nothing that is not as it is in the record, and exit with 1.",
    )(function)


def report_option(function: Decorated) -> Decorated:
    """`--report`: where each change is told."""
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write each change to this file, a line of JSON each.",
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
            help="Nothing but what the model was shown; what is not known of it is marked.",
        ),
        strict_option,
        click.option(
            "--ids",
            type=click.Choice(["fallback", "synthesise"]),
            help="Calls without ids, where a provider needs one: told as text, which is the "
            "default, or given an id.",
        ),
        click.option(
            "--unanswered",
            type=click.Choice(["mark", "drop"]),
            help="Calls without results: with a result that says so, which is the default, or "
            "left out.",
        ),
        click.option(
            "--text-family",
            metavar="NAME",
            help="How calls are told as text: by default tool_result.",
        ),
        click.option(
            "--provider",
            metavar="NAME",
            help="To whom it goes: leaves out what another provider of the format said for itself.",
        ),
        report_option,
    )(with_exporting)


def _lines(report: "ExportReport") -> Iterator[str]:
    for change in report:
        yield json.dumps(asdict(change), ensure_ascii=False) + "\n"
