"""Moves the output of the child from its pipes to the recorder and to our own output.

Each ready stream is read once per round, so that neither can starve the other. If an outlet is
full, its stream is not read until the outlet is empty. The child then waits, as without us.
"""

import errno
import os
import selectors
from collections.abc import Callable, Iterable, Mapping

from tooltrail.cli._process.outcome import ChunkHandler, StreamName
from tooltrail.cli._process.outlet import Outlet
from tooltrail.cli._process.spawn import Source

Ready = Callable[[], None]


class _Feed:
    def __init__(self, name: StreamName, source: Source, outlet: Outlet) -> None:
        self.name: StreamName = name
        self.source = source
        self.outlet = outlet
        self.is_open = True


class Pump:
    """Pumps both streams of one child. Not thread-safe. `close` closes every descriptor.

    Attributes:
        tee_closed: streams that could not be passed on to their end.
        tee_error: first write error other than a closed pipe; see `ChildExit`.
        recorder_error: first exception of a callback.
        progress_count: number of flushes that wrote bytes.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        outlets: Mapping[StreamName, Outlet],
        on_chunk: ChunkHandler,
    ) -> None:
        self._selector = selector
        self._outlets = outlets
        self._on_chunk = on_chunk
        self._feeds: list[_Feed] = []
        self.tee_closed: list[StreamName] = []
        self.tee_error: OSError | None = None
        self.recorder_error: Exception | None = None
        self.progress_count = 0

    def start(self, sources: Mapping[StreamName, Source]) -> None:
        """Start reading `sources`. The pump closes them."""
        self._feeds = [_Feed(name, source, self._outlets[name]) for name, source in sources.items()]
        for feed in self._feeds:
            self._listen(feed)

    @property
    def is_reading(self) -> bool:
        """Whether a source is still open."""
        return any(feed.is_open for feed in self._feeds)

    @property
    def is_delivering(self) -> bool:
        """Whether an outlet has bytes that are not written yet."""
        return any(outlet.is_pending for outlet in self._outlets.values())

    def guard(self, callback: Callable[[], None]) -> None:
        """Call the recorder, unless an earlier call has failed.

        After a failure, the record is a correct beginning of the output. Further calls would leave
        an unmarked gap in the record.
        """
        if self.recorder_error is not None:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - returned in ChildExit; the child must go on
            self.recorder_error = error

    def stop_reading(self) -> None:
        """Record and queue the current content of the pipes, then close them."""
        for feed in self._open_feeds():
            self._drain(feed)
            self._end(feed)
        for outlet in self._distinct_outlets():
            self._flush(outlet)

    def give_up_delivering(self) -> None:
        """Drop bytes that the readers do not read."""
        for outlet in self._distinct_outlets():
            if outlet.is_pending:
                self._abandon(outlet)

    def close(self) -> None:
        """Close the pipes and the outlets without reading."""
        for feed in self._open_feeds():
            self._end(feed)
        for outlet in self._distinct_outlets():
            self._unregister(outlet.fd)
            outlet.close()

    def _pull(self, feed: _Feed) -> None:
        if not feed.is_open:
            return  # an earlier event of the same round closed it
        data = self._read(feed)
        if data:
            self._put(feed, data)
            self._flush(feed.outlet)
        elif data is not None:
            self._end(feed)

    def _read(self, feed: _Feed) -> bytes | None:
        """Read and record once; None if the pipe is empty, `b""` at its end."""
        try:
            data = os.read(feed.source.fd, feed.source.capacity)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""  # EIO on Linux: the pseudo-terminal has no writer left
        if data:
            self.guard(lambda: self._on_chunk(feed.name, data))
        return data

    def _drain(self, feed: _Feed) -> None:
        """Read at most the capacity of the pipe, so that a fast writer cannot keep us here."""
        size = 0
        while size < feed.source.capacity and (data := self._read(feed)):
            size += len(data)
            self._put(feed, data)

    def _put(self, feed: _Feed, data: bytes) -> None:
        feed.outlet.put(data)
        if feed.outlet.fd is None and feed.name not in self.tee_closed:  # closed at our start
            self.tee_closed.append(feed.name)
            self.tee_error = self.tee_error or OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _flush(self, outlet: Outlet) -> None:
        was_held = self._is_registered(outlet.fd)
        try:
            self.progress_count += outlet.flush()
        except OSError as error:
            self._reader_gone(outlet, error)
            return
        if outlet.is_pending and not was_held:
            self._hold(outlet)
        elif was_held and not outlet.is_pending:
            self._release(outlet)

    def _hold(self, outlet: Outlet) -> None:
        for feed in self._open_feeds(outlet):
            self._unregister(feed.source.fd)
        assert outlet.fd is not None
        ready: Ready = lambda: self._flush(outlet)  # noqa: E731 - typed, for the selector's `data`
        self._selector.register(outlet.fd, selectors.EVENT_WRITE, ready)

    def _release(self, outlet: Outlet) -> None:
        self._unregister(outlet.fd)
        for feed in self._open_feeds(outlet):
            self._listen(feed)

    def _reader_gone(self, outlet: Outlet, error: OSError) -> None:
        """Record what the child has written, then close its pipe, so that it gets SIGPIPE."""
        if not isinstance(error, BrokenPipeError) and self.tee_error is None:
            self.tee_error = error
        feeds = self._open_feeds(outlet)
        self._abandon(outlet)
        for feed in feeds:
            self._drain(feed)
            self._end(feed)

    def _abandon(self, outlet: Outlet) -> None:
        self._unregister(outlet.fd)
        outlet.drop()
        self.tee_closed.extend(feed.name for feed in self._feeds if feed.outlet is outlet)

    def _listen(self, feed: _Feed) -> None:
        ready: Ready = lambda: self._pull(feed)  # noqa: E731 - typed, for the selector's `data`
        self._selector.register(feed.source.fd, selectors.EVENT_READ, ready)

    def _end(self, feed: _Feed) -> None:
        self._unregister(feed.source.fd)
        os.close(feed.source.fd)
        feed.is_open = False

    def _open_feeds(self, outlet: Outlet | None = None) -> list[_Feed]:
        feeds = [feed for feed in self._feeds if feed.is_open]
        return feeds if outlet is None else [feed for feed in feeds if feed.outlet is outlet]

    def _distinct_outlets(self) -> Iterable[Outlet]:
        return {id(outlet): outlet for outlet in self._outlets.values()}.values()

    def _is_registered(self, fd: int | None) -> bool:
        return fd is not None and fd in self._selector.get_map()

    def _unregister(self, fd: int | None) -> None:
        if fd is not None and self._is_registered(fd):
            self._selector.unregister(fd)
