"""`artifact tail -f`: prints the output of an invocation from its spool, then from the store."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import BinaryIO
from uuid import UUID

import click

from tooltrail.artifacts import (
    FOLLOW_INTERVAL_S,
    StreamFollower,
    spooled_streams,
)
from tooltrail.cli._artifacts import find_artifact, open_known
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._output import copy_blocks, say, write_block
from tooltrail.cli._waiting import wait_for_more
from tooltrail.records.errors import AmbiguousNameError, NotFoundError, TooltrailError
from tooltrail.store import Store, StreamView

_DIGITS = re.compile(r"[0-9a-f]{4,64}")
"""A digest without its prefix, possibly shortened."""

_BLOCK = 1 << 20
"""Bytes per read."""


def follow_output(
    location: Location, name: str, lines: int, role: str | None, *, follow: bool
) -> int:
    """Print the last lines of an artifact, or follow the output of an invocation.

    Args:
        location: location of the store.
        name: name of an invocation or an artifact.
        lines: number of last lines of each stream to print first.
        role: role of the only stream to print; None for all streams but `order`.
        follow: must be True. Without it, `show --stream` prints a single stream.

    Returns:
        The exit code: `INCOMPLETE` if the invocation was killed or interrupted.

    Raises:
        click.UsageError: `follow` is False.
        BrokenPipeError: the reader of standard output has closed the pipe.
        TooltrailError: the name is unknown, or the output cannot be read.
    """
    if not follow:
        raise click.UsageError(
            "--stream needs -f; `tooltrail show ID --stream ROLE` prints a stream"
        )
    with location.open() as store:
        found = _find(store, name)
        if isinstance(found, str):
            copy_blocks(open_known(store, found).iter_tail(lines), sys.stdout.buffer)
            return ExitCode.OK
        with _Following(store, found, lines, role) as following:
            return following.run()


def refuse_invocation(location: Location, name: str) -> None:
    """Raise if a name that is not an artifact is the name of an invocation.

    Raises:
        click.UsageError: the name is an invocation. The message says how to read its output.
    """
    with suppress(TooltrailError), location.open() as store:
        store.reader.invocation(name)
        raise click.UsageError(
            f"{name} is an invocation: pass -f to follow its output, or print a stream with"
            f" `tooltrail show {name} --stream stdout`"
        )


def _find(store: Store, name: str) -> UUID | str:
    """The id of the invocation with this name, else the path of the artifact."""
    if name.startswith(("sha256:", "sha256/")):
        return find_artifact(store, name)
    try:
        return store.reader.invocation(name).summary.id
    except NotFoundError as error:
        if isinstance(error, AmbiguousNameError) or not _DIGITS.fullmatch(name):
            raise
        try:
            return find_artifact(store, name)
        except AmbiguousNameError:
            raise
        except NotFoundError:
            raise error from None


class _Following(ExitStack):
    """Prints the streams of one invocation, from its spool while it exists, then from the store."""

    def __init__(self, store: Store, invocation: UUID, lines: int, role: str | None) -> None:
        super().__init__()
        self._store = store
        self._invocation = invocation
        self._folder = store.spool / str(invocation)
        self._lines = lines
        self._role = role
        self._followers: dict[str, StreamFollower] = {}
        self._is_running = False
        self._was_running = False

    def run(self) -> int:
        """Print until the invocation ends or the reader is gone, and return the exit code."""
        while True:
            # Checked before reading, so that output written before the end is not missed.
            self._is_running = self._store.reader.is_running(self._invocation)
            self._open_new()
            self._print_new()
            if self._is_closed():
                return ExitCode.OK
            if not self._is_running:
                return self._end()
            self._was_running = True
            wait_for_more(FOLLOW_INTERVAL_S)

    def _open_new(self) -> None:
        for role in spooled_streams(self._folder):
            if self._wants(role) and role not in self._followers:
                follower = self.enter_context(
                    StreamFollower(self._folder, role, lambda: self._is_running)
                )
                self._followers[role] = follower
                if not self._was_running:
                    follower.skip_to_last(self._lines)

    def _print_new(self) -> None:
        for role, follower in self._followers.items():
            if follower.ending is None:
                for block in follower.poll():
                    write_block(self._target(role), block)

    def _wants(self, role: str) -> bool:
        return role != "order" if self._role is None else role == self._role

    def _target(self, role: str) -> BinaryIO:
        to_stderr = role == "stderr" and self._role is None
        return sys.stderr.buffer if to_stderr else sys.stdout.buffer

    def _is_closed(self) -> bool:
        """Whether the single requested stream has ended, even if the invocation still runs."""
        follower = None if self._role is None else self._followers.get(self._role)
        return follower is not None and follower.ending == "closed"

    def _end(self) -> int:
        detail = self._store.reader.invocation(self._invocation)
        if detail.summary.state == "started":
            say(
                f"tooltrail: invocation {self._invocation} has not ended, and has no output in"
                f" {self._store.spool}: it runs on another machine, or with another spool"
            )
            return ExitCode.INCOMPLETE
        wanted = [stream for stream in detail.streams if self._wants(stream.role)]
        if self._role is not None and not wanted:
            say(f"tooltrail: invocation {self._invocation} has no stream {self._role!r}")
            return ExitCode.NOT_FOUND
        for stream in wanted:
            self._copy_rest(stream)
        if detail.summary.state != "interrupted":
            return ExitCode.OK
        say(f"tooltrail: invocation {self._invocation} was interrupted")
        return ExitCode.INCOMPLETE

    def _copy_rest(self, stream: StreamView) -> None:
        follower = self._followers.get(stream.role)
        offset = None if follower is None else follower.offset
        if offset == stream.size:
            return  # all bytes are printed; the stream may still wait for an unavailable sink
        if offset is None and self._was_running:
            offset = 0
        for block in self._blocks(stream, offset):
            write_block(self._target(stream.role), block)

    def _blocks(self, stream: StreamView, offset: int | None) -> Iterator[bytes]:
        """Yield a stream from this offset; if the offset is None, its last lines."""
        if stream.artifact_path is not None:
            reader = open_known(self._store, stream.artifact_path)
            yield from (
                reader.iter_tail(self._lines) if offset is None else reader.iter_bytes(offset)
            )
            return
        with self._store.reader.open_stream(stream) as source:
            if offset is None:
                yield from _after_lines(source, max(0, stream.line_count - self._lines))
            else:
                yield from _after_bytes(source, offset)


def _after_bytes(source: BinaryIO, skip: int) -> Iterator[bytes]:
    while block := source.read(_BLOCK):
        yield block[skip:]
        skip = max(skip - len(block), 0)


def _after_lines(source: BinaryIO, skip: int) -> Iterator[bytes]:
    while block := source.read(_BLOCK):
        start = 0
        while skip and (end := block.find(b"\n", start)) >= 0:
            start, skip = end + 1, skip - 1
        yield b"" if skip else block[start:]
