"""A transcript as it was asked for: in which format, how long, how exact, and where to."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import (
    PROVIDERS,
    STDOUT,
    Exporting,
    tell_report,
    write_report,
)
from tooltrail.cli._output import on_terminal, say, write, write_file

if TYPE_CHECKING:
    from tooltrail.records import CompactionBudget
    from tooltrail.transcripts import Transcript, Writer

STYLES = ("text", "markdown", "json", "jsonl")
"""The names of all formats of `tooltrail.transcripts`, known before they are imported."""


@dataclass(frozen=True, slots=True)
class Transcribing:
    """Which document is to be printed, and where.

    Attributes:
        style: the name of its format.
        tokens: how long it may be; None for as long as it is.
        exporting: what was asked of the export, where the format is a provider's.
        output: the file that it goes to; None for standard output.
        is_exact: whether what providers sent is to be printed, and nothing else.
    """

    style: str
    tokens: int | None
    exporting: Exporting
    output: Path | None
    is_exact: bool

    def refuse_contradictions(self) -> None:
        """Refuse options that cannot be had together.

        Raises:
            click.UsageError: there are such.
        """
        if self.style not in PROVIDERS:
            self.exporting.refuse_without_provider()
        self.exporting.refuse_contradictions(self._file)
        if self.tokens is not None and (self.exporting.as_seen or self.is_exact):
            raise click.UsageError(
                "--compact cannot be combined with --as-seen or --provider-exact"
            )
        if self.is_exact and self.style != STYLES[0]:
            raise click.UsageError("--provider-exact cannot be combined with --format")

    def answer(self, transcript: "Transcript", compaction: "CompactionBudget | None") -> ExitCode:
        """Print the document."""
        from tooltrail.transcripts.formats import FORMATS  # noqa: PLC0415  when it is known which

        if self.is_exact:
            from tooltrail.transcripts import write_payloads  # noqa: PLC0415  as above

            self._print(write_payloads(transcript))
            return ExitCode.OK
        code = ExitCode.OK
        if self.tokens is not None and compaction is not None:
            from tooltrail.transcripts import fit  # noqa: PLC0415  needs the models of results

            fitted = fit(transcript, self.tokens, self._writer(), compaction)
            transcript = fitted.transcript
            if fitted.token_count > self.tokens:
                self._say_too_long(fitted.token_count)
                code = ExitCode.INCOMPLETE
        if self.style in PROVIDERS:
            return self._export(transcript) or code
        self._print(FORMATS[self.style](transcript))
        return code

    def _writer(self) -> "Writer":
        from tooltrail.transcripts import FORMATS, provider_writer  # noqa: PLC0415  as above

        if self.style not in PROVIDERS:
            return FORMATS[self.style]
        return provider_writer(self.style, replace(self.exporting.policy(), strict=False))

    def _export(self, transcript: "Transcript") -> ExitCode:
        from tooltrail.transcripts import export_transcript, write_export  # noqa: PLC0415  as above
        from tooltrail.wire import ExportRefusedError  # noqa: PLC0415  as above

        try:
            export = export_transcript(transcript, self.style, self.exporting.policy())
        except ExportRefusedError as refusal:
            write_report(refusal.report, self.exporting.report)
            tell_report(refusal.report, self.exporting.report)
            say(f"tooltrail: {refusal}")
            return ExitCode.DAMAGED
        write_report(export.report, self.exporting.report)
        self._print(write_export(export))
        tell_report(export.report, self.exporting.report)
        return ExitCode.OK

    @property
    def _file(self) -> Path | None:
        """The file of the document; None where it goes to standard output."""
        return None if self.output == STDOUT else self.output

    def _say_too_long(self, token_count: int) -> None:
        say(
            f"tooltrail: the transcript takes {token_count:,} tokens, not {self.tokens:,}: "
            "messages, arguments, and the essentials of results are never compacted"
        )

    def _print(self, pieces: Iterator[str]) -> None:
        if self._file is not None:
            write_file(self._file, pieces)
            return
        for piece in pieces:
            write(on_terminal(piece) if sys.stdout.isatty() else piece)
