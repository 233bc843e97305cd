"""`tooltrail transcript`: a session read back."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import policy_option, store_options
from tooltrail.cli._output import on_terminal, say, write, write_file

if TYPE_CHECKING:
    from tooltrail.transcripts import Fitted

STYLES = ("text", "markdown", "json")
"""The names of all formats of `tooltrail.transcripts`, known before they are imported."""

_STDOUT = Path("-")


@click.command("transcript")
@store_options
@click.argument("session", default="@last", envvar="TOOLTRAIL_SESSION")
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="text",
    show_default=True,
    help="For people, for Markdown, for programs.",
)
@click.option("--json", "style", flag_value="json", help="The same as --format json.")
@click.option(
    "--compact",
    "tokens",
    type=click.IntRange(min=1),
    metavar="BUDGET",
    help="Make the document at most BUDGET tokens long (UTF-8 bytes / 4) by compacting tool "
    "results, the oldest first.",
)
@policy_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
    metavar="FILENAME",
    help="Write to this file.",
)
def command(
    *,
    location: Location,
    session: str,
    style: str,
    tokens: int | None,
    policy: Path | None,
    output: Path | None,
) -> ExitCode:
    """Print a session as the conversation that it was, each tool call with what the model saw.

    SESSION is an id, a unique beginning or end of one, or @last; by default $TOOLTRAIL_SESSION,
    else @last. On a terminal control characters of the output do nothing.

    With --compact a call may have a compaction of its canonical result instead of what the model
    saw, and is marked so. Messages, arguments, and of each result its outcome, ids and artifacts
    always stay. When BUDGET is too small for them, the whole document is printed all the same, a
    line on stderr says so, and the exit code is 4.
    """
    from tooltrail.cli._policy import read_policy
    from tooltrail.transcripts import FORMATS, fit, load_transcript

    named = read_policy(policy)
    with location.open() as store:
        transcript = load_transcript(store.reader, session)
        compaction = (named or store.policy).compaction
    writer = FORMATS[style]
    if tokens is None:
        _print(writer(transcript), output)
        return ExitCode.OK
    fitted = fit(transcript, tokens, writer, compaction)
    _print(writer(fitted.transcript), output)
    return _said_when_too_long(fitted, tokens)


def _said_when_too_long(fitted: "Fitted", tokens: int) -> ExitCode:
    if fitted.token_count <= tokens:
        return ExitCode.OK
    say(
        f"tooltrail: the transcript takes {fitted.token_count:,} tokens, not {tokens:,}: "
        "messages, arguments, and the essentials of results are never compacted"
    )
    return ExitCode.INCOMPLETE


def _print(pieces: Iterator[str], output: Path | None) -> None:
    if output is not None and output != _STDOUT:
        write_file(output, pieces)
        return
    for piece in pieces:
        write(on_terminal(piece) if sys.stdout.isatty() else piece)
