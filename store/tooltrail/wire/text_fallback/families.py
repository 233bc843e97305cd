"""The text formats of model families, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tooltrail.records import NotFoundError
from tooltrail.wire.text_fallback.bodies import JSON, TAGS, TEXT
from tooltrail.wire.text_fallback.family import Frame, TextFamily

_TOOL_RESULT = TextFamily(
    "tool_result",
    call=Frame("<tool_call{attributes}>", "</tool_call>", ("id", "name", "kind")),
    body=TEXT,
    result=Frame("<tool_result{attributes}>", "</tool_result>", ("id", "name", "status")),
)
"""The generic format, for models of any family that read XML-like text."""

_HERMES = TextFamily(
    "hermes",
    call=Frame("<tool_call>", "</tool_call>"),
    body=JSON,
    result=Frame("<tool_response>", "</tool_response>"),
)
"""Hermes of Nous Research, Qwen 2.5 and 3, and models trained like them.

Source: the chat templates of Qwen 2.5 and Qwen 3 (`tokenizer_config.json`), and the README of
NousResearch/Hermes-Function-Calling. The results of a batch are in one message of the user, as
plain text (Qwen; Hermes itself writes JSON with `name` and `content` there). Results are paired
with calls by order.
"""

_ANTHROPIC_XML = TextFamily(
    "anthropic-xml",
    call=Frame(
        "<invoke>\n<tool_name>{name}</tool_name>\n<parameters{attributes}>",
        "</parameters>\n</invoke>",
        ("format",),
    ),
    body=TAGS,
    result=Frame("<result>\n<tool_name>{name}</tool_name>\n<stdout>", "</stdout>\n</result>"),
    error=Frame("<error>", "</error>"),
    calls_in="function_calls",
    results_in="function_results",
)
"""Claude before the Messages API had native tools.

Source: docs.anthropic.com, "Legacy tool use" (`/claude/docs/legacy-tool-use`), and the system
prompt in that document. Results are paired with calls by name and order.
"""

FAMILIES: Mapping[str, TextFamily] = MappingProxyType(
    {family.name: family for family in (_TOOL_RESULT, _HERMES, _ANTHROPIC_XML)}
)
"""The families by name."""


def text_family(name: str) -> TextFamily:
    """Return the family with this name.

    Raises:
        NotFoundError: no family has this name.
    """
    if name not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise NotFoundError(f"unknown text format {name!r}; known formats: {known}")
    return FAMILIES[name]
