"""A PostgreSQL server that commits, and is gone before it can say so."""

import select
import socket
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import URL, make_url

_COMMIT = b"COMMIT"


class LossyServer:
    """Passes everything on to the server of a URL, but for answers that are to be lost.

    Attributes:
        url: through which it is reached.
    """

    def __init__(self, url: str, statement: str = "INSERT INTO invocations") -> None:
        """Prepare to lose the answer to the commit of a transaction with that statement."""
        self._statement = statement.encode()
        self._behind = make_url(url)
        self._to_lose = threading.Semaphore(0)
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with outer.dial() as server:
                    outer.relay(self.request, server)

        self._listener = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._listener.daemon_threads = True
        self.url = _to(self._behind, self._listener.server_address[1])

    def lose_an_answer(self) -> None:
        """Of the next such transaction, which starts an invocation by default."""
        self._to_lose.release()

    @contextmanager
    def running(self) -> Generator["LossyServer"]:
        thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self._listener.shutdown()
            self._listener.server_close()
            thread.join()

    def dial(self) -> socket.socket:
        """A connection to the server behind, by whichever kind of socket its URL names."""
        named = self._behind.query.get("host", self._behind.host)
        host, port = str(named or "localhost"), self._behind.port or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{host}/.s.PGSQL.{port}")
        return connection

    def relay(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what either says, until one has nothing more to say or its answer is lost."""
        is_such = is_lost = False
        while True:
            for speaker in select.select([client, server], [], [])[0]:
                data = speaker.recv(65_536)
                if not data or (speaker is server and is_lost):
                    return
                if speaker is client:
                    is_such |= self._statement in data
                    is_lost |= is_such and _COMMIT in data and self._to_lose.acquire(blocking=False)
                (server if speaker is client else client).sendall(data)


def _to(url: URL, port: int) -> str:
    query = {name: value for name, value in url.query.items() if name not in ("host", "port")}
    there = url.set(host="127.0.0.1", port=port, query=query)
    return there.render_as_string(hide_password=False)
