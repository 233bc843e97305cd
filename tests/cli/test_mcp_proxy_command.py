"""`tooltrail mcp-proxy` between the official client and server, and between odd ones."""

import base64
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM, Cli, python
from tests.support.mcp_peers import CALLS
from tests.support.serving import LOOPBACK, QuietHandler, serving, url_of
from tests.support.waiting import until

PEERS = (sys.executable, "-m", "tests.support.mcp_peers")
SECRET = "ghp_" + "a1" * 18
MODERN: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

ANSWERS = """
import json, os, sys
for line in sys.stdin:
    given = json.loads(line).get("params", {}).get("arguments", {})
    if "exit" in given: os._exit(given["exit"])
    if "kill" in given: os.kill(os.getpid(), given["kill"])
    for one in given.get("say", ()): print(json.dumps(one))
    if "size" in given:
        text = "x" * given["size"]
        result = {"content": [{"type": "text", "text": text}]}
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}))
    sys.stdout.flush()
"""
"""A server that says what the arguments of a call tell it to."""


def line(**members: Any) -> bytes:
    """One message."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def call(call_id: Any, **arguments: Any) -> bytes:
    """A request to call a tool."""
    return line(id=call_id, method="tools/call", params={"name": "t", "arguments": arguments})


def answer(call_id: Any, text: str, **more: Any) -> dict[str, Any]:
    """A result."""
    content = [{"type": "text", "text": text}]
    return {"jsonrpc": "2.0", "id": call_id, "result": {"content": content, **more}}


def states(cli: Cli) -> list[tuple[str, str | None]]:
    """The state and the error of each call, oldest first; the record must be right."""
    records = cli.ok("log", "-n", "0", "--json").records
    cli.ok("verify")
    return [(one["state"], one["error_kind"]) for one in reversed(records)]


def proxied(cli: Cli, stdin: bytes, *options: str, server: tuple[str, ...] = ()) -> Any:
    """Send bytes through the proxy to the server, and end."""
    server = server or python(ANSWERS)
    return cli.program("mcp-proxy", *options, "--", *server, stdin=stdin)


@contextmanager
def http_server() -> Generator[str]:
    """The URL of the official server."""
    with subprocess.Popen([*PEERS, "server", "0"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "auto")])
def test_the_official_client_and_server_do_not_notice_the_proxy(
    cli: Cli, transport: str, mode: str
) -> None:
    with http_server() as url:
        target = ["--", *PEERS, "server"] if transport == "stdio" else ["--url", url]
        proxy = [*PROGRAM, "mcp-proxy", "--db", cli.database, *target]
        ended = cli.program("client", mode, *proxy, program=PEERS)
    assert ended.code == 0, ended.message
    got = json.loads(ended.text)
    assert got == {
        "tools": ["echo", "fail", "count", "hang"],
        "echoed": [{"result": f"text {n}"} for n in range(CALLS)],
        "failed": True,
        "counted": {"result": "counted"},
        "said": ["ProgressNotification"] * 3 + ["ToolListChangedNotification"] * (mode == "legacy"),
    }
    failed = ("error", "tool_execution_failed")
    assert states(cli) == [("success", None)] * CALLS + [failed, ("success", None)]
    with cli.open() as store:
        for one in store.reader.invocations(limit=200).items:
            detail = store.reader.invocation(one.id)
            if one.tool_name == "echo":
                with store.reader.open_stream(detail.streams[0]) as stream:
                    assert stream.read().decode() == json.loads(detail.arguments)["text"]
            if one.tool_name == "count":
                assert detail.extras is not None
                reports = json.loads(detail.extras)["progress"]
                assert [report["progress"] for report in reports] == [0, 1, 2]
        (session,) = store.reader.sessions()
        assert (session.agent, session.closed_at is None) == ("mcp", False)
    assert {one["name"] for one in cli.ok("tools", "ls", "--json").records} == {*got["tools"]}


def test_every_byte_passes_unchanged_in_both_directions(cli: Cli) -> None:
    odd = b'no JSON\r\n\n\xff\xfe\0{"a":\n' + call(1, token=SECRET) + b" [1] \n[[[\n5\nunended"
    ended = proxied(cli, odd, server=("cat",))
    assert (ended.code, ended.stdout, ended.message) == (0, odd, "")
    assert states(cli) == [("error", "transport_failed")]


def test_each_way_to_fail_has_its_own_kind(cli: Cli) -> None:
    refused = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no", "data": [7]}}
    stdin = (
        call(1, say=[refused])
        + call(2, say=[answer(2, "bad", isError=True)])
        + call(3, say=[answer(3, "good", structuredContent={"n": 1}, _meta={"m": 2})])
        + call(4)
        + line(method="notifications/cancelled", params={"requestId": 4, "reason": "enough"})
        + call(5, say=[answer(4, "too late")])
    )
    assert proxied(cli, stdin).code == 0
    assert states(cli) == [
        ("error", "protocol_error"),
        ("error", "tool_execution_failed"),
        ("success", None),
        ("cancelled", "cancelled"),
        ("error", "transport_failed"),
    ]
    with cli.open() as store:
        found = store.reader.invocations(limit=5).items
        *_, good, _, first = (store.reader.invocation(one.id) for one in found)
    assert json.loads(str(first.canonical_json))["error"]["details"] == refused["error"]
    assert {one.role for one in good.streams} == {"content.0", "structured"}
    assert json.loads(str(good.extras)) == {"result": {"_meta": {"m": 2}}}


def test_the_last_messages_need_no_newline(cli: Cli) -> None:
    server = f"""
