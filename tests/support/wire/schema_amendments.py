"""The JSON Schema of a client's type, without unknown keys, with additions for its server.

Ollama's server reads ids that version 0.6.3 of its client drops, and accepts any JSON Schema for
the arguments of a tool. Gemini's server reads each key in two spellings, requires names, and
accepts only one of the two schema members at a time.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]

_OPEN_TITLES = frozenset({"ClientCapabilities"})
"""Objects that the specification defines as open to other members."""

_MAPPINGS = ("properties", "$defs", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not")

_BASE64 = {"type": "string", "pattern": r"^[A-Za-z0-9+/_-]*={0,2}$"}


def amended(wire_format: str, schema: Schema) -> Schema:
    """The schema with the server's additions; objects reject keys that are unknown to both."""
    amend = _AMENDMENTS.get(wire_format)
    for part in list(parts(schema)):
        if amend:
            amend(part)
        is_object = "properties" in part and "additionalProperties" not in part
        if is_object and part.get("title") not in _OPEN_TITLES:
            part["additionalProperties"] = False
    return schema


def parts(schema: Schema) -> Iterator[Schema]:
    """All schemas in a schema, itself first. A property may have the name of a keyword."""
    yield schema
    for keyword in _MAPPINGS:
        for part in schema.get(keyword, {}).values():
            yield from parts(part)
    for keyword in _LISTS:
        for part in schema.get(keyword, ()):
            yield from parts(part)
    for keyword in _SINGLES:
        if isinstance(schema.get(keyword), dict):
            yield from parts(schema[keyword])


_OLLAMA_KEYS: dict[str, Schema] = {
    "tool_name": {
        "tool_call_id": {"type": "string"},
        "images": {"type": "array", "items": _BASE64},
    },
    "function": {"id": {"type": "string"}, "type": {"const": "function"}},
    "arguments": {"index": {"type": "integer", "minimum": 0}},
    "parameters": {"parameters": {"type": "object"}},
}
"""Members that the server reads although the client's type lacks them or differs. The key is a
member that only such an object has, since the titles of objects are not unique."""


def _amend_ollama(part: Schema) -> None:
    known = part.get("properties", {})
    for key in _OLLAMA_KEYS.keys() & known.keys():
        # A tool definition also has a function, and a type, but no id.
        if key != "function" or "type" not in known:
            known |= _OLLAMA_KEYS[key]


_GEMINI_RULES: dict[str, Schema] = {
    "FunctionCall": {"required": ["name"]},
    "FunctionResponse": {"required": ["name", "response"]},
    "FunctionDeclaration": {
        "required": ["name"],
        "not": {
            "required": ["parameters"],
            "anyOf": [
                {"required": ["parametersJsonSchema"]},
                {"required": ["parameters_json_schema"]},
            ],
        },
    },
}
"""By title of the object: rules of the server that the type does not express."""


def _amend_gemini(part: Schema) -> None:
    part.update(_GEMINI_RULES.get(part.get("title", ""), {}))
    if "properties" in part:
        part["properties"] |= {snake(name): one for name, one in part["properties"].items()}
    if part.get("format") == "base64url":
        part.update(_BASE64)


def snake(name: str) -> str:
    """The second spelling of a key: `function_call` for `functionCall`."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _amend_responses(part: Schema) -> None:
    # The API accepts reasoning without an id, although the client's type requires one.
    if part.get("title") == "ResponseReasoningItemParam":
        part["required"] = [name for name in part["required"] if name != "id"]


_AMENDMENTS: dict[str, Callable[[Schema], None]] = {
    "ollama": _amend_ollama,
    "gemini": _amend_gemini,
    "openai-responses": _amend_responses,
}
