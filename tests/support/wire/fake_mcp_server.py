"""An MCP server on loopback without tools of its own: a test gives it those, and their results."""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from tests.support.serving import LOOPBACK, QuietHandler, serving, url_of
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
    server = ThreadingHTTPServer(LOOPBACK, _Handler)
    server.daemon_threads = True
    fake = FakeMcpServer(f"{url_of(server)}/mcp", tools, results)
    server.fake = fake  # type: ignore[attr-defined]
    with serving(server):
        yield fake


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  the name there
        # It has nothing to say by itself.
        self.send(405, b"")

    def do_DELETE(self) -> None:  # noqa: N802  the name there
        self.send(200, b"")

    def do_POST(self) -> None:  # noqa: N802  the name there
        fake: FakeMcpServer = self.server.fake  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request:
            self.send(202, b"")
            return
        head = {"jsonrpc": "2.0", "id": request["id"]}
        result = fake.result_of(request["method"], request)
        if result is None:
            answer = {"error": {"code": _NO_SUCH_METHOD, "message": "Method not found"}}
        else:
            answer = {"result": result}
        self.send(200, json.dumps({**head, **answer}).encode())
