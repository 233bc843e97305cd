"""Passes the traffic of an MCP client on standard input to a server by streamable HTTP.

Each line of the client is the body of one POST. The answer, one JSON value or a stream of events,
becomes lines on standard output.
"""

import asyncio
import base64
import json
import os
import re
import signal
import threading
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from tooltrail.cli._mcp_proxy import BLOCK, write_all
from tooltrail.cli._mcp_recording import LineSplitter, McpRecorder, Sender, key_of, message_in
from tooltrail.cli._output import say
from tooltrail.records import UnavailableError
from tooltrail.wire.members import JsonObject, object_in

try:
    import httpx
except ImportError as error:
    raise UnavailableError(
        "--url needs httpx, which is not installed: pip install 'tooltrail[mcp]'"
    ) from error

_TIMEOUT: Final = httpx.Timeout(None, connect=30)
"""No limit on an answer, because a tool may run for any time."""

_END_S: Final = 5
"""How long requests may run on after the last message of the client."""

_RETRY_S: Final = 1
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_VERSION_IN_BODY: Final = "io.modelcontextprotocol/protocolVersion"
_ACCEPTED: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")
_NO_REQUEST: Final = "null"
_LISTENING: Final = "listening"
"""No key of a request: those are JSON."""
_CLOSED: Final = -32000
"""The code of an error for a request that the server does not answer, as in official clients."""


async def run_http(url: str, headers: Sequence[str], recorder: McpRecorder) -> int:
    """Pass messages on until the client or a signal ends the proxy; return the exit code.

    Args:
        url: URL of the server.
        headers: `NAME:VALUE`, to send with every request.
        recorder: gets a copy of every message.
    """
    named = [(name, value.strip()) for name, _, value in (one.partition(":") for one in headers)]
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        headers=named, timeout=_TIMEOUT, limits=limits, follow_redirects=True
    ) as client:
        return await _Bridge(client, url, recorder).run()


