"""`tooltrail mcp`: the official client reads a record over standard input and output."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent
from tests.support.cli import PROGRAM, Cli

from tooltrail.cli._mcp_server import MAX_BYTES
from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall
from tooltrail.store import EndedCall, Session

LONG = (
    "".join(f"{number} grüße\n" for number in range(50_000))
    + f"{'漢字' * 20_000}\n"
    + "".join(f"hay {number}\n" for number in range(1_000))
    + "no newline at the end"
).encode()
BINARY = bytes(range(256)) * 1_000
REFUSALS: list[tuple[str, str, dict[str, Any]]] = [
    ("call @last:Slow (started) has no complete_output; it has", "read", {"call": "@last:Slow"}),
    ("call s#1 (success) has no x; it has stdout, stderr", "read", {"call": "s#1", "part": "x"}),
    ("no invocation is named 'zzz'", "show_call", {"call": "zzz"}),
    ("no session is named 'zzz'", "read", {"session": "zzz"}),
    ("the store has no artifact sha256:abcd", "grep", {"artifact": "sha256:abcd", "pattern": "x"}),
    ("the text has 3 bytes, 1 line", "read", {"call": "s#1", "start_line": 2}),
    ("is not a regular expression", "grep", {"call": "s#1", "pattern": "("}),
    *(
        ("asks for a newline", "grep", {"call": "s#1", "pattern": pattern})
        for pattern in (r"a\\\nb", r"\x0a", r"a\012", r"[\n]", r"(a)\1\u000a", r"\N{LINE FEED}")
    ),
    ("asks for a newline", "grep", {"call": "s#1", "pattern": "a\nb", "literal": True}),
    ("outcome", "list_calls", {"outcome": "done"}),
    ("cursor", "list_calls", {"cursor": "zzz"}),
    ("limit: Input should be greater than or equal to 1", "list_calls", {"limit": 0}),
    ("length: Input should be greater than 0", "read", {"length": -1}),
    ("pattern: Field required", "grep", {}),
    ("not the number of a line: 0", "read", {"call": "s#1", "start_line": 0}),
    ("start_line: Input should be greater than 0", "grep", {"pattern": "x", "start_line": 0}),
    ("list_calls has no argument 'sesion'; it has session, tool,", "list_calls", {"sesion": "s"}),
    ("show_call has no argument 'a\\nb'; it has call", "show_call", {"a\nb": ""}),
    ("call: String should have at least 1 character", "read", {"call": ""}),
]


class Agent(NamedTuple):
    """An agent that is connected to the server."""

    client: Client

    async def answer(self, tool: str, /, **arguments: Any) -> tuple[bool, list[str]]:
        """Whether an answer is an error, and its texts."""
        result = await self.client.call_tool(tool, arguments)
        texts = [one.text for one in result.content if isinstance(one, TextContent)]
        assert len(texts) == len(result.content)
        return result.is_error, texts

    async def ask(self, tool: str, /, **arguments: Any) -> list[str]:
        """The texts of an answer, which must be a success within its bound."""
        is_error, texts = await self.answer(tool, **arguments)
        assert not is_error, texts
        assert len(texts[0].encode()) <= MAX_BYTES
        assert len("".join(texts[1:])) < 200
        return texts

    async def pages(self, tool: str, /, **arguments: Any) -> list[str]:
        """An answer and all further ones, each asked for as the note says."""
        found = list[str]()
        while True:
            text, note = await self.ask(tool, **arguments)
            found.append(text)
            hint = re.search(r"; read on with (\w+)=(\S+)$", note)
            if hint is None:
                return found
            arguments[hint[1]] = hint[2] if hint[1] == "cursor" else int(hint[2])


def with_agent(cli: Cli, work: Callable[[Agent], Coroutine[Any, Any, None]]) -> None:
    command, *arguments = (*PROGRAM, "mcp")
    server = StdioServerParameters(command=command, args=[*arguments], env=cli.full_environment)

    async def main() -> None:
        async with Client(server) as client:
            await work(Agent(client))

    asyncio.run(main())


def record(session: Session, printed: bytes, tool: str = "Bash", **arguments: Any) -> None:
    combined = StreamRecord.from_bytes("combined", printed)
    output = CommandOutput(command="x", exit_status=0, combined=combined)
    call = ToolCall.of(tool, arguments)
    session.record(EndedCall(call, CompleteOutput.success(tool, output), family="command"))


@pytest.fixture
def long(cli: Cli) -> Cli:
    with cli.open() as store, store.open_session(name="long") as session:
        record(session, LONG)
    return cli


def test_calls_are_listed_with_filters_the_newest_first_in_pages(cli: Cli) -> None:
    with cli.open() as store:
        for name in ("one", "two"):
            with store.open_session(name=name) as session:
                for number in range(50):
                    record(session, b"", "Even" if number % 2 == 0 else "Odd", n="é" * 200)
            call = ToolCall.of("Open", {}, call_id="c" * 100_000)  # longer than an answer
            open_call = store.join_session(name).start(call)
        ids = [str(one.id) for one in store.reader.invocations().items]
    assert len(ids) == 102  # the programs of the two open calls are gone: they are interrupted

    async def listed(agent: Agent, **arguments: Any) -> list[str]:
        pages = await agent.pages("list_calls", **arguments)
        return [json.loads(line)["id"] for page in pages for line in page.splitlines()]

    async def work(agent: Agent) -> None:
        tools = (await agent.client.list_tools()).tools
        assert [tool.name for tool in tools] == ["list_calls", "show_call", "read", "grep"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert not any(tool.input_schema["additionalProperties"] for tool in tools)
        for limit in (7, 20, 100):  # 100 do not fit into one answer
            assert await listed(agent, limit=limit) == ids
        nothing = dict.fromkeys(("session", "tool", "outcome", "cursor"), "")
        assert (await agent.ask("list_calls", **nothing)) == await agent.ask("list_calls")
        nothing = dict.fromkeys(("artifact", "session", "part"), "")
        assert (await agent.ask("read", **nothing)) == await agent.ask("read")
        pattern = {"pattern": "."}
        assert await agent.ask("grep", **nothing, **pattern) == await agent.ask("grep", **pattern)
        assert len(await listed(agent, session="one")) == 51
        assert len(await listed(agent, tool="Odd", session="@last")) == 25
        assert await listed(agent, outcome="interrupted", session="two") == [str(open_call.id)]
        assert len(await listed(agent, outcome="ok")) == 100

    with_agent(cli, work)


def test_the_artifact_of_a_shown_call_is_read_to_its_last_byte(long: Cli) -> None:
    lines = LONG.split(b"\n")

    async def work(agent: Agent) -> None:
        shown = json.loads((await agent.ask("show_call"))[0])
        assert (shown["state"], shown["arguments_raw"]) == ("success", "{}")
        assert shown["canonical_result"]["result"]["truncated"]
        assert "characters omitted" in shown["receipt"]
        path = shown["artifacts"][0]["path"]
        (stream,) = (one for one in shown["streams"] if one["role"] == "combined")
        assert (stream["size"], stream["artifact_path"]) == (len(LONG), path)
        assert path in (await agent.ask("read", part="receipt", start_line=-3))[0]
        assert "".join(await agent.pages("read", artifact=path)).encode() == LONG
        for first in (1, 30_000, 50_000, 50_001, 51_002):
            pages = await agent.pages("read", call="long#1", part="combined", start_line=first)
            assert "".join(pages).encode() == b"\n".join(lines[first - 1 :])
        for n in range(1, 50_001, 2_000):
            part, _ = await agent.ask("read", artifact=path, start_line=n, end_line=n + 1_999)
            assert part.encode().splitlines() == lines[n - 1 : n + 1_999]
        assert (await agent.ask("read", start_line=-2))[0].encode() == b"\n".join(lines[-2:])
        part, note = await agent.ask("read", artifact=path[10:18], offset=100, length=50)
        assert part == LONG[100:150].decode("utf-8", "backslashreplace")
        whole = f"{len(LONG):,} bytes, 51,002 lines"
        assert note == f"offset 100 to 150 of {whole}; read on with offset=150"

    with_agent(long, work)


def test_a_search_finds_every_matching_line_with_its_number(long: Cli) -> None:
    lines = LONG.decode().split("\n")

    async def work(agent: Agent) -> None:
        found = "".join(await agent.pages("grep", pattern="^1.*77 GRÜ", ignore_case=True))
        matching = [n for n, line in enumerate(lines, 1) if re.search("^1.*77 grü", line)]
        assert len(matching) > 100
        assert found == "".join(f"{n}:{lines[n - 1]}\n" for n in matching)
        text, note = await agent.ask("grep", pattern="h.y", literal=True)
        assert (text, note) == ("", "0 of 0 matching lines")
        text, _ = await agent.ask("grep", pattern="^hay 7$", start_line=50_002)
        assert text == "50009:hay 7\n"
        text, _ = await agent.ask("grep", pattern="exited with", session="long")
        assert text.endswith(":  Process exited with code 0\n")

    with_agent(long, work)


def test_a_search_matches_complete_lines_of_any_bytes(cli: Cli) -> None:
    long = b"a" * ((1 << 20) - 3) + b"needle" + b"a" * (3 << 20)
    printed = b"%s\nodd \xff byte\r\nneedle\r\n" % long
    with cli.open() as store, store.open_session(name="odd") as session:
        record(session, printed)
        record(session, b"needle\n" + b"a" * (64 << 20) + b"a\nneedle\n")
        record(session, b"\xff" * 600)

    async def work(agent: Agent) -> None:
        shown = f"1:{'a' * 500}… [{len(long) - 500:,} more characters]\n"
        for pattern, lines in {
            "needle": f"{shown}3:needle\r\n",
            "a": shown,
            "byte$": "2:odd \\xff byte\r\n",
            "^odd . ": "2:odd \\xff byte\r\n",
            r"\\xff|\uFFFD|\r": "",
        }.items():
            text, note = await agent.ask("grep", call="odd#1", pattern=pattern)
            count = lines.count("\n")
            assert text == lines
            assert note.startswith(f"{count} of {count} matching line")
        text, note = await agent.ask("grep", call="odd#2", pattern="needle")
        assert text == "1:needle\n3:needle\n"
        why = "(line 2 is too long to search: over 64 MiB)"
        assert note == f"2 of 2 matching lines {why}"
        text, note = await agent.ask("grep", call="odd#2", pattern="hay")
        assert (text, note) == ("", f"0 of 0 matching lines {why}")
        text, _ = await agent.ask("grep", call="odd#2", pattern="needle", start_line=3)
        assert text == "3:needle\n"
        text, _ = await agent.ask("grep", call="odd#3", pattern="^.{600}$")
        assert text == "1:" + "\\xff" * 500 + "… [100 more characters]\n"

    with_agent(cli, work)


def test_every_part_of_a_call_is_bounded(cli: Cli) -> None:
    secret = "".join(f"\x00\ud800 {number} " for number in range(50_000))
    with cli.open() as store, store.open_session(name="odd") as session:
        record(session, BINARY, text=secret, items=[{"n": n} for n in range(20_000)])

    async def work(agent: Agent) -> None:
        shown = json.loads((await agent.ask("show_call", call="@last:Bash"))[0])
        assert "omitted" in shown["arguments_raw"]
        pages = await agent.pages("read")
        assert "".join(pages) == BINARY.decode("utf-8", "backslashreplace")
        raw = "".join(await agent.pages("read", part="arguments_raw"))
        assert json.loads(raw)["items"][-1] == {"n": 19_999}
        document = "".join(await agent.pages("read", part="canonical_result"))
        assert json.loads(document)["status"] == "success"
        transcript = "".join(await agent.pages("read", session="odd"))
        assert transcript == cli.ok("transcript", "odd").text

    with_agent(cli, work)


def test_a_request_that_cannot_be_answered_is_one_sentence_and_the_server_goes_on(
    nowhere: Cli,
) -> None:
    async def work(agent: Agent) -> None:
        is_error, (text,) = await agent.answer("list_calls")
        assert is_error
        assert "create one with `tooltrail init`" in text
        nowhere.exec("--session", "s", "--", "echo", "hi")  # the server sees it at once
        assert (await agent.ask("read"))[0] == "hi\n"
        with nowhere.open() as store:
            store.join_session("s").start(ToolCall.of("Slow", {}))
            for message, tool, arguments in REFUSALS:
                is_error, (text,) = await agent.answer(tool, **arguments)
                assert (is_error, message in text, "\n" in text) == (True, True, False), text
        assert (await agent.ask("read", call="s#1"))[0] == "hi\n"

    with_agent(nowhere, work)


def test_without_the_sdk_the_command_says_how_to_install_it(cli: Cli) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['tooltrail', 'mcp']\n"
        "from tooltrail.cli.__main__ import main; sys.exit(main())"
    )
    done = cli.program(program=(sys.executable, "-c", code))
    assert done.sentence.endswith("needs mcp, which is not installed: pip install 'tooltrail[mcp]'")
    assert (done.code, done.stdout) == (5, b"")
