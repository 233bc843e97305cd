"""A PostgreSQL server that disconnects before it can report whether it has committed."""

import select
import socket
import socketserver
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import URL, make_url
from tests.support.serving import LOOPBACK, serving

START = b"INSERT INTO invocations"
END = b"UPDATE invocations"
_COMMIT = b"COMMIT"
_SYNC = b"S\0\0\0\4"
"""A Sync message: the server answers now. The client would have sent the message later."""


class Loss(NamedTuple):
    """The loss of the answer to a commit.

    Attributes:
        statement: statement of the transaction, by which it is recognized.
        is_committed: whether the server receives the commit.
        delay: called between disconnecting the client and the commit; None to disconnect it last.
    """

    statement: bytes
    is_committed: bool
    delay: Callable[[], object] | None


class LossyServer:
    """Forwards all data to the server of a URL, except for answers that must be lost.

    Attributes:
        url: URL of this server.
        turns: number of round trips: how often a client has sent data after the server had.
    """

    def __init__(self, url: str) -> None:
        self._behind = make_url(url)
        self._losses: list[Loss] = []
        self.turns = 0
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with outer.dial() as server:
                    outer.relay(self.request, server)

        self._listener = socketserver.ThreadingTCPServer(LOOPBACK, Handler)
        self._listener.daemon_threads = True
        self.url = _to(self._behind, self._listener.server_address[1])

    def lose_an_answer(
        self,
        to: bytes = START,
        *,
        is_committed: bool = True,
        delay: Callable[[], object] | None = None,
    ) -> None:
        """Lose the answer to the commit of the next transaction with a statement."""
        self._losses.append(Loss(to, is_committed, delay))

    @contextmanager
    def running(self) -> Generator["LossyServer"]:
        with serving(self._listener):
            yield self

    def dial(self) -> socket.socket:
        """A connection to the real server, by the kind of socket that its URL names."""
        named = self._behind.query.get("host", self._behind.host)
        host, port = str(named or "localhost"), self._behind.port or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{host}/.s.PGSQL.{port}")
        return connection

    def relay(self, client: socket.socket, server: socket.socket) -> None:
        """Forward data in both directions, until one side closes or an answer is lost."""
        said, is_servers_turn = b"", False
        while True:
            for speaker in select.select([client, server], [], [])[0]:
                data = speaker.recv(65_536)
                if not data:
                    return
                if speaker is client:
                    said += data
                    self.turns += not is_servers_turn
                is_servers_turn = speaker is client
                if _COMMIT in said:
                    loss = next((one for one in self._losses if one.statement in said), None)
                    said = b""
                    if loss is not None:
                        self._losses.remove(loss)
                        if not loss.is_committed:
                            return
                        if loss.delay is not None:
                            client.shutdown(socket.SHUT_RDWR)
                            loss.delay()
                        server.sendall(data + _SYNC)
                        server.recv(65_536)
                        return
                (server if speaker is client else client).sendall(data)


def _to(url: URL, port: int) -> str:
    query = {name: value for name, value in url.query.items() if name not in ("host", "port")}
    there = url.set(host="127.0.0.1", port=port, query=query)
    return there.render_as_string(hide_password=False)