class _Bridge:
    """One client on standard input, and its server."""

    def __init__(self, client: httpx.AsyncClient, url: str, recorder: McpRecorder) -> None:
        self._client, self._url, self._recorder = client, url, recorder
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        # Of the server, as it named them in the answer to `initialize`.
        self._headers: dict[str, str] = {}
        self._tasks: dict[asyncio.Task[None], str] = {}  # with the key of the request
        self._ordered: asyncio.Task[None] | None = None  # later messages wait for this one

    async def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._read, daemon=True).start()
        code = await self._ended
        sending = [task for task, key in self._tasks.items() if key != _LISTENING]
        if sending and not code:
            await asyncio.wait(sending, timeout=_END_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if _SESSION in self._headers:
            with suppress(httpx.HTTPError):
                await self._client.delete(self._url, headers=self._headers, timeout=_END_S)
        return code

    def _read(self) -> None:
        # Python cannot end while another thread waits in `sys.stdin`.
        lines, data = LineSplitter(), b" "
        while data:
            data = os.read(0, BLOCK)
            for line in lines.feed(data or b"\n"):  # the last line may have no newline
                self._recorder.copy("client", line + b"\n")
                if not self._call(self._send, line):
                    return
        self._call(self._end, 0)

    def _call(self, function: Callable[[Any], None], value: object) -> bool:
        """Call a function in the thread of the loop; False if a signal ended the proxy."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, value)
            return True
        return False

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    def _on_signal(self, number: int, _frame: object) -> None:
        # A client that does not read may block a write, which goes on here when this returns.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        self._call(self._end, 128 + number)

    def _send(self, line: bytes) -> None:
        """Send one message of the client; the answer follows in a task."""
        message = message_in(line)
        if message.get("method") == "notifications/cancelled" and _VERSION not in self._headers:
            # Since 2026-07-28, the end of its connection cancels a request.
            cancelled = key_of(object_in(message.get("params")), "requestId")
            for task, key in self._tasks.items():
                if key == cancelled != _NO_REQUEST:
                    task.cancel()
        elif line.strip():
            key = key_of(message, "id") if "method" in message else _NO_REQUEST
            task = self._start(self._exchange(line, message, key, self._ordered), key)
            if message.get("method") in {"initialize", "notifications/initialized"}:
                self._ordered = task

    def _start(self, work: Coroutine[Any, Any, None], key: str) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks[task] = key
        task.add_done_callback(self._tasks.pop)
        return task

    async def _exchange(
        self, line: bytes, message: JsonObject, key: str, before: asyncio.Task[None] | None
    ) -> None:
        """Send a message, and pass on what the server answers; else answer with an error."""
        if before is not None:
            await asyncio.wait([before])
        method, is_answered = message.get("method"), key == _NO_REQUEST
        headers = self._headers | _headers_of(message)
        try:
            async for data in self._messages("POST", line, headers, key):
                answer = message_in(data)
                is_answered |= "method" not in answer and key_of(answer, "id") == key
                if method == "initialize" and "result" in answer:
                    version = object_in(answer["result"]).get("protocolVersion")
                    if isinstance(version, str) and _PLAIN.fullmatch(version):
                        self._headers[_VERSION] = version
                self._pass_on("server", data)
            if not is_answered:
                raise httpx.ReadError("the answer ended too early")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = f"no answer from the server: {str(error) or type(error).__name__}"
            if key == _NO_REQUEST:
                say(f"tooltrail: {words}")
            elif not is_answered:
                failure = {"code": _CLOSED, "message": words}
                spelled = {"jsonrpc": "2.0", "id": message["id"], "error": failure}
                self._pass_on("proxy", json.dumps(spelled).encode())
        if method == "notifications/initialized" and _SESSION in self._headers:
            self._start(self._listen(), _LISTENING)

    async def _listen(self) -> None:
        """Pass on the messages that answer no request, if the server has such messages."""
        with suppress(httpx.HTTPError):
            while True:
                async for data in self._messages("GET", None, self._headers, _NO_REQUEST):
                    self._pass_on("server", data)
                await asyncio.sleep(_RETRY_S)

    async def _messages(
        self, verb: str, body: bytes | None, headers: dict[str, str], key: str
    ) -> AsyncIterator[bytes]:
        """The messages in the answer to one HTTP request.

        Raises:
            HTTPError: there is no answer, or a failure without a message for the request.
        """
        async with self._client.stream(
            verb, self._url, content=body, headers=_ACCEPTED | headers
        ) as response:
            if _SESSION in response.headers:
                self._headers[_SESSION] = response.headers[_SESSION]
            media_type = response.headers.get("content-type", "").lower()
            if response.is_success and media_type.startswith("text/event-stream"):
                async for data in _events(response):
                    yield data
                return
            data = await response.aread()
            message = message_in(data)
            is_meant = verb == "POST" and key_of(message, "id") == key
            if not (response.is_success or is_meant):
                words = object_in(message.get("error")).get("message", response.reason_phrase)
                raise httpx.ReadError(f"HTTP status {response.status_code}: {words}")
            if data.strip():
                yield data

    def _pass_on(self, sender: Sender, message: bytes) -> None:
        # JSON has line ends between its tokens only, where a space means the same.
        line = message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        self._recorder.copy(sender, line)
        with suppress(BrokenPipeError):  # the client has ended, and so does its input
            write_all(1, line)


async def _events(response: httpx.Response) -> AsyncIterator[bytes]:
    """The data of the events of a stream, whose lines end with LF, CR or both."""
    lines, data, last = LineSplitter(), list[bytes](), b""
    async for chunk in response.aiter_bytes():
        # A CR ends a line at once: the next bytes may come much later. An LF after it ends no line.
        rest = chunk.removeprefix(b"\n") if last == b"\r" else chunk
        last = chunk[-1:]
        for line in lines.feed(rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")):
            field, _, value = line.removeprefix(BOM_UTF8).partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not line and any(data):
                yield b"\n".join(data)
                data.clear()


def _headers_of(message: JsonObject) -> dict[str, str]:
    """The headers that repeat a part of the body, for servers since 2026-07-28."""
    method, params = str(message.get("method") or ""), object_in(message.get("params"))
    values = {
        "mcp-method": method,
        "mcp-name": params.get(_NAMED.get(method, "")),
        _VERSION: object_in(params.get("_meta")).get(_VERSION_IN_BODY),
    }
    headers = {name: value for name, value in values.items() if isinstance(value, str) and value}
    for name, value in headers.items():
        if not _PLAIN.fullmatch(value):
            encoded = base64.b64encode(value.encode("utf-8", "surrogatepass"))
            headers[name] = f"=?base64?{encoded.decode()}?="
    return headers
