"""`tooltrail diff`: what differs between two calls, two sessions, or a call and its receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._pager import page_output

if TYPE_CHECKING:
    from tooltrail.store import InvocationDetail, Reader, Store

_FORMS = "name A and B, or only A with one of --same-args and --surfaces"


@click.command("diff")
@store_options
@click.argument("names", metavar="A [B]", nargs=-1, required=True)
@click.option(
    "--same-args",
    is_flag=True,
    help="Compare the newest call before A with the same tool and arguments with A.",
)
@click.option("--surfaces", is_flag=True, help="Compare what A printed with what the model saw.")
@click.option("--session", "sessions", is_flag=True, help="A and B are names of sessions.")
@click.option("--brief", is_flag=True, help="Only say what differs, and read no output.")
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

    A and B are invocations, named as for `tooltrail show`; otherwise sessions, named by id, name
    or @last. Of two invocations: tool, arguments, outcome, complete output, canonical result,
    receipt, and every stream, as unified diffs. Texts that are JSON are laid out. Times and the
    duration are no difference. Of two sessions: which calls changed, and which only one of them
    has. Calls are aligned by tool and arguments.

    --surfaces says which bytes and lines of the complete output the model did not see, and which
    stage left them out. Exits with 0 if nothing differs, and with 1 otherwise.
    """
    if len(names) + same_args + surfaces != 2 or (sessions and len(names) == 1):
        raise click.UsageError(_FORMS)
    with location.open() as store:
        if not as_json:
            page_output()
        if surfaces:
            from tooltrail.cli._cuts import print_cuts

            return print_cuts(store, store.reader.invocation(names[0]), as_json=as_json)
        if sessions or (len(names) == 2 and _are_sessions(store.reader, names)):
            from tooltrail.cli._session_diff import print_session_diff

            first, second = map(store.reader.session, names)
            differs = print_session_diff(store.reader, first, second, brief=brief, as_json=as_json)
            return ExitCode.DAMAGED if differs else ExitCode.OK
        from tooltrail.cli._call_diff import CallDiff

        calls = CallDiff(store, *_calls(store, names))
        differs = (calls.print_json if as_json else calls.print_text)(brief=brief)
        return ExitCode.DAMAGED if differs else ExitCode.OK


def _are_sessions(reader: Reader, names: tuple[str, ...]) -> bool:
    """Whether the names are those of sessions, and not of invocations."""
    from tooltrail.records.errors import NotFoundError

    try:
        for name in names:
            reader.is_running(name)  # finds the invocation, and reads none of its texts
    except NotFoundError as error:
        try:
            for name in names:
                reader.session(name)
        except NotFoundError:
            raise error from None
        return True
    return False


def _calls(store: Store, names: tuple[str, ...]) -> tuple[InvocationDetail, InvocationDetail]:
    from tooltrail.store.read.comparing import same_call_before

    after = store.reader.invocation(names[-1])
    if len(names) == 2:
        return store.reader.invocation(names[0]), after
    return same_call_before(store.reader, after), after
