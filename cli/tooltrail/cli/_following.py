"""`tail`: prints the output of an invocation from its spool, then from the store."""

import sys
from contextlib import ExitStack
from uuid import UUID

from tooltrail.artifacts import (
    FOLLOW_INTERVAL_S,
    StreamFollower,
    spooled_streams,
)
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._output import BlockWriter, copy_blocks, say
from tooltrail.cli._texts import find, say_incomplete, stored, target_of, texts_of, wanted
from tooltrail.cli._waiting import wait_for_more
from tooltrail.store import Store, StreamView


def print_tail(location: Location, name: str, lines: int, role: str | None, *, follow: bool) -> int:
    """Print the last lines of each stream; with `follow`, go on until the invocation ends."""
    with location.open() as store:
        found = find(store, name)
        if isinstance(found, UUID):
            if not follow:
                texts_of(store, str(found), role)  # refuses a stream that there is not
            with _Following(store, found, lines, role) as following:
                return following.run(follow=follow)
        (text,), _ = texts_of(store, found, None)
        copy_blocks(text.part(lambda one: one.iter_tail(lines)), sys.stdout.buffer)
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
        self._writers: dict[str, BlockWriter] = {}
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
                return ExitCode.OK if self._followers else self._say_silent()
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
                    self._writer_of(role).write(block)

    def _writer_of(self, role: str) -> BlockWriter:
        """The writer of a stream. What it holds back is printed when this object is closed."""
        if role not in self._writers:
            self._writers[role] = BlockWriter(target_of(role, self._role))
            self.callback(self._writers[role].finish)
        return self._writers[role]

    def _is_closed(self) -> bool:
        """Whether the single requested stream has ended, even if the invocation still runs."""
        follower = None if self._role is None else self._followers.get(self._role)
        return follower is not None and follower.ending == "closed"

    def _say_silent(self) -> int:
        say(
            f"tooltrail: invocation {self._invocation} runs, and has no output in"
            f" {self._store.spool} yet; tail -f waits for it"
        )
        return ExitCode.INCOMPLETE

    def _end(self) -> int:
        detail = self._store.reader.invocation(self._invocation)
        if detail.summary.state == "started":
            why = "it runs on another machine, or with another spool"
            if detail.source is not None:
                why = "a hook or an import recorded its start, so its output comes with its end"
            say(
                f"tooltrail: invocation {self._invocation} has not ended, and has no output in"
                f" {self._store.spool}: {why}"
            )
            return ExitCode.INCOMPLETE
        streams = [stream for stream in detail.streams if wanted(stream.role, self._role)]
        if self._role is not None and not streams:
            say(f"tooltrail: invocation {self._invocation} has no stream {self._role!r}")
            return ExitCode.NOT_FOUND
        for stream in streams:
            self._copy_rest(stream)
        if detail.summary.state != "interrupted":
            return say_incomplete(self._store, detail, self._role)
        say(f"tooltrail: invocation {self._invocation} was interrupted")
        return ExitCode.INCOMPLETE

    def _copy_rest(self, stream: StreamView) -> None:
        writer, follower = self._writer_of(stream.role), self._followers.get(stream.role)
        offset = None if follower is None else follower.offset
        # A stream that is printed completely is not read: its sink may be unavailable.
        if offset != stream.size:
            if offset is None and self._was_running:
                offset = 0
            for block in stored(self._store, stream).part(
                lambda one: one.iter_tail(self._lines) if offset is None else one.iter_bytes(offset)
            ):
                writer.write(block)
        writer.finish()
