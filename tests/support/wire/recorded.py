"""Recorded traffic of providers: every exchange of the corpus, with an independent call count.

The count only walks over the JSON and knows where a format writes a call, but not how calls are
assembled. So the tests do not compare the assembler with itself.
"""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.corpus.formats import CORPUS

FOLDERS = ("provider_http", "provider_sse", "openai_chat", "mcp")

_SSE_NAMES = (
    ("anthropic__", "anthropic"),
    ("amazon-bedrock__", "bedrock"),
    ("openai__src__responses", "openai-responses"),
    ("azure__", "openai-responses"),
    ("open-responses__", "openai-responses"),
    ("xai__src__responses", "openai-responses"),
    ("google__src____fixtures", "gemini"),
    ("cohere__", "cohere"),
    ("alibaba__", "openai"),
    ("deepseek__", "openai"),
    ("groq__", "openai"),
    ("mistral__", "openai"),
    ("moonshotai__", "openai"),
    ("openai-compatible__", "openai"),
    ("xai__src____fixtures", "openai"),
)
"""Beginnings of the names of event files, behind `packages__`, and the format of each file."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer.

    Attributes:
        path: path of the file in the corpus.
        number: number of the exchange in the file.
        wire_format: name of the wire format; None if the format is not supported.
        request: body of the request; None if it is not recorded.
        response: bytes of the answer; empty if it is not recorded.
        is_stream: whether the answer is a stream.
        status: HTTP status.
    """

    path: str
    number: int
    wire_format: str | None
    request: Any
    response: bytes
    is_stream: bool
    status: int = 200

    def __str__(self) -> str:
        return f"{Path(self.path).name}#{self.number}"

    def events(self) -> list[Any]:
        """The JSON values of the answer, one for each event of a stream."""
        if not self.is_stream:
            return [json.loads(self.response)] if self.response else []
        lines = self.response.decode().split("\n")
        read = [_json(line.removeprefix("data:").strip().encode()) for line in lines]
        return [event for event in read if isinstance(event, dict | list)]

    def call_count(self) -> int:
        """The number of calls for the caller in the first choice of the answer."""
        return len(set(_COUNTS[self.wire_format or ""](self.events())))


@cache
def exchanges() -> tuple[Exchange, ...]:
    """All exchanges; empty without the corpus."""
    return tuple(
        exchange
        for folder in FOLDERS
        for path in sorted((CORPUS / folder).rglob("*"))
        if path.is_file()
        for exchange in _READERS[folder](path)
    )


def of_format(name: str) -> list[Exchange]:
    """The exchanges of one format that have an answer."""
    return [one for one in exchanges() if one.wire_format == name and one.response]


def _from_cassette(path: Path) -> Iterator[Exchange]:
    import yaml

    for number, one in enumerate(yaml.load(path.read_bytes(), yaml.CSafeLoader)["interactions"]):
        request, response = one.get("request"), one.get("response")
        if request is None or response is None or request["method"] != "POST":
            continue
        wire_format = _of_address(request["uri"])
        body, is_stream = _body(response)
        status = response["status"]["code"]
        asked = _json(_bytes(request.get("body"), request)) or request.get("parsed_body")
        yield Exchange(str(path), number, wire_format, asked, body, is_stream, status)


def _of_address(uri: str) -> str | None:
    address = uri.partition("?")[0]
    if "mcp.deepwiki" in address:
        return "mcp"
    for ending, wire_format in (
        ("/chat/completions", "openai"),
        ("/responses", "openai-responses"),
        ("api.anthropic.com/v1/messages", "anthropic"),
        ("/converse", "bedrock"),
        ("/api/chat", "ollama"),
        ("api.cohere.com/v2/chat", "cohere"),
        (":generateContent", "gemini"),
        (":streamGenerateContent", "gemini"),
    ):
        if address.endswith(ending):
            return wire_format
    return None


def _body(response: Any) -> tuple[bytes, bool]:
    if "parsed_body" in response:
        return json.dumps(response["parsed_body"]).encode(), False
    headers = {name.lower(): value for name, value in response["headers"].items()}
    kind = " ".join(headers.get("content-type", []))
    is_stream = "event-stream" in kind or "ndjson" in kind
    return _bytes(response.get("body"), response), is_stream


def _bytes(body: Any, message: Any) -> bytes:
    if isinstance(body, dict):
        body = body.get("string")
    data = body.encode() if isinstance(body, str) else body or b""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _from_events(path: Path) -> Iterator[Exchange]:
    if path.suffix == ".responses":
        for number, line in enumerate(path.read_text().strip().split("\n")):
            one = json.loads(line)
            answer, is_stream = one["response"], one["method"] == "generateContentStream"
            chunks = answer if isinstance(answer, list) else [answer]
            wire_format = "gemini" if one["method"].startswith("generateContent") else None
            body = _sse(list(map(_dump, chunks))) if is_stream else _dump(answer)
            yield Exchange(str(path), number, wire_format, None, body, is_stream)
        return
    name = path.name.removeprefix("packages__")
    wire_format = next((known for start, known in _SSE_NAMES if name.startswith(start)), None)
    if path.suffix == ".txt":
        # Unparsed, since one file has a line that is not JSON.
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        yield Exchange(str(path), 0, wire_format, None, _sse(lines), is_stream=True)
    else:
        yield Exchange(str(path), 0, wire_format, None, path.read_bytes(), is_stream=False)


