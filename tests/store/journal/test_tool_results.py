"""Results go back to the provider under the ids and names that it gave, whatever they are."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import JsonValue

from tooltrail.journal.answers import record_response
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.invocation import Finished
from tooltrail.journal.session import Session
from tooltrail.journal.tool_results import tool_results_message
from tooltrail.records import ToolCall, invoke
from tooltrail.store import Store
from tooltrail.wire import ExportPolicy, ExportRefusedError, JsonObject

VLLM = "chatcmpl-tool-3206ba48d1f84cb0b1e1a0c6ab8c6c1e"
"""46 characters, where OpenAI's own servers take 40."""


def echo(arguments: dict[str, Any]) -> str:
    return f"ran {json.dumps(arguments)}"


def ended(session: Session, name: str, payload: JsonObject) -> list[Finished]:
    answer = record_response(session, name, payload)
    return [invoke(echo, call, session.start(call).finish) for call in answer.calls]


def chat(*calls: tuple[str, str]) -> JsonObject:
    spelled: list[JsonValue] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for call_id, name in calls
    ]
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": spelled}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def responses(call_id: str) -> JsonObject:
    item: JsonObject = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": call_id,
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    return {"id": "r", "object": "response", "status": "completed", "output": [item]}


def anthropic(call_id: str) -> JsonObject:
    use: JsonObject = {"type": "tool_use", "id": call_id, "name": "f", "input": {}}
    return {"type": "message", "role": "assistant", "content": [use], "stop_reason": "tool_use"}


def gemini(name: str) -> JsonObject:
    part: JsonObject = {"functionCall": {"name": name, "args": {}, "id": "1"}}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize(
    ("name", "payload", "member", "expected"),
    [
        ("openai", chat((VLLM, "f")), "tool_call_id", [VLLM]),
        ("openai", chat(("a", "f"), ("a", "g")), "tool_call_id", ["a", "a"]),
        ("openai-responses", responses("c" * 70), "call_id", ["c" * 70]),
        ("anthropic", anthropic("functions.Bash:0"), "tool_use_id", ["functions.Bash:0"]),
        ("gemini", gemini("read file"), "name", ["read file"]),
    ],
)
def test_ids_and_names_are_those_of_the_answer(
    store: Store, name: str, payload: JsonObject, member: str, expected: Sequence[str]
) -> None:
    with store.open_session() as session:
        results = tool_results_message(name, ended(session, name, payload))
    assert [value for item in results for value in members(item, member)] == list(expected)


def members(value: JsonValue, name: str) -> list[JsonValue]:
    """The values of all members of this name, however deep."""
    if isinstance(value, list):
        return [found for item in value for found in members(item, name)]
    if not isinstance(value, dict):
        return []
    found: list[JsonValue] = [value[name]] if name in value else []
    return found + [inner for member in value.values() for inner in members(member, name)]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("openai", chat(("a", "f"))),
        ("openai-responses", responses("a")),
        ("anthropic", anthropic("a")),
        ("gemini", gemini("f")),
    ],
)
def test_a_strict_policy_accepts_results_that_nothing_changes(
    store: Store, name: str, payload: JsonObject
) -> None:
    strict = ExportPolicy(strict=True)
    with store.open_session() as session:
        finished = ended(session, name, payload)
    assert tool_results_message(name, finished, strict) == tool_results_message(name, finished)


def test_a_strict_policy_refuses_results_that_would_be_changed(store: Store) -> None:
    def fails(_: dict[str, Any]) -> str:
        raise ValueError("no")

    with store.open_session() as session:
        call = ToolCall.of("f", {}, call_id="a")
        failed = invoke(fails, call, session.start(call).finish)
    with pytest.raises(ExportRefusedError) as refused:
        tool_results_message("openai", [failed], ExportPolicy(strict=True))
    assert [change.kind for change in refused.value.report] == ["error_as_prefix"]


def test_a_call_that_was_recorded_before_under_its_key_is_the_same_call(store: Store) -> None:
    from tooltrail.records import CompleteOutput, GenericOutput

    call = ToolCall(
        tool_name="sql",
        arguments_raw="SELECT 1",
        call_id="a",
        kind="custom",
        flags=("id_repeated",),
    )
    output = CompleteOutput.success("sql", GenericOutput.of("1"))
    with store.open_session() as session:
        first = session.record(EndedCall(call, output, idempotency_key="k"))
        again = session.record(EndedCall(call, output, idempotency_key="k"))
    assert again.invocation_id == first.invocation_id
    assert again.call == first.call == call
    (result,) = tool_results_message("openai-responses", [again])
    assert members(result, "type") == ["custom_tool_call_output"]
