"""`tooltrail session`: open, close and list sessions, for scripts that run many commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tooltrail.cli._filters import filter_options, say_missing
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import progress_bar
from tooltrail.cli._options import (
    count_option,
    output_options,
    session_name,
    store_options,
    time_option,
)
from tooltrail.cli._output import Listing, attributes, say, write
from tooltrail.cli._tables import Columns, count_damaged, print_list
from tooltrail.cli._times import shown_in_list
from tooltrail.records.errors import SessionClosedError
from tooltrail.records.ids import short_id

if TYPE_CHECKING:
    from tooltrail.store import InvocationFilter

_COLUMNS: Final[Columns] = {
    "SESSION": lambda view: short_id(view.id),
    "OPENED": lambda view: shown_in_list(view.opened_at),
    "CLOSED": lambda view: shown_in_list(view.closed_at),
    "CALLS": lambda view: str(view.invocation_count),
    "OPEN": lambda view: str(view.open_count),
    "AGENT": lambda view: view.agent or "",
    "TITLE": lambda view: ": ".join(filter(None, (view.name, view.title))),
}


@click.group("session")
def command() -> None:
    """Open, close and list sessions."""


@command.command("open")
@store_options
@click.option(
    "--name", callback=session_name, help="Name with which other programs join the session."
)
@click.option("--title", help="Title of the session.")
@click.option("--agent", help="Name of the agent.")
@click.option(
    "--parent", metavar="SESSION", help="Session that starts this session, for a sub-agent."
)
def open_(
    *,
    location: Location,
    name: str | None,
    title: str | None,
    agent: str | None,
    parent: str | None,
) -> None:
    """Open a session and print its id.

    In a script: export TOOLTRAIL_SESSION=$(tooltrail session open --title build)
    """
    from tooltrail.cli._recording import session_of

    if name is not None and session_of(name)[1] is None:
        raise click.BadParameter(
            f"{name!r} has the form of an id: commands would read it as an id, not as a name.",
            param_hint="'--name'",
        )
    with progress_bar("recording", may_wait=True), location.open(create=True) as store:
        parent_id = None if parent is None else store.reader.session(parent).id
        session = store.open_session(name=name, title=title, agent=agent, parent=parent_id)
        write(f"{session.id}\n")


@command.command()
@store_options
@click.argument("name", metavar="[SESSION]", envvar="TOOLTRAIL_SESSION", default="")
def close(location: Location, name: str) -> None:
    """Close a session, by default $TOOLTRAIL_SESSION.

    Calls that are recorded later are marked as late.
    """
    if not name:
        raise click.UsageError("name a session, or set TOOLTRAIL_SESSION")
    with progress_bar("recording", may_wait=True), location.open() as store:
        view = store.reader.session(name)
        if view.closed_at is not None:
            raise SessionClosedError(f"session {view.id} is already closed")
        store.join_session(view.id).close()
        say(f"closed session {view.id}")


@command.command("ls")
@store_options
@filter_options
@count_option
@click.option("--cursor", metavar="SESSION", help="Continue after this session.")
@output_options
@time_option
def ls(
    *, location: Location, where: InvocationFilter, count: int, cursor: str | None, output: Listing
) -> None:
    """List sessions, newest first.

    With filters, only sessions with a call that matches all of them: session ls --tool Bash.
    """
    from tooltrail.store import SessionView

    with location.open() as store:
        reader = store.reader
        last = None if cursor is None else reader.session(cursor).id
        views = reader.sessions(where, limit=count + 1 if count else None, cursor=last)
        if not views:
            say_missing(reader, where)
    listed = views[: count or None]
    members = attributes(*SessionView.member_types)
    spare = ("CLOSED", "OPEN", "AGENT")
    print_list(listed, output, members, _COLUMNS, right=("CALLS", "OPEN"), spare=spare)
    count_damaged(listed, output)
    if len(listed) < len(views):
        say(f"{count:,} listed; -n 0 for all, --cursor {listed[-1].id} for the next")
