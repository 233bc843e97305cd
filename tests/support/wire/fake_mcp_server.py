"""An MCP server on loopback without tools of its own: a test gives it those, and their results."""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.wire.schemas import problems

_REVISION = "2025-11-25"
_NO_SUCH_METHOD = -32601


@dataclass(slots=True)
class FakeMcpServer:
    """The server, as a test sees it.

    Attributes:
        url: its address.
        tools: what `tools/list` tells.
        results: what the next calls are answered with, in order.
        calls: the requests `tools/call` that came.
        refused: what was wrong with them.
    """

    url: str
    tools: list[Any]
    results: list[Any]
    calls: list[Any] = field(default_factory=list[Any])
    refused: list[str] = field(default_factory=list[str])

    def result_of(self, method: str, request: Any) -> Any:
        """What a request is answered with; None where there is no such method."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": _REVISION,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }
            case "tools/list":
                return {"tools": self.tools}
            case "tools/call":
                self.calls.append(request)
                self.refused += problems("mcp-2025.request", request)
                return self.results.pop(0)
            case _:
                return None


@contextmanager
def fake_mcp_server(tools: list[Any], results: list[Any]) -> Generator[FakeMcpServer]:
    """A server for a test, on a port that is free."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    fake = FakeMcpServer(f"http://127.0.0.1:{server.server_address[1]}/mcp", tools, results)
    server.fake = fake  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name there
        pass

    def do_GET(self) -> None:
        # It has nothing to say by itself.
        self._send(405, None)

    def do_DELETE(self) -> None:
        self._send(200, None)

    def do_POST(self) -> None:
        fake: FakeMcpServer = self.server.fake  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request:
            self._send(202, None)
            return
        head = {"jsonrpc": "2.0", "id": request["id"]}
        result = fake.result_of(request["method"], request)
        if result is None:
            error = {"code": _NO_SUCH_METHOD, "message": "Method not found"}
            self._send(200, {**head, "error": error})
        else:
            self._send(200, {**head, "result": result})

    def _send(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
