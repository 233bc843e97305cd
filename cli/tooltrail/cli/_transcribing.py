"""Prints a transcript with the requested format, budget and output file."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import (
    PROVIDERS,
    STDOUT,
    print_export,
    refuse_same_file,
)
from tooltrail.cli._output import on_terminal, say, say_damage, write, write_file
from tooltrail.cli._pager import page_output

if TYPE_CHECKING:
    from tooltrail.transcripts import Transcript, Writer
    from tooltrail.wire import ExportPolicy

STYLES = ("text", "markdown", "json", "jsonl")
"""The formats of `tooltrail.transcripts`, listed here so that `--help` imports none of them."""


class Transcribing(NamedTuple):
    """The document to print, and its destination: the options of `tooltrail transcript`."""

    style: str
    tokens: int | None
    is_exact: bool
    output: Path | None
    strict: bool
    as_seen: bool
    ids: Literal["fallback", "synthesise"] | None
    unanswered: Literal["mark", "drop"] | None
    text_family: str | None
    provider: str | None
    report: Path | None

    def refuse_contradictions(self) -> None:
        """Refuse options that cannot be combined."""
        if self.style not in PROVIDERS:
            self._refuse_export_options()
        if self.as_seen and self.unanswered:
            raise click.UsageError("--as-seen cannot be combined with --unanswered")
        if self.report is not None:
            refuse_same_file(self.report, self._file)
        if self.text_family is not None:
            _refuse_unknown_family(self.text_family)
        if self.tokens is not None and (self.as_seen or self.is_exact):
            raise click.UsageError(
                "--compact cannot be combined with --as-seen or --provider-exact"
            )
        if self.is_exact and self.style != STYLES[0]:
            raise click.UsageError("--provider-exact cannot be combined with --format")

    def _refuse_export_options(self) -> None:
        for name in ("strict", "as_seen", "ids", "unanswered", "text_family", "provider", "report"):
            if getattr(self, name):
                formats = ", ".join(PROVIDERS)
                flag = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{flag} needs the format of a provider: {formats}")

    def answer(self, transcript: "Transcript", compaction_chars: int | None) -> ExitCode:
        """Print the document, name what is damaged, and return the exit code.

        A policy may say the budget of a result.
        """
        from tooltrail.transcripts.transcript import damage_in  # noqa: PLC0415  not for --help

        code = self._print_document(transcript, compaction_chars)
        return say_damage(damage_in(transcript)) or code

    def _print_document(self, transcript: "Transcript", compaction_chars: int | None) -> ExitCode:
        from tooltrail.transcripts.formats import FORMATS  # noqa: PLC0415  not for --help

        if self.is_exact:
            from tooltrail.transcripts import write_payloads  # noqa: PLC0415  as above

            self._print(write_payloads(transcript))
            return ExitCode.OK
        code = ExitCode.OK
        if self.tokens is not None:
            # These import the models of results.
            from tooltrail.records.budgets import COMPACTION_CHARS  # noqa: PLC0415
            from tooltrail.transcripts import fit  # noqa: PLC0415

            chars = COMPACTION_CHARS if compaction_chars is None else compaction_chars
            fitted = fit(transcript, self.tokens, self._writer(), chars)
            transcript = fitted.transcript
            if fitted.token_count > self.tokens:
                say(
                    f"tooltrail: the transcript has {fitted.token_count:,} tokens, more than"
                    f" {self.tokens:,}: messages, arguments, the essentials of results, and"
                    " receipts without a recorded result are never compacted"
                )
                code = ExitCode.INCOMPLETE
        if self.style in PROVIDERS:
            from tooltrail.transcripts import export_transcript  # noqa: PLC0415  not for --help

            export = export_transcript(transcript, self.style, self._policy())
            return print_export(export, self._print, self.report, strict=self.strict) or code
        self._print(FORMATS[self.style](transcript))
        return code

    def _writer(self) -> "Writer":
        from tooltrail.transcripts import FORMATS, provider_writer  # noqa: PLC0415  as above

        if self.style not in PROVIDERS:
            return FORMATS[self.style]
        return provider_writer(self.style, self._policy())

    def _policy(self) -> "ExportPolicy":
        """How what the format cannot carry is written."""
        from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy  # noqa: PLC0415  as above

        default = DEFAULT_EXPORT_POLICY
        return ExportPolicy(
            ids=self.ids or default.ids,
            unanswered="unknown" if self.as_seen else self.unanswered or default.unanswered,
            text_family=self.text_family or default.text_family,
            provider=self.provider,
        )

    @property
    def _file(self) -> Path | None:
        """The file of the document; None for standard output."""
        return None if self.output == STDOUT else self.output

    def _print(self, pieces: Iterator[str]) -> None:
        if self._file is not None:
            write_file(self._file, pieces)
            return
        page_output()
        for piece in pieces:
            write(on_terminal(piece) if sys.stdout.isatty() else piece)


def _refuse_unknown_family(name: str) -> None:
    from tooltrail.records import NotFoundError  # noqa: PLC0415  only for --text-family
    from tooltrail.wire.text_fallback.family import text_family  # noqa: PLC0415  as above

    try:
        text_family(name)
    except NotFoundError as error:
        raise click.UsageError(str(error)) from error
