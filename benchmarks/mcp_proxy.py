"""The time that the MCP proxy adds to a call, beside the direct connection to the same server."""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from subprocess import PIPE, Popen
from threading import Thread

import httpx

from benchmarks._measure import TOOLTRAIL, Report, Times, compare, line, scratch_folder

CALLS = 500

Ask = Callable[[bytes], object]


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self) -> None:
        answer = _answer(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        """Print nothing."""


def lines() -> Report:
    """The added milliseconds at the median, over stdio and over HTTP."""
    with scratch_folder() as folder:
        proxy = (*TOOLTRAIL, "mcp-proxy", "--db", str(folder / "tooltrail.db"))
        server = (sys.executable, "-m", __name__)
        with _over_stdio(*proxy, "--", *server) as subject, _over_stdio(*server) as baseline:
            yield _added("mcp-proxy, stdio", "the server itself", _times(subject, baseline))
        with (
            _http_server() as url,
            httpx.Client() as client,
            _over_stdio(*proxy, "--url", url) as subject,
        ):
            times = _times(subject, lambda body: client.post(url, content=body))
            yield _added("mcp-proxy, streamable HTTP", "httpx", times)


def _added(subject: str, baseline: str, times: Times) -> str:
    through, direct = 1000 * times.subject, 1000 * times.baseline
    detail = f"{through:.2f} and {direct:.2f} ms"
    return line(f"{subject}, added ms", through - direct, "≤ 1", baseline, detail)


def _times(subject: Ask, baseline: Ask) -> Times:
    numbers = count()
    return compare(
        lambda: subject(_request(next(numbers))), lambda: baseline(_request(next(numbers))), CALLS
    )


@contextmanager
def _over_stdio(*command: str) -> Generator[Ask]:
    """Send a message to a program, and wait for the line that it answers."""
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(body: bytes) -> bytes:
            stdin.write(body + b"\n")
            stdin.flush()
            return stdout.readline()

        yield ask
        stdin.close()


@contextmanager
def _http_server() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _request(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"number": number}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def _answer(body: bytes) -> bytes:
    result = {"content": [{"type": "text", "text": "hello"}]}
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}).encode()


if __name__ == "__main__":
    for received in sys.stdin.buffer:
        sys.stdout.buffer.write(_answer(received) + b"\n")
        sys.stdout.buffer.flush()