import sys
sys.stdin.read()
sys.stdout.write({json.dumps(answer(1, "done"))!r})
"""
    assert proxied(cli, call(1).rstrip(b"\n"), server=python(server)).code == 0
    assert states(cli) == [("success", None)]


@pytest.mark.parametrize("depth", [300, 1_500, 50_000])
def test_an_answer_that_is_nested_too_deep_ends_its_call(cli: Cli, depth: int) -> None:
    server = f"""
deep = '{{"[": ' * {depth} + '"\\\\"]"' + "}}" * {depth}
input()
print('{{"result": {{"content": [], "structuredContent": ' + deep + '}}, "id": 1}}', flush=True)
input()
"""
    ended = proxied(cli, call(1) + b"\n", server=python(server))
    assert ended.stdout.count(b"{") == depth + 2
    assert "the traffic goes on: the message is nested deeper than" in ended.message
    assert states(cli) == [("error", "output_persistence_failed")]


def test_brackets_without_an_end_stop_no_recording(cli: Cli) -> None:
    server = f"""
input()
print("[" * 5_000, flush=True)
print({json.dumps(answer(1, "done"))!r}, flush=True)
input()
"""
    assert proxied(cli, call(1) + b"\n", server=python(server)).code == 0
    assert states(cli) == [("success", None)]


def test_a_report_of_progress_that_is_nested_too_deep_costs_only_itself(cli: Cli) -> None:
    server = f"""
input()
for n in ("1", "[" * 300 + "]" * 300, "3"):
    params = '{{"progressToken": 7, "progress": ' + n + "}}"
    print('{{"method": "notifications/progress", "params": ' + params + "}}", flush=True)
