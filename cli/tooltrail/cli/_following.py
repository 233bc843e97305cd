"""`tail`: prints the output of an invocation from its spool, then from the store."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO
from uuid import UUID

from tooltrail.artifacts import (
    FOLLOW_INTERVAL_S,
    StreamFollower,
    spooled_streams,
)
from tooltrail.cli._artifacts import open_known
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._output import copy_blocks, say, write_block
from tooltrail.cli._texts import find, open_texts, target_of, wanted
from tooltrail.cli._waiting import wait_for_more
from tooltrail.store import Store, StreamView

_BLOCK = 1 << 20
"""Bytes per read."""


def print_tail(location: Location, name: str, lines: int, role: str | None, *, follow: bool) -> int:
    """Print the last lines of an artifact or of an invocation, and follow an invocation.

    Args:
        location: location of the store.
        name: name of an invocation or an artifact.
        lines: number of last lines of each stream to print first.
        role: role of the only stream to print; None for all streams but `order`.
        follow: whether to go on until the invocation ends.

    Returns:
        The exit code: `INCOMPLETE` if the invocation was killed or interrupted.

    Raises:
        BrokenPipeError: the reader of standard output has closed the pipe.
        TooltrailError: the name is unknown, or the output cannot be read.
    """
    with location.open() as store:
        found = find(store, name)
        if isinstance(found, UUID) and (follow or store.reader.is_running(found)):
            with _Following(store, found, lines, role) as following:
                return following.run(follow=follow)
        with open_texts(store, name, role, is_checked=True) as texts:
            for one, reader in texts.items():
                copy_blocks(reader.iter_tail(lines), target_of(one, role))
        return ExitCode.OK


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

    def run(self, *, follow: bool) -> int:
        """Print, with `follow` until the invocation ends, and return the exit code."""
        while True:
            # Checked before reading, so that output written before the end is not missed.
            self._is_running = self._store.reader.is_running(self._invocation)
            self._open_new()
            self._print_new()
            if self._is_closed():
                return ExitCode.OK
            if not self._is_running:
                return self._end()
            if not follow:
                return ExitCode.OK
            self._was_running = True
            wait_for_more(FOLLOW_INTERVAL_S)

    def _open_new(self) -> None:
        for role in spooled_streams(self._folder):
            if wanted(role, self._role) and role not in self._followers:
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
                    write_block(target_of(role, self._role), block)

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
        streams = [stream for stream in detail.streams if wanted(stream.role, self._role)]
        if self._role is not None and not streams:
            say(f"tooltrail: invocation {self._invocation} has no stream {self._role!r}")
            return ExitCode.NOT_FOUND
        for stream in streams:
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
            write_block(target_of(stream.role, self._role), block)

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
