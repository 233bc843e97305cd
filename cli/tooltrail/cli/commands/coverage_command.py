"""`tooltrail coverage`: compare the store with the transcripts of an agent."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import SourcePath, format_option, json_option, store_options
from tooltrail.cli._output import counted, print_array, printable, say
from tooltrail.cli._tables import print_table

if TYPE_CHECKING:
    from tooltrail.cli._coverage import Compared


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
    A damaged line is a gap, too, because it may be a call. So is a file of no known format in a
    folder, because it may be a session that cannot be read. A .json file is a gap only if it is
    damaged: agents keep settings and indexes in such files. Exits with 5 if a file or a folder
    cannot be read.
    """
    from tooltrail.cli._coverage import compare
    from tooltrail.cli._hook_events import say_damage
    from tooltrail.cli._importing import failure_code, import_with_bar
    from tooltrail.cli._long_commands import progress_bar
    from tooltrail.cli._redaction import used_rules
    from tooltrail.importers import Imported
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
        found: list[Compared] = []
        total = sum(transcripts.reader.counts().invocations.values())
        with progress_bar("comparing", total) as update:
            for one in compare(store.reader, transcripts.reader):
                found.append(one)
                update(len(found), 0)
    gaps = [one for one in found if one.result != "matched"]
    if as_json:
        print_array([one.as_dict() for one in found])
    elif gaps:
        _print_table(gaps)
    _say_counts(found)
    # A `.json` file that can be read is not a session: agents keep settings in such files.
    unread = [file for file in skipped if file.is_damaged or file.path.suffix != ".json"]
    for file in unread:
        what = "damaged" if file.is_damaged else "of no known format"
        say(f"{printable(str(file.path))} is {what}; it may be a session")
    damaged = [one for one in outcomes if isinstance(one, Imported) and one.damaged]
    for imported in damaged:
        say_damage(imported.path, imported.damaged)
    return ExitCode.DAMAGED if gaps or unread or damaged else ExitCode.OK


def _say_counts(found: "Sequence[Compared]") -> None:
    counts = Counter(one.result for one in found)
    results = ("matched", "missing", "extra", "differing")
    each = ", ".join(f"{counts[one]:,} {one}" for one in results)
    say(f"compared {counted(len(found), 'call')}: {each}")


def _print_table(gaps: "Sequence[Compared]") -> None:
    rows = [
        [one.result, str(one.id), one.call_id or "", one.tool_name, ", ".join(one.differing)]
        for one in gaps
    ]
    print_table(["RESULT", "ID", "CALL", "TOOL", "DIFFERING"], rows)
