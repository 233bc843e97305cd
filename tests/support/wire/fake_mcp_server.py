"""An MCP server on loopback; a test provides its tools and their results."""

# Untyped JSON of other programs.
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
        tools: answer to `tools/list`.
        results: answers to the next calls, in order.
        calls: received `tools/call` requests.
        refused: problems of these requests.
    """

    url: str
    tools: list[Any]
    results: list[Any]
    calls: list[Any] = field(default_factory=list[Any])
    refused: list[str] = field(default_factory=list[str])

    def result_of(self, method: str, request: Any) -> Any:
        """The answer to a request; None for an unknown method."""
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
    """A server for a test on a free port."""
    server = ThreadingHTTPServer(LOOPBACK, _Handler)
    server.daemon_threads = True
    fake = FakeMcpServer(f"{url_of(server)}/mcp", tools, results)
    server.fake = fake  # type: ignore[attr-defined]
    with serving(server):
        yield fake


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  name in the base class
        # The server sends no messages on its own.
        self.send(405, b"")

    def do_DELETE(self) -> None:  # noqa: N802  name in the base class
        self.send(200, b"")

    def do_POST(self) -> None:  # noqa: N802  name in the base class
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
