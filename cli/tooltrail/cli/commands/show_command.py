"""`tooltrail show`: one invocation with its three surfaces."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, raw_option, store_options, time_option
from tooltrail.cli._output import (
    on_terminal,
    print_array,
    printable,
    say,
    say_damage,
    write,
    write_block,
)
from tooltrail.cli._pager import page_output

if TYPE_CHECKING:
    from tooltrail.store import InvocationDetail, Rerendering, Store

SURFACES = ("complete", "canonical", "receipt", "input")


@click.command("show")
@store_options
@click.argument("name", metavar="[INVOCATION]", default="@last")
@click.option(
    "--surface", type=click.Choice(SURFACES), help="Print only this surface, byte for byte."
)
@click.option(
    "--stream", metavar="ROLE", help="Print only the bytes of this stream: stdout, stderr, …"
)
@click.option(
    "--rerender", is_flag=True, help="Compare the receipt with the text of the current renderer."
)
@raw_option
@json_option
@time_option
def command(
    *,
    location: Location,
    name: str,
    surface: str | None,
    stream: str | None,
    rerender: bool,
    as_json: bool,
) -> int:
    """Show one invocation with its three surfaces.

    INVOCATION is an id, a unique beginning or end of an id, the provider's id of the call,
    SESSION#SEQ, or the newest one: @last (the default), @last:TOOL, @running, @running:TOOL.
    --surface complete prints recorded stdout on stdout and recorded stderr on stderr.
    --rerender prints a unified diff, and exits with 1 if the texts differ. Changes nothing.
    """
    if sum(map(bool, (surface, stream, as_json or rerender))) > 1:
        raise click.UsageError(
            "choose one of --surface, --stream and --json; --rerender can only be combined with"
            " --json"
        )
    with location.open() as store:
        detail = store.reader.invocation(name)
        if stream is not None:
            return _print_output(store, detail, stream)
        if surface is not None:
            return _print_surface(store, detail, surface)
        if rerender:
            return _print_rerendering(store, detail, as_json=as_json)
    from tooltrail.cli._surfaces import as_record, describe

    if as_json:
        print_array([as_record(detail)])
    else:
        page_output()
        write(describe(detail))
    return say_damage([detail.summary.damage])


def _print_rerendering(store: Store, detail: InvocationDetail, *, as_json: bool) -> int:
    from tooltrail.store import rerender

    found = rerender(store.reader, detail, store.families)
    if as_json:
        print_array([found.as_dict()])
    else:
        write(on_terminal(_diff_of(found)))
    if found.state == "open":
        return _say_absent(store, detail, "receipt")
    say(_sentence_of(found))
    return ExitCode.of_damage(
        is_damaged=found.state == "drifted", is_incomplete=found.state == "incomparable"
    )


def _sentence_of(found: Rerendering) -> str:
    """One sentence with the result of comparing a receipt."""
    about = f"the receipt of invocation {found.invocation_id}"
    if found.today is not None and found.state != "drifted":
        return f"{about} is the text that renderer {found.today.renderer} makes today"
    if found.state == "drifted":
        return f"{about} differs from the text of today's renderer: {printable(found.reason)}"
    if found.state == "not_rendered":
        return f"invocation {found.invocation_id} has nothing to compare: {found.reason}"
    return f"{about} cannot be compared: {printable(found.reason)}"


def _diff_of(found: Rerendering) -> str:
    """The unified diff from the stored text to today's text; empty if one of them is missing."""
    import difflib
    import re

    if found.stored is None or found.today is None:
        return ""
    # Split at newlines only, like `diff`. `str.splitlines` also splits at a form feed.
    before, after = (re.findall(r"[^\n]*\n|.+", one.text) for one in (found.stored, found.today))
    names = f"stored ({found.stored.renderer})", f"today ({found.today.renderer})"
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, *names)
    )


def _print_surface(store: Store, detail: InvocationDetail, surface: str) -> int:
    if surface == "input":
        write_block(sys.stdout.buffer, detail.arguments)
        return ExitCode.OK
    if surface == "complete":
        return _print_output(store, detail, None)
    receipt = None if detail.receipt is None else detail.receipt.text
    text = receipt if surface == "receipt" else detail.canonical_json
    if text is None:
        return _say_absent(store, detail, surface)
    write_block(sys.stdout.buffer, text.encode("utf-8", "surrogatepass"))
    return ExitCode.OK


def _print_output(store: Store, detail: InvocationDetail, role: str | None) -> int:
    from tooltrail.cli._texts import print_output, streams_of

    if detail.complete_json is None:
        return _say_absent(store, detail, "output")
    return print_output(store, streams_of(store, detail, role), detail, role)


def _say_absent(store: Store, detail: InvocationDetail, surface: str) -> int:
    from tooltrail.artifacts import spooled_streams

    if detail.summary.state != "started":
        say(f"tooltrail: invocation {detail.summary.id}: {detail.absence_of(surface)}")
        return ExitCode.INCOMPLETE
    spool = store.spool / str(detail.summary.id)
    where = f"; its output so far is in {spool}" if spooled_streams(spool) else ""
    say(f"tooltrail: invocation {detail.summary.id} has not ended{where}")
    return ExitCode.INCOMPLETE