def _sse(lines: list[bytes]) -> bytes:
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def _from_logs(path: Path) -> Iterator[Exchange]:
    document = json.loads(path.read_bytes())
    if isinstance(document, dict):
        answer = _dump(document["response"])
        yield Exchange(str(path), 0, "openai", document, answer, is_stream=False)
        return
    histories = [one["traj"] for one in document] if "traj" in document[0] else [document]
    for number, messages in enumerate(histories):
        yield Exchange(str(path), number, "openai", {"messages": messages}, b"", is_stream=False)


def _from_mcp(path: Path) -> Iterator[Exchange]:
    for number, one in enumerate(json.loads(path.read_bytes())["interactions"]):
        answer = _dump(one["response"]) if one.get("response") else b""
        yield Exchange(str(path), number, "mcp", one.get("request"), answer, is_stream=False)


_READERS: dict[str, Callable[[Path], Iterator[Exchange]]] = {
    "provider_http": _from_cassette,
    "provider_sse": _from_events,
    "openai_chat": _from_logs,
    "mcp": _from_mcp,
}


def _chat_calls(events: list[Any]) -> Iterator[object]:
    """Count by id, since an index may repeat; by position if a call has no id."""
    for event in events:
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            told = choice.get("delta") or choice.get("message") or {}
            for number, call in enumerate(told.get("tool_calls") or ()):
                if call.get("id"):
                    yield call["id"]
                elif "message" in choice or (call.get("function") or {}).get("name"):
                    yield number


def _responses_calls(events: list[Any]) -> Iterator[object]:
    for event in events:
        response = event.get("response", event)
        items = response.get("output") or () if isinstance(response, dict) else ()
        ended = event.get("item") if event.get("type") == "response.output_item.done" else None
        for item in (*items, ended):
            if isinstance(item, dict) and _is_for_client(item):
                yield item["call_id"]


_CLIENT_ITEMS = {
    *("function_call", "custom_tool_call", "local_shell_call", "apply_patch_call"),
    "computer_call",
}


def _is_for_client(item: Any) -> bool:
    if item.get("type") == "shell_call":
        return (item.get("environment") or {}).get("type") != "container_reference"
    if item.get("type") == "tool_search_call":
        return bool(item.get("execution") == "client")
    return item.get("type") in _CLIENT_ITEMS


def _anthropic_calls(events: list[Any]) -> Iterator[object]:
    for event in events:
        begun = (event.get("message") or {}).get("content") or ()
        for block in (*begun, *(event.get("content") or ()), event.get("content_block") or {}):
            if isinstance(block, dict) and block.get("type") == "tool_use":
                yield block["id"]


def _gemini_calls(events: list[Any]) -> Iterator[object]:
    """Count named parts: later parts of a call with streamed arguments have no name."""
    for number, event in enumerate(events):
        for candidate in event.get("candidates") or ():
            parts = (candidate.get("content") or {}).get("parts") or ()
            for place, part in enumerate(parts):
                call = part.get("functionCall") or part.get("function_call")
                if candidate.get("index", 0) == 0 and call and call.get("name"):
                    yield (number, place)


def _bedrock_calls(events: list[Any]) -> Iterator[object]:
    """Skip calls of a server's own tools, which have a type in complete answers and streams."""
    for event in events:
        message = (event.get("output") or {}).get("message") or {}
        begun = (event.get("contentBlockStart") or {}).get("start") or {}
        for block in (*(message.get("content") or ()), begun):
            call = block.get("toolUse")
            if call and call.get("type") != "server_tool_use":
                yield call["toolUseId"]


def _ollama_calls(events: list[Any]) -> Iterator[object]:
    for number, event in enumerate(events):
        for place, _ in enumerate((event.get("message") or {}).get("tool_calls") or ()):
            yield (number, place)


def _cohere_calls(events: list[Any]) -> Iterator[object]:
    """Count ids: only the beginning of a call has an id."""
    for event in events:
        message = event.get("message") or (event.get("delta") or {}).get("message") or {}
        calls = message.get("tool_calls") or ()
        yield from (one["id"] for one in (calls, *calls) if isinstance(one, dict) and "id" in one)


_COUNTS: dict[str, Callable[[list[Any]], Iterator[object]]] = {
    "openai": _chat_calls,
    "openai-responses": _responses_calls,
    "anthropic": _anthropic_calls,
    "bedrock": _bedrock_calls,
    "gemini": _gemini_calls,
    "ollama": _ollama_calls,
    "cohere": _cohere_calls,
}
