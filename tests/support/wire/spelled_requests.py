"""A question, calls of one tool and their results, written by hand as each provider takes them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

TOOL = "get_weather"
QUESTION = "weather?"
ASKED = {"role": "user", "content": QUESTION}

Asked = Sequence[tuple[str | None, dict[str, Any]]]
"""Id and arguments of each call."""

Told = Sequence[tuple[str | None, str, bool]]
"""Id of the call, text, and whether it is an error, of each result."""


def spell_request(name: str, calls: Asked, results: Told) -> dict[str, Any]:
    return _REQUESTS[name](calls, results)


def _named(member: str, call_id: str | None) -> dict[str, Any]:
    return {} if call_id is None else {member: call_id}


def _prefixed(text: str, *, is_error: bool) -> str:
    return f"ERROR: {text}" if is_error else text


def _text(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, separators=(",", ":"))


def _chat(calls: Asked, results: Told, **beside: Any) -> dict[str, Any]:
    """One message for each result."""
    functions = [(one, {"name": TOOL, "arguments": _text(given)}) for one, given in calls]
    asked = [{"id": one, "type": "function", "function": function} for one, function in functions]
    answered = [
        {"role": "tool", "tool_call_id": one, "content": _prefixed(text, is_error=is_error)}
        for one, text, is_error in results
    ]
    said = {"role": "assistant", **beside, "tool_calls": asked}
    return {"messages": [ASKED, said, *answered]}


def _openai(calls: Asked, results: Told) -> dict[str, Any]:
    return _chat(calls, results, content=None)


def _responses(calls: Asked, results: Told) -> dict[str, Any]:
    """An item for each call, and behind all of them one for each result."""
    asked = [
        {"type": "function_call", "call_id": one, "name": TOOL, "arguments": _text(given)}
        for one, given in calls
    ]
    outputs = [(one, _prefixed(text, is_error=is_error)) for one, text, is_error in results]
    answered = [
        {"type": "function_call_output", "call_id": one, "output": text} for one, text in outputs
    ]
    return {"input": [ASKED, *asked, *answered]}


def _anthropic(calls: Asked, results: Told) -> dict[str, Any]:
    """One message of the user with all results."""
    asked = [{"type": "tool_use", "id": one, "name": TOOL, "input": given} for one, given in calls]
    answered = [
        {"type": "tool_result", "tool_use_id": one, "content": text}
        | ({"is_error": True} if is_error else {})
        for one, text, is_error in results
    ]
    said = {"role": "assistant", "content": asked}
    return {"messages": [ASKED, said, {"role": "user", "content": answered}]}


def _bedrock(calls: Asked, results: Told) -> dict[str, Any]:
    """One message of the user with all results, each with its status."""
    used = [{"toolUseId": one, "name": TOOL, "input": given} for one, given in calls]
    ended = [
        {
            "toolUseId": one,
            "content": [{"text": text}],
            "status": "error" if is_error else "success",
        }
        for one, text, is_error in results
    ]
    return {
        "messages": [
            {"role": "user", "content": [{"text": QUESTION}]},
            {"role": "assistant", "content": [{"toolUse": one} for one in used]},
            {"role": "user", "content": [{"toolResult": one} for one in ended]},
        ]
    }


def _gemini(calls: Asked, results: Told) -> dict[str, Any]:
    """One content of the user with as many parts as there are calls."""
    asked = [{"name": TOOL, "args": given, **_named("id", one)} for one, given in calls]
    responses = [
        (one, {"error": text} if is_error else {"output": text}) for one, text, is_error in results
    ]
    told = [{"name": TOOL, "response": value, **_named("id", one)} for one, value in responses]
    return {
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {"role": "model", "parts": [{"functionCall": one} for one in asked]},
            {"role": "user", "parts": [{"functionResponse": one} for one in told]},
        ]
    }


def _ollama(calls: Asked, results: Told) -> dict[str, Any]:
    """One message for each result, in the order of the calls; ids only if there are some."""
    asked = [
        {**_named("id", one), "function": {"name": TOOL, "arguments": given}}
        for one, given in calls
    ]
    told = [
        (_named("tool_call_id", one), _prefixed(text, is_error=is_error))
        for one, text, is_error in results
    ]
    answered = [{"role": "tool", "tool_name": TOOL, **one, "content": text} for one, text in told]
    return {
        "messages": [ASKED, {"role": "assistant", "content": "", "tool_calls": asked}, *answered]
    }


_REQUESTS: dict[str, Callable[[Asked, Told], dict[str, Any]]] = {
    "openai": _openai,
    "cohere": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "ollama": _ollama,
    "gemini": _gemini,
}
PROVIDERS = tuple(_REQUESTS)
