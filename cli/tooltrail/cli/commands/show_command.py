"""`tooltrail show`: one invocation, whole."""

import shutil
import sys

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options, time_option
from tooltrail.cli._output import copy_stream, print_records, say, write, write_bytes
from tooltrail.cli._surfaces import as_record, describe, describe_side_by_side
from tooltrail.store import InvocationDetail, Reader

SURFACES = ("complete", "canonical", "receipt", "input")


@click.command("show")
@store_options
@click.argument("name", metavar="INVOCATION", default="@last")
@click.option("--surface", type=click.Choice(SURFACES), help="Print this surface alone, exactly.")
@click.option("--stream", metavar="ROLE", help="Print this stream's bytes alone: stdout, stderr, …")
@click.option("--side-by-side", is_flag=True, help="Print the three surfaces in columns.")
@json_option
@time_option
def command(
    *,
    location: Location,
    name: str,
    surface: str | None,
    stream: str | None,
    side_by_side: bool,
    as_json: bool,
    utc: bool,
) -> int:
    """Show one invocation with its three surfaces.

    INVOCATION is an id, a unique beginning or end of one, SESSION#SEQ, @last (the default) or
    @last:TOOL. As recorded, --surface complete prints stdout on stdout and stderr on stderr.
    """
    with location.open() as store:
        detail = store.reader.invocation(name)
        if stream is not None:
            return _print_stream(store.reader, detail, stream)
        if surface is not None:
            return _print_surface(store.reader, detail, surface)
        if as_json:
            print_records([as_record(detail)], "json")
        elif side_by_side:
            width = shutil.get_terminal_size().columns
            write(describe_side_by_side(detail, store.reader, utc=utc, width=width))
        else:
            write(describe(detail, store.reader, utc=utc))
    return ExitCode.OK


def _print_surface(reader: Reader, detail: InvocationDetail, surface: str) -> int:
    if surface == "input":
        write_bytes(detail.arguments)
        return ExitCode.OK
    if detail.receipt is None or detail.canonical_json is None:
        return _said_open(detail)
    if surface == "receipt":
        write_bytes(detail.receipt.text.encode())
    elif surface == "canonical":
        write_bytes(detail.canonical_json.encode())
    else:
        return _print_complete(reader, detail)
    return ExitCode.OK


def _print_complete(reader: Reader, detail: InvocationDetail) -> int:
    if not detail.streams:
        write_bytes((detail.complete_json or "").encode())
    for stream in detail.streams:
        if stream.role != "order":
            target = sys.stderr.buffer if stream.role == "stderr" else sys.stdout.buffer
            with reader.open_stream(stream) as source:
                copy_stream(source, target)
    return _said_if_lost(detail)


def _print_stream(reader: Reader, detail: InvocationDetail, role: str) -> int:
    found = detail.stream(role)
    if found is None and detail.complete_json is None:
        return _said_open(detail)
    if found is None:
        roles = ", ".join(stream.role for stream in detail.streams) or "none"
        say(f"tooltrail: invocation {detail.summary.id} has no stream {role!r}; it has {roles}")
        return ExitCode.NOT_FOUND
    with reader.open_stream(found) as source:
        copy_stream(source, sys.stdout.buffer)
    return _said_if_lost(detail)


def _said_open(detail: InvocationDetail) -> int:
    say(f"tooltrail: invocation {detail.summary.id} has not ended")
    return ExitCode.INCOMPLETE


def _said_if_lost(detail: InvocationDetail) -> int:
    lost = [stream for stream in detail.streams if stream.loss_reason is not None]
    for stream in lost:
        missing = stream.produced_size - stream.size
        say(f"tooltrail: {stream.role}: {missing:,} bytes were not kept: {stream.loss_reason}")
    return ExitCode.INCOMPLETE if lost else ExitCode.OK
