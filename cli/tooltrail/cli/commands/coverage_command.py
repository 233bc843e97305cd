"""`tooltrail coverage`: compare the store with the transcripts of an agent."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import SourcePath, format_option, json_option, store_options
from tooltrail.cli._output import counted, print_array, printable, say
from tooltrail.cli._tables import print_table


@click.command("coverage")
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=SourcePath(path_type=Path, readable=False),
)
@store_options
@format_option
@click.option("--no-redact", is_flag=True, help="For a store that was recorded so.")
@json_option
def command(
    *,
    paths: tuple[Path, ...],
    location: Location,
    format_name: str | None,
    no_redact: bool,
    as_json: bool,
) -> int:
    """Compare the store with the transcripts that an agent has left: is every call recorded?

    PATH is a file or a folder, as for `tooltrail import`. Prints each call that is missing in the
    store, that only the store has, or that differs, with what differs. Nothing is imported. With
    --json, prints the calls that match, too.

    Exits with 1 unless every call matches, and with 3 if a file is missing or has no known format.
    In a folder, a file of no known format is named, and is a gap only if it is damaged: otherwise
    it is not a session. Exits with 5 if a file or a folder cannot be read.
    """
    from tooltrail.cli._coverage import compare
    from tooltrail.cli._importing import failure_code, import_with_bar
    from tooltrail.cli._long_commands import progress_bar
    from tooltrail.cli._redaction import used_rules
    from tooltrail.store import create_store

    with (
        TemporaryDirectory() as folder,
        create_store(Path(folder) / "trail.db") as transcripts,
        location.open(imports=False) as store,
    ):
        rules = None if no_redact else used_rules()
        outcomes, skipped = import_with_bar(transcripts.spool, paths, format_name, rules)
        if (failed := failure_code(outcomes)) is not None:
            return failed
        found: list[dict[str, Any]] = []
        total = sum(transcripts.reader.counts().invocations.values())
        with progress_bar("comparing", total) as update:
            for one in compare(store.reader, transcripts.reader):
                found.append(one)
                update(len(found), 0)
    gaps = [one for one in found if one["result"] != "matched"]
    if as_json:
        print_array(found)
    elif gaps:
        names = ("result", "id", "call_id", "tool_name")
        rows = [
            [*(str(one[name] or "") for name in names), ", ".join(one["differing"])] for one in gaps
        ]
        print_table(["RESULT", "ID", "CALL", "TOOL", "DIFFERING"], rows)
    counts = Counter(one["result"] for one in found)
    results = ("matched", "missing", "extra", "differing")
    each = ", ".join(f"{counts[one]:,} {one}" for one in results)
    say(f"compared {counted(len(found), 'call')}: {each}")
    for file in skipped:
        what = "damaged, and may be a session" if file.is_damaged else "not a session"
        say(f"{printable(str(file.path))} is {what}")
    is_unread = any(file.is_damaged for file in skipped)
    return ExitCode.DAMAGED if gaps or is_unread else ExitCode.OK
