"""Rules that the types of a format do not express: pairs, order, names, characters, no blanks.

Each function accepts what the type allows (see `tests.support.wire.schemas`) and returns the rules
that it breaks, each as a sentence. A rule is here if some server was seen to enforce it: what every
server accepts is narrower than what most accept. Results must be in the order of their calls.
"""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.wire import anthropic_checks, chat_checks, gemini_checks, responses_checks
from tests.support.wire.bedrock_checks import bedrock_rules
from tests.support.wire.ollama_checks import ollama_rules
from tests.support.wire.sendable import value_problems

History = Sequence[Mapping[str, Any]]


def chat_problems(messages: History) -> list[str]:
    """Broken rules in the messages of Chat Completions."""
    return [*value_problems(messages, "messages"), *chat_checks.chat_rules(messages)]


def responses_problems(items: History, *, continues: bool = False) -> list[str]:
    """Broken rules in the input of Responses.

    Args:
        items: the input as a list.
        continues: whether the server has the earlier items.
    """
    rules = responses_checks.responses_rules(items, continues=continues)
    return [*value_problems(items, "input"), *rules]


def anthropic_problems(messages: History) -> list[str]:
    """Broken rules in the messages of Anthropic Messages."""
    return [*value_problems(messages, "messages"), *anthropic_checks.anthropic_rules(messages)]


def bedrock_problems(messages: History) -> list[str]:
    """Broken rules in the messages of Bedrock Converse."""
    return [*value_problems(messages, "messages"), *bedrock_rules(messages)]


def gemini_problems(contents: History) -> list[str]:
    """Broken rules in the contents of generateContent."""
    return [*value_problems(contents, "contents"), *gemini_checks.gemini_rules(contents)]


def ollama_problems(messages: History) -> list[str]:
    """Broken rules in the messages of Ollama's chat."""
    return [*value_problems(messages, "messages"), *ollama_rules(messages)]


def cohere_problems(messages: History) -> list[str]:
    """Broken rules in the messages of Cohere's chat."""
    rules = chat_checks.chat_rules(messages, id_length=sys.maxsize, takes_parts=True)
    return [*value_problems(messages, "messages"), *rules]


def history_problems(wire_format: str, request: Mapping[str, Any]) -> list[str]:
    """Broken rules in a request, whose history is in the member that its format defines."""
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
    "bedrock": ("messages", bedrock_problems),
    "gemini": ("contents", gemini_problems),
    "ollama": ("messages", ollama_problems),
    "cohere": ("messages", cohere_problems),
}
