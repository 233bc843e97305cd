"""`docs/wire.md` says what is so: its tables are those of the code, and its examples run."""

import asyncio
import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.support.agents.spelled_answers import Call, asks, says, spell_whole
from tests.support.cases import each_case
from tests.support.wire.choices import written_choice
from tests.support.wire.fake_provider import FakeProvider, fake_provider

from tooltrail.store import Store
from tooltrail.transcripts import conversation_of, export_transcript, load_transcript
from tooltrail.wire import FORMAT_MODULES, ToolChoice, wire_format
from tooltrail.wire.exports import ChangeKind
from tooltrail.wire.text_fallback.family import FAMILIES

PAGE = (Path(__file__).parents[3] / "docs" / "wire.md").read_text()

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ASKED = {"a": 1, "b": 2}
FUNCTION = {"name": "add", "description": "Adds.", "parameters": SCHEMA}


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_format_and_every_change_is_in_the_page() -> None:
    first = PAGE.split("\n## ", 1)[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", first, re.MULTILINE)) == set(FORMAT_MODULES)
    changes = [row[0].strip("`") for row in table("The report of an export")]
    assert changes == sorted(get_args(ChangeKind))
    native = PAGE.split("## Native or as text", 1)[1]
    assert all(f"`{name}`" in native for name in FAMILIES)


def test_what_each_format_can_carry_is_as_the_page_says() -> None:
    head = PAGE.split("## What each format can carry\n", 1)[1].strip().splitlines()[0]
    names = re.findall(r"`([a-z-]+)`", head)
    assert set(names) == set(FORMAT_MODULES) - {"text-fallback"}
    rows = {row[0]: row[1:] for row in table("What each format can carry")}
    scopes = {"request": "the request", "batch": "the batch", "none": ""}
    for name, *cells in zip(names, *rows.values(), strict=True):
        known = wire_format(name)
        able = known.capabilities
        length = able.call_id_length if able.call_id_length < 1_000_000 else "any"
        assert cells[:7] == [
            "yes" if able.needs_call_ids else "no",
            str(length),
            scopes[able.call_id_scope],
            str(able.tool_name_length),
            "text" if able.arguments_are_text else "an object",
            "yes" if able.has_error_flag else "no",
            "yes" if known.choice_writer else "no",
        ]


@each_case("name", [name for name in FORMAT_MODULES if name != "openai"])
def test_a_forced_choice_is_told_or_not_as_the_format_can(name: str) -> None:
    known = wire_format(name)
    export = written_choice(known, ToolChoice("required"))
    is_told = not export.report.of_kind("choice_not_enforced")
    assert is_told == (known.choice_writer is not None)


def examples() -> Iterator[tuple[str, str]]:
    """The blocks of Python, each with the heading that it stands under."""
    heading = ""
    for match in re.finditer(
        r"^### ([^\n]+)$|^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    ):
        heading = match[1] or heading
        if match[2]:
            yield heading, match[2]


CODE = dict(reversed([*examples()]))
"""The first example under each heading."""

CHAT_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
}


def converse(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    message = {"role": "assistant", "content": content}
    metrics = {"latencyMs": 1}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": metrics}


def cohere(**message: Any) -> dict[str, Any]:
    return {"id": "c", "finish_reason": "COMPLETE", "message": {"role": "assistant", **message}}


def spelled(name: str) -> list[dict[str, Any]]:
    """The answer that asks for the sum, and the one that says it."""
    turns = (asks(Call("add", ASKED, "call_1")), says("3"))
    return [json.loads(spell_whole(name, turn)) for turn in turns]


FUNCTION_TOOL = {"type": "function", "function": FUNCTION}
CONVERSE_TOOL = {"name": "add", "description": "Adds.", "inputSchema": {"json": SCHEMA}}
CONVERSE_CALL = {"toolUseId": "call_1", "name": "add", "input": ASKED}
TALKS: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "OpenAI Chat Completions": ("openai", spelled("openai"), FUNCTION_TOOL),
    "OpenAI Responses": (
        "openai-responses",
        spelled("openai-responses"),
        {"type": "function", **FUNCTION, "strict": False},
    ),
    "Anthropic Messages": (
        "anthropic",
        spelled("anthropic"),
        {"name": "add", "description": "Adds.", "input_schema": SCHEMA},
    ),
    "Amazon Bedrock": (
        "bedrock",
        [converse("tool_use", {"toolUse": CONVERSE_CALL}), converse("end_turn", {"text": "3"})],
        {"toolSpec": CONVERSE_TOOL},
    ),
    "Google Gemini": ("gemini", spelled("gemini"), {"function_declarations": [FUNCTION]}),
    "Cohere": (
        "cohere",
        [cohere(tool_calls=[CHAT_CALL]), cohere(content=[{"type": "text", "text": "3"}])],
        FUNCTION_TOOL,
    ),
    "Ollama": ("ollama", spelled("ollama"), FUNCTION_TOOL),
}


def meaning(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what says nothing: that it is complete, or that its text is empty."""
    return {key: value for key, value in item.items() if (key, value) not in SAYS_NOTHING}


SAYS_NOTHING = [("status", "completed"), ("content", "")]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """A provider that every official client takes for its own."""
    with fake_provider() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{fake.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        monkeypatch.setenv("OLLAMA_HOST", fake.url)
        monkeypatch.setenv("CO_API_URL", fake.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", fake.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "x")
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "CO_API_KEY"):
            monkeypatch.setenv(name, "x")
        yield fake
    # A client that an example leaves open must not warn in another test.
    gc.collect()


def add(arguments: dict[str, Any]) -> int:
    total: int = arguments["a"] + arguments["b"]
    return total


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the examples leave the client open
@pytest.mark.parametrize("title", TALKS)
def test_the_example_for_each_client_runs_and_is_on_record(
    sqlite_store: Store, provider: FakeProvider, title: str
) -> None:
    name, answers, tool = TALKS[title]
    pytest.importorskip(
        {"bedrock": "boto3", "gemini": "google.genai"}.get(name, name.partition("-")[0])
    )
    for answer in answers:
        provider.will_answer(answer)
    with sqlite_store.open_session() as session:
        given = {"session": session, "functions": {"add": add}, "tools": [tool]}
        exec(compile(CODE[title], title, "exec"), given)
    assert provider.refused == []
    assert [request.wire_format for request in provider.requests] == [name] * 2

    (invocation,) = sqlite_store.reader.invocations().items
    assert (invocation.tool_name, invocation.state) == ("add", "success")
    transcript = load_transcript(sqlite_store.reader, str(session.id), payloads=True)
    conversation = conversation_of(transcript)
    assert [message.role for message in conversation.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [call.arguments for call in conversation.messages[1].calls] == [ASKED]
    # What was sent is what the record gives for the same moment.
    member = next(iter(export_transcript(transcript, name).request))
    sent = provider.requests[1].body[member]
    exported: Any = export_transcript(transcript, name).request[member]
    assert list(map(meaning, exported[: len(sent)])) == list(map(meaning, sent))


@pytest.mark.parametrize("title", ["One result without its conversation", "Tools of servers"])
def test_the_example_of_a_section_holds(title: str) -> None:
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    [code] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(code, {})


STREAMED = [code for title, code in examples() if title == "OpenAI Chat Completions"]

STORY = (
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Once "}}]}\n\nda',
    b'ta: {"id":"c","choices":[{"index":0,"delta":{"content":"upon."},',
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the examples leave the client open
def test_the_example_of_a_stream_prints_and_records_it(
    sqlite_store: Store, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    provider.will_stream(STORY)
    with sqlite_store.open_session() as session:
        given: dict[str, Any] = {"session": session}
        exec(compile(STREAMED[1], "stream", "exec"), given)
    assert capsys.readouterr().out == "Once upon."
    assert given["answer"].response.message.text == "Once upon."
    (view,) = sqlite_store.reader.conversation(session.id)[1]
    assert (view.role, view.text, view.wire_format) == ("assistant", "Once upon.", "openai")


def test_the_example_of_an_asynchronous_stream_prints_and_records_it(
    sqlite_store: Store, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    provider.will_stream(STORY)
    with sqlite_store.open_session() as session:
        given: dict[str, Any] = {"session": session}
        exec(compile(STREAMED[2], "asynchronous stream", "exec"), given)
        answer = asyncio.run(given["answered"]([{"role": "user", "content": "Tell me a story."}]))
    assert capsys.readouterr().out == "Once upon."
    assert answer.response.message.text == "Once upon."
    (view,) = sqlite_store.reader.conversation(session.id)[1]
    assert (view.role, view.text, view.wire_format) == ("assistant", "Once upon.", "openai")
