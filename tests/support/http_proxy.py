"""An HTTP proxy in front of one server, which counts the traffic and can interfere.

Each request is passed to `rule` before it is forwarded. The rule may return an answer, raise `Cut`
to cut the connection, wait for an event, or do nothing.
"""

import contextlib
import http.client
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer

from tests.support.serving import LOOPBACK, QuietHandler, serving, url_of

HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


class Cut(Exception):  # noqa: N818 - an instruction, not an error
    """Close the connection without an answer."""


@dataclass
class Exchange:
    """One request, and the size of the body of its answer."""

    method: str
    target: str
    range: str | None
    status: int = 0
    answered_bytes: int = 0
    done: threading.Event = field(default_factory=threading.Event)


Rule = Callable[[Exchange], tuple[int, bytes] | None]


def pass_all(exchange: Exchange) -> tuple[int, bytes] | None:
    """The rule that lets every request pass."""


class Proxy:
    """A running proxy; `log` lists the exchanges in the order in which they began."""

    def __init__(self, backend_port: int) -> None:
        self.backend_port = backend_port
        self.rule: Rule = pass_all
        self.log: list[Exchange] = []
        proxy = self

        class Handler(_Handler):
            def run(self, body: bytes) -> None:
                proxy.exchange(self, body)

        self._server = ThreadingHTTPServer(LOOPBACK, Handler)
        self._server.daemon_threads = True
        self.url = url_of(self._server)

    @contextlib.contextmanager
    def running(self) -> Generator["Proxy"]:
        with serving(self._server):
            yield self

    def exchange(self, handler: "_Handler", body: bytes) -> None:
        exchange = Exchange(handler.command, handler.path, handler.headers.get("Range"))
        self.log.append(exchange)
        try:
            answer = self.rule(exchange)
            status, headers, data = (
                (answer[0], [], answer[1]) if answer else self._ask(handler, body)
            )
        except (Cut, OSError, http.client.HTTPException):
            handler.close_connection = True
            exchange.done.set()
            return
        exchange.status, exchange.answered_bytes = status, len(data)
        # A client that was killed or gave up does not read the answer any more.
        with contextlib.suppress(OSError):
            handler.answer(status, headers, data)
        exchange.done.set()

    def ask_for(self, target: str) -> str:
        """The target that is requested from the server instead of `target`."""
        return target

    def _ask(self, handler: "_Handler", body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        backend = http.client.HTTPConnection("127.0.0.1", self.backend_port, timeout=60)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in HOP_HEADERS}
            headers.pop("Expect", None)
            backend.request(handler.command, self.ask_for(handler.path), body, headers)
            answer = backend.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            backend.close()


class _Handler(QuietHandler):
    def run(self, body: bytes) -> None:
        raise NotImplementedError

    def handle_one(self) -> None:
        self.run(self._body())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one  # noqa: N815 - the base's names

    def answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        sizes = [value for name, value in headers if name.lower() == "content-length"]
        # The answer to HEAD has a size, but no body.
        self.send_header("Content-Length", sizes[0] if sizes else str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data