print({json.dumps(answer(1, "done"))!r}, flush=True)
input()
"""
    params = {"name": "t", "arguments": {}, "_meta": {"progressToken": 7}}
    stdin = line(id=1, method="tools/call", params=params) + b"\n"
    ended = proxied(cli, stdin, server=python(server))
    assert ended.message.endswith("the traffic goes on: nested deeper than 256 levels\n")
    assert states(cli) == [("success", None)]
    (record,) = cli.ok("show", "--json").records
    extras = record["extras"]
    assert [one["progress"] for one in extras["progress"]] == [1, 3]
    assert extras["progress_count"] == 3


def test_ids_are_paired_by_type_and_by_direction(cli: Cli) -> None:
    asking: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "sampling/createMessage",
        "params": {},
    }
    stdin = (
        call("1")
        + call(1, say=[asking])
        + line(id=1, error={"code": 1, "message": "the client refuses what the server asks"})
        + call(2, say=[answer(1, "number"), answer("1", "text"), answer(2, "two")])
    )
    assert proxied(cli, stdin).code == 0
    assert states(cli) == [("success", None)] * 3
    with cli.open() as store:
        found = store.reader.invocations(limit=3).items
        details = [store.reader.invocation(one.id) for one in reversed(found)]
    texts = [one.receipt.text for one in details if one.receipt is not None]
    assert texts == ["text\n", "number\n", "two\n"]


def test_of_many_reports_of_progress_the_first_and_the_number_are_kept(cli: Cli) -> None:
    named = {"jsonrpc": "2.0", "method": "notifications/progress"}
    reports = [{"progressToken": "t", "progress": n} for n in range(150)]
    said = [*({**named, "params": one} for one in reports), answer(1, "done")]
    given: dict[str, Any] = {"name": "t", "arguments": {"say": said}}
    stdin = line(id=1, method="tools/call", params={**given, "_meta": {"progressToken": "t"}})
    assert proxied(cli, stdin).code == 0
    assert states(cli) == [("success", None)]
    with cli.open() as store:
        extras = json.loads(store.reader.invocation("@last").extras or "")
    assert (extras["progress"], extras["progress_count"]) == (reports[:100], 150)


@pytest.mark.parametrize(("how", "code"), [({"exit": 7}, 7), ({"kill": 9}, 128 + 9)])
def test_the_proxy_ends_as_its_server_ends(cli: Cli, how: dict[str, int], code: int) -> None:
    stdin = call(1) + call(2, say=[answer(2, "two")]) + call(3, **how)
    ended = proxied(cli, stdin)
    assert (ended.code, json.loads(ended.stdout)) == (code, answer(2, "two"))
    failed = ("error", "transport_failed")
    assert states(cli) == [failed, ("success", None), failed]


@pytest.mark.parametrize(
    ("number", "end"), [(9, ("interrupted", "interrupted")), (15, ("error", "transport_failed"))]
)
def test_a_signal_to_the_proxy_ends_its_calls(cli: Cli, number: int, end: tuple[str, str]) -> None:
    process = cli.start("mcp-proxy", "--", *python(ANSWERS), stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        process.stdin.write(call(1))
        until(lambda: [one["state"] for one in cli.ok("log", "--json").records] == ["started"])
        os.kill(process.pid, number)
        assert process.wait() in (-9, 128 + 15)
    assert states(cli) == [end]


def test_a_result_of_50_mb_passes_and_is_recorded(cli: Cli) -> None:
    size = 50_000_000
    ended = proxied(cli, call(1, size=size))
    text = json.loads(ended.stdout)["result"]["content"][0]["text"]
    assert text == "x" * size
    assert states(cli) == [("success", None)]
    stored = cli.ok("show", "--stream", "content.0").stdout
    assert sha256(stored).digest() == sha256(text.encode()).digest()


@pytest.mark.parametrize("options", [(), ("--no-redact",)])
def test_a_secret_is_in_the_traffic_and_not_in_the_record(
    cli: Cli, options: tuple[str, ...]
) -> None:
    escaped = call(1, token=SECRET, say=[answer(1, f"it is {SECRET}")]).replace(
        b"ghp", b"\\u0067hp"
    )
    listed = line(id=2, method="tools/list", params={})
    ended = proxied(cli, escaped + listed, *options, server=(*python(ANSWERS), SECRET))
    assert SECRET in json.loads(ended.stdout)["result"]["content"][0]["text"]
    states(cli)
    held = b"".join(path.read_bytes() for path in cli.folder.rglob("*") if path.is_file())
    shown = cli.ok("show", "--json").text + cli.ok("session", "ls", "--json").text
    assert (SECRET in shown or SECRET.encode() in held) == bool(options)
    assert ("github-token" in cli.ok("show").text) != bool(options)


def test_only_the_answers_to_a_request_for_tools_offer_tools(cli: Cli) -> None:
    requests: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("tools/list", {}, {"tools": [{"name": "a"}], "nextCursor": "x"}),
        ("agents/list", {}, {"tools": [{"name": "of an agent"}]}),
        ("tools/list", {"cursor": "x"}, {"tools": [{"name": "b"}]}),
    )
    stdin = b"".join(
        line(id=n, method=method, params={**params, "arguments": {"say": [said]}})
        for n, (method, params, result) in enumerate(requests)
        for said in ({"jsonrpc": "2.0", "id": n, "result": result},)
    )
    assert proxied(cli, stdin).code == 0
    assert {one["name"] for one in cli.ok("tools", "ls", "--json").records} == {"a", "b"}


def test_traffic_goes_on_if_nothing_can_be_recorded(cli: Cli, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    stdin = b"".join(call(n, say=[answer(n, "yes")]) for n in range(3))
    ended = proxied(cli, stdin, "--spool", str(blocked / "spool"))
    assert ended.code == 0
    assert [json.loads(one)["id"] for one in ended.lines] == [0, 1, 2]
    assert ended.sentence.startswith("the record is not complete, the traffic goes on: ")


def test_a_named_session_stays_open_and_tools_have_the_name_of_their_server(cli: Cli) -> None:
    for number in range(2):
        stdin = call(number, say=[answer(number, "yes")])
        assert proxied(cli, stdin, "--session", "nightly", "--server-name", "disk").code == 0
    (session,) = cli.ok("session", "ls", "--json").records
    assert (session["name"], session["closed_at"]) == ("nightly", None)
    assert [one["tool_name"] for one in cli.ok("log", "--json").records] == ["disk___t"] * 2


def test_an_http_server_that_does_not_answer_fails_the_call_alone(cli: Cli) -> None:
    url = "http://user:hunter22@127.0.0.1:1/mcp?key=hunter22"
    ended = cli.program("mcp-proxy", "--url", url, stdin=call("a") + call(2))
    assert ended.code == 0
    answers = {json.loads(one)["id"]: json.loads(one)["error"]["code"] for one in ended.lines}
    assert answers == {"a": -32000, 2: -32000}
    assert states(cli) == [("error", "transport_failed")] * 2
    assert "hunter22" not in cli.ok("session", "ls", "--json").text + cli.ok("show").text


def test_a_cancelled_request_ends_at_the_http_server(cli: Cli, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    params: dict[str, Any] = {"name": "hang", "arguments": {"mark": str(mark)}, "_meta": MODERN}
    cancelling: dict[str, Any] = {"requestId": 1, "_meta": MODERN}
    with http_server() as url:
        process = cli.start("mcp-proxy", "--url", url, stdin=subprocess.PIPE)
        with process:
            assert process.stdin is not None
            process.stdin.write(line(id=1, method="tools/call", params=params))
            until(lambda: mark.exists() and "running" in mark.read_text())
            process.stdin.write(line(method="notifications/cancelled", params=cancelling))
            until(lambda: "cancelled" in mark.read_text())
            process.stdin.close()
            assert process.wait() == 0
    assert states(cli) == [("cancelled", "cancelled")]


ODD_EVENTS = {
    "cr": b"event: message\rdata: %b\r\r",
    "crlf": b"event: message\r\ndata:\r\ndata: %b\r\n\r\n",
    "bom": b"\xef\xbb\xbfdata: %b\n\n",
    "comment": b": wait\n\n: wait\ndata: %b\n\n",
}
"""Streams of one event, by the path of the URL."""


class OddHandler(QuietHandler):
    """Answers with a stream of events, whose media type has capital letters; or resets.

    The path of the URL is one of `ODD_EVENTS`, or the number of letters in the answer.
    """

    def do_POST(self) -> None:  # noqa: N802  name in the base class
        if self.path == "/reset":
            reset = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            os.close(self.connection.detach())
            self.close_connection = True
            return
        if self.path[1:] in ODD_EVENTS:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            said = answer(1, "y") | {"note": "\u2028"}  # no line of events ends with this character
            events = ODD_EVENTS[self.path[1:]] % json.dumps(said, ensure_ascii=False).encode()
            for byte in events:  # every byte comes alone
                self.wfile.write(b"1\r\n%c\r\n" % byte)
            self.wfile.write(b"0\r\n\r\n")
            return
        text = "y" * int(self.path[1:] or 1)
        event = f"data: {json.dumps(answer(1, text))}\n\n"
        self.send(200, event.encode(), "Text/Event-Stream; charset=UTF-8")


def test_a_media_type_may_have_capital_letters(cli: Cli) -> None:
    with ThreadingHTTPServer(LOOPBACK, OddHandler) as server, serving(server):
        ended = cli.program("mcp-proxy", "--url", url_of(server), stdin=call(1))
    assert json.loads(ended.stdout) == answer(1, "y")
    assert states(cli) == [("success", None)]


@pytest.mark.parametrize("name", ODD_EVENTS)
def test_an_event_may_have_any_line_ends_and_comments_before_it(cli: Cli, name: str) -> None:
    with ThreadingHTTPServer(LOOPBACK, OddHandler) as server, serving(server):
        ended = cli.program("mcp-proxy", "--url", f"{url_of(server)}/{name}", stdin=call(1))
    assert json.loads(ended.stdout) == answer(1, "y") | {"note": "\u2028"}
    assert states(cli) == [("success", None)]


def test_a_signal_ends_the_http_proxy_whose_client_does_not_read(cli: Cli) -> None:
    with ThreadingHTTPServer(LOOPBACK, OddHandler) as server, serving(server):
        url = f"{url_of(server)}/1000000"
        process = cli.start("mcp-proxy", "--url", url, stdin=subprocess.PIPE)
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(call(1))
            assert process.stdout.read(1) == b"{"
            process.terminate()
            assert process.wait(60) == 128 + 15
    assert states(cli) == [("success", None)]


def test_a_failure_without_a_message_has_a_name(cli: Cli) -> None:
    with ThreadingHTTPServer(LOOPBACK, OddHandler) as server, serving(server):
        ended = cli.program("mcp-proxy", "--url", f"{url_of(server)}/reset", stdin=call(1))
    assert json.loads(ended.stdout)["error"]["message"] == "no answer from the server: ReadError"


def test_a_signal_ends_the_http_proxy_while_its_client_is_connected(cli: Cli) -> None:
    request = line(id=1, method="tools/call", params={"name": "hang", "arguments": {}})
    with http_server() as url:
        process = cli.start("mcp-proxy", "--url", url, stdin=subprocess.PIPE)
        with process:
            assert process.stdin is not None
            process.stdin.write(request)
            until(lambda: bool(cli.ok("log", "--json").records))
            process.terminate()
            assert process.wait() == 128 + 15
            assert process.stderr is not None
            assert process.stderr.read() == b""


def test_what_cannot_be_run_is_reported(cli: Cli) -> None:
    ended = proxied(cli, b"", server=("no-such-server",))
    assert (ended.code, ended.sentence) == (127, "command 'no-such-server' is not found")
    for wrong in ("", "--url http://a/ cat", "--url http://a/ --header é:1", "--url http://["):
        assert cli.run("mcp-proxy", *wrong.split()).code == 2
    for url in ("not-a-url", "ftp://a/", "http://", "http://a:99999/"):
        ended = cli.run("mcp-proxy", "--url", url)
        assert (ended.code, ended.usage_error.startswith("--url is not valid: ")) == (2, True)


def test_a_secret_in_base64_and_in_names_is_replaced(cli: Cli) -> None:
    blob = base64.b64encode(f"tok {SECRET}".encode()).decode()
    resource = {"type": "resource", "resource": {"uri": "a:b", "blob": blob}}
    said = {"jsonrpc": "2.0", "id": 1, "result": {"content": [resource]}}
    named = ("--session", f"s {SECRET}", "--server-name", SECRET)
    ended = proxied(cli, call(1, say=[said]), *named)
    assert json.loads(ended.stdout) == said
    assert states(cli) == [("success", None)]
    assert "[REDACTED:github-token]" in cli.ok("session", "ls", "--json").text
    assert cli.ok("redact", "--scan").text == ""
    assert "tok [REDACTED:github-token]" in cli.ok("cat", "--stream", "content.1", "@last").text


def test_ids_that_look_like_secrets_are_paired(cli: Cli) -> None:
    ids = [f"{SECRET[:-1]}{n}" for n in range(2)]
    stdin = call(ids[0], say=[]) + call(ids[1], say=[answer(one, one) for one in ids])
    proxied(cli, stdin)
    assert states(cli) == [("success", None)] * 2


def test_a_number_that_json_has_no_form_for_is_recorded_intact(cli: Cli) -> None:
    said = answer(1, "x", structuredContent={"a": float("nan")})
    proxied(cli, call(1, say=[said]))
    assert states(cli) == [("success", None)]
    cli.ok("verify", "--receipts")
