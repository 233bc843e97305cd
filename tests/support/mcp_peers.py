"""An MCP server and client of the official SDK, as programs: `server [PORT]`, `client MODE …`.

The server speaks stdio, or HTTP on a port, which it prints. The client prints what it got as JSON.
"""

import asyncio
import json
import sys
from typing import Any

import uvicorn
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.server.mcpserver import Context, MCPServer

CALLS = 100

server = MCPServer("demo", log_level="CRITICAL")


@server.tool()
async def echo(text: str, wait_s: float = 0) -> str:
    await asyncio.sleep(wait_s)
    return text


@server.tool()
def fail() -> str:
    raise ValueError("broken")


@server.tool()
async def count(steps: int, context: Context[Any]) -> str:
    for step in range(steps):
        await context.report_progress(step, steps)
    await context.session.send_tool_list_changed()  # which answers no request
    return "counted"


@server.tool()
async def hang(mark: str) -> str:
    """Run until the call is cancelled, and say so in a file."""
    with open(mark, "w", buffering=1) as file:  # noqa: ASYNC230, PTH123  short
        file.write("running\n")
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            file.write("cancelled\n")
            raise
    return "never"


class _Serving(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"{self.servers[0].sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()


async def _use(mode: str, command: str, *arguments: str) -> dict[str, Any]:
    transport = stdio_client(StdioServerParameters(command=command, args=[*arguments]))
    said = list[str]()

    async def listen(message: Any) -> None:
        said.append(type(message).__name__)

    async with Client(transport, mode=mode, message_handler=listen) as client:
        listed = await client.list_tools()
        # The later a call, the sooner its answer.
        calls = [
            client.call_tool("echo", {"text": f"text {n}", "wait_s": (CALLS - n) / CALLS})
            for n in range(CALLS)
        ]
        echoed = await asyncio.gather(*calls)
        failed = await client.call_tool("fail", {})
        token: Any = {"progressToken": "t"}
        counted = await client.call_tool("count", {"steps": 3}, meta=token)
        while mode == "legacy" and "ToolListChangedNotification" not in said:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # over HTTP, it comes in another stream
    return {
        "tools": [one.name for one in listed.tools],
        "echoed": [one.structured_content for one in echoed],
        "failed": failed.is_error,
        "counted": counted.structured_content,
        "said": sorted(said),
    }


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", port]:
            app = server.streamable_http_app()
            _Serving(uvicorn.Config(app, port=int(port), log_level="critical")).run()
        case ["client", *words]:
            sys.stdout.write(json.dumps(asyncio.run(_use(*words))))
        case _:
            server.run("stdio")
