"""What the types of a format do not tell: pairs, order, names, characters, and nothing empty.

Each function takes what its type allows (`tests.support.wire.schemas` tells) and gives the rules
that it breaks, each one a sentence. A rule is here when some server was seen to enforce it; what
every server takes is narrower than what most take. Results stand in the order of their calls.
"""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.wire import anthropic_checks, chat_checks, gemini_checks, responses_checks
from tests.support.wire.ollama_checks import ollama_rules
from tests.support.wire.sendable import value_problems

History = Sequence[Mapping[str, Any]]


def chat_problems(messages: History) -> list[str]:
    """Of the messages of Chat Completions."""
    return [*value_problems(messages, "messages"), *chat_checks.chat_rules(messages)]


def responses_problems(items: History, *, continues: bool = False) -> list[str]:
    """Of the input of Responses.

    Args:
        items: the input as a list.
        continues: whether the server has what came before.
    """
    rules = responses_checks.responses_rules(items, continues=continues)
    return [*value_problems(items, "input"), *rules]


def anthropic_problems(messages: History) -> list[str]:
    """Of the messages of Anthropic Messages."""
    return [*value_problems(messages, "messages"), *anthropic_checks.anthropic_rules(messages)]


def gemini_problems(contents: History) -> list[str]:
    """Of the contents of generateContent."""
    return [*value_problems(contents, "contents"), *gemini_checks.gemini_rules(contents)]


def ollama_problems(messages: History) -> list[str]:
    """Of the messages of Ollama's chat."""
    return [*value_problems(messages, "messages"), *ollama_rules(messages)]


def cohere_problems(messages: History) -> list[str]:
    """Of the messages of Cohere's chat."""
    rules = chat_checks.chat_rules(messages, id_length=sys.maxsize, takes_parts=True)
    return [*value_problems(messages, "messages"), *rules]


def history_problems(wire_format: str, request: Mapping[str, Any]) -> list[str]:
    """The rules that a request breaks, whose history is where its format has it."""
    member, check = _CHECKS[wire_format]
    history = request[member]
    rest = {key: value for key, value in request.items() if key != member}
    if isinstance(history, str):
        return [*value_problems(request)]
    if wire_format == "openai-responses":
        known = bool(request.get("previous_response_id") or request.get("conversation"))
        return [*value_problems(rest), *responses_problems(history, continues=known)]
    return [*value_problems(rest), *check(history)]


_CHECKS: dict[str, tuple[str, Callable[[History], list[str]]]] = {
    "openai": ("messages", chat_problems),
    "openai-responses": ("input", responses_problems),
    "anthropic": ("messages", anthropic_problems),
    "gemini": ("contents", gemini_problems),
    "ollama": ("messages", ollama_problems),
    "cohere": ("messages", cohere_problems),
}
