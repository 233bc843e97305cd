"""`tooltrail transcript`: print a session as a conversation."""

from pathlib import Path

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import PROVIDERS, export_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import Number, gathered, named_option, store_options
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
    help="Format of the document: text, Markdown or JSON, or the messages of a provider's request.",
)
@click.option("--json", "style", flag_value="json", help="Short for --format json.")
@click.option(
    "--until",
    "last",
    metavar="ID",
    help="Stop after this entry: the id of a message or an invocation, or #SEQ.",
)
@click.option(
    "--compact",
    "tokens",
    type=Number(min=1),
    metavar="BUDGET",
    help="Compact tool results, oldest first, until the document has at most BUDGET tokens (UTF-8 "
    "bytes / 4).",
)
@named_option("--policy", type=click.Path(path_type=Path, dir_okay=False))
@export_options
@click.option(
    "--provider-exact",
    "is_exact",
    is_flag=True,
    help="Print the bytes that providers sent, one line of JSON per message.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
    metavar="FILENAME",
    help="Write the document to this file.",
)
@gathered("asked", Transcribing)
def command(
    *,
    location: Location,
    session: str,
    last: str | None,
    policy: Path | None,
    asked: Transcribing,
) -> ExitCode:
    """Print a session as a conversation, with the receipt that the model saw of each tool call.

    SESSION is an id, a name, a unique beginning or end of an id, or @last. By default,
    $TOOLTRAIL_SESSION, or @last if the variable is not set. On a terminal, control characters are
    replaced.

    With --compact, the receipt of a compacted result can replace the receipt of a tool call. A
    replaced receipt is marked. Messages, arguments, and the outcome, ids and artifacts of results
    are never removed. If BUDGET is too small for them, the compacted document is printed with a
    warning, and the exit code is 4.

    A provider's format prints the messages of a request. Differences from the record are counted
    on stderr. --report FILE lists each difference. With --strict, if there is a difference, nothing
    is printed and the exit code is 1.
    """
    from tooltrail.transcripts.transcript import load_transcript, until

    asked.refuse_contradictions()
    chars = None
    if policy is not None:
        from tooltrail.cli._policy import read_policy  # imports pydantic

        chars = read_policy(policy).compaction_chars
    with location.open() as store:
        transcript = load_transcript(store.reader, session, payloads=asked.is_exact)
    return asked.answer(transcript if last is None else until(transcript, last), chars)
