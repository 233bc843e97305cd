"""`tooltrail diff`: what differs between two calls, two sessions, or a call and its receipt."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options

if TYPE_CHECKING:
    from tooltrail.store import InvocationDetail, Reader


@click.command("diff")
@store_options
@click.argument("names", metavar="A [B]", nargs=-1, required=True)
@click.option(
    "--same-args",
    is_flag=True,
    help="Compare A with the newest earlier call that has the same tool and arguments.",
)
@click.option("--surfaces", is_flag=True, help="Compare what A printed with what the model saw.")
@click.option("--session", "sessions", is_flag=True, help="A and B are names of sessions.")
@click.option("--brief", is_flag=True, help="List what differs, without the contents.")
@json_option
def command(
    *,
    location: Location,
    names: tuple[str, ...],
    same_args: bool,
    surfaces: bool,
    sessions: bool,
    brief: bool,
    as_json: bool,
) -> int:
    """Show what differs between two invocations, or between two sessions.

    A and B name two invocations (see `tooltrail show`) or two sessions (id, name, @last). Of two
    invocations: tool, arguments, outcome, complete output, canonical result, receipt, and every
    stream, as unified diffs. Texts that are JSON are laid out. Times and durations are ignored. Of
    two sessions: which calls changed, and which only one of them has. Calls are aligned by tool
    and arguments.

    --surfaces says which bytes and lines of the complete output the model did not see, and which
    stage left them out. Exits with 0 if nothing differs, and with 1 if something differs. Exits
    with 4 if all that is recorded is equal, but not all is recorded.
    """
    if len(names) + same_args + surfaces != 2 or (sessions and len(names) == 1):
        raise click.UsageError("name A and B, or only A with one of --same-args and --surfaces")
    if brief and surfaces:
        raise click.UsageError("--brief cannot be combined with --surfaces")
    with location.open() as store:
        reader = store.reader
        calls = [] if sessions else _invocations(reader, names)
        if not calls:
            from tooltrail.cli._session_diff import print_session_diff

            first, second = map(reader.session, names)
            return print_session_diff(reader, first, second, brief=brief, as_json=as_json)
        if surfaces:
            from tooltrail.cli._cuts import print_cuts

            return print_cuts(store, calls[0], as_json=as_json)
        from tooltrail.cli._call_diff import CallDiff
        from tooltrail.store.read.comparing import same_call_before

        before = same_call_before(reader, calls[0]) if same_args else calls[0]
        return CallDiff(store, before, calls[-1]).report(brief=brief, as_json=as_json)


def _invocations(reader: Reader, names: tuple[str, ...]) -> list[InvocationDetail]:
    """The invocations with these names; none if two sessions have them."""
    from tooltrail.records.errors import NotFoundError

    try:
        return [reader.invocation(name) for name in names]
    except NotFoundError:
        with suppress(NotFoundError):
            if len(list(map(reader.session, names))) == 2:
                return []
        raise
