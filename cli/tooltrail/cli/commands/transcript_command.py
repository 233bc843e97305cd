"""`tooltrail transcript`: a session read back."""

from pathlib import Path

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import PROVIDERS, Exporting, export_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import policy_option, store_options
from tooltrail.cli._transcribing import STYLES, Transcribing


@click.command("transcript")
@store_options
@click.argument("session", default="@last", envvar="TOOLTRAIL_SESSION")
@click.option(
    "--format",
    "style",
    type=click.Choice((*STYLES, *PROVIDERS)),
    default="text",
    show_default=True,
    help="For people, for Markdown, for programs; or part of a request to a provider.",
)
@click.option("--json", "style", flag_value="json", help="The same as --format json.")
@click.option(
    "--until",
    "last",
    metavar="ID",
    help="The session as it was when this entry began: the id of a message or an invocation, or "
    "#SEQ.",
)
@click.option(
    "--compact",
    "tokens",
    type=click.IntRange(min=1),
    metavar="BUDGET",
    help="Make the document at most BUDGET tokens long (UTF-8 bytes / 4) by compacting tool "
    "results, the oldest first.",
)
@policy_option
@export_options
@click.option(
    "--provider-exact",
    "is_exact",
    is_flag=True,
    help="Print what providers sent, byte for byte, a line of JSON for each message.",
)
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
    last: str | None,
    policy: Path | None,
    style: str,
    tokens: int | None,
    is_exact: bool,
    exporting: Exporting,
    output: Path | None,
) -> ExitCode:
    """Print a session as the conversation that it was, each tool call with what the model saw.

    SESSION is an id, a unique beginning or end of one, or @last; by default $TOOLTRAIL_SESSION,
    else @last. On a terminal control characters of the output do nothing.

    With --compact a call may have a compaction of its canonical result instead of what the model
    saw, and is marked so. Messages, arguments, and of each result its outcome, ids and artifacts
    always stay. When BUDGET is too small for them, the whole document is printed all the same, a
    line on stderr says so, and the exit code is 4.

    The format of a provider gives the messages of a request. What is not in it as it is in the
    record is counted on stderr, and told one by one in the file of --report; with --strict nothing
    is printed then, and the exit code is 1.
    """
    from tooltrail.cli._policy import read_policy
    from tooltrail.transcripts import load_transcript, until

    asked = Transcribing(style, tokens, exporting, output, is_exact=is_exact)
    asked.refuse_contradictions()
    named = read_policy(policy)
    with location.open() as store:
        transcript = load_transcript(store.reader, session, payloads=is_exact)
        compaction = (named or store.policy).compaction
    return asked.answer(transcript if last is None else until(transcript, last), compaction)
