"""The types of Cohere's chat, from version 7.3 of its client (`ChatMessageV2`, `ToolV2`, …).

The client itself would install a tokenizer and the client of a model hub. The types here also have
the server's rules for names (docs.cohere.com/reference/errors), and require an id for every call.
"""

from typing import Any

Schema = dict[str, Any]


def _object(optional: Schema | None = None, **required: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": [*required],
    }


def _is(value: str) -> Schema:
    return {"const": value}


def _content(*parts: Schema) -> Schema:
    return {"anyOf": [_WORDS, {"type": "array", "items": {"anyOf": [*parts]}}]}


_TEXT, _MAP = {"type": "string"}, {"type": "object"}
_WORDS = {**_TEXT, "minLength": 1}
_NAME = {**_TEXT, "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}

_SAID = _object(type=_is("text"), text=_TEXT)
_THOUGHT = _object(type=_is("thinking"), thinking=_TEXT)
_IMAGE = _object({"detail": {"enum": ["auto", "low", "high"]}}, url=_TEXT)
_SHOWN = _object(type=_is("image_url"), image_url=_IMAGE)
# Cohere's guides send the data of a tool as text; the client's type allows only an object.
_DOCUMENT = _object({"id": _TEXT}, data={"type": ["object", "string"]})
_GIVEN = _object(type=_is("document"), document=_DOCUMENT)

_CALLED = _object(name=_NAME, arguments=_TEXT)
_CALL = _object(id=_WORDS, type=_is("function"), function=_CALLED)
_OF_ASSISTANT: Schema = {
    "content": _content(_SAID, _THOUGHT),
    "tool_plan": _TEXT,
    "tool_calls": {"type": "array", "items": _CALL},
    "citations": {"type": "array", "items": _MAP},
}
MESSAGE: Schema = {
    "anyOf": [
        _object(role=_is("system"), content=_content(_SAID)),
        _object(role=_is("user"), content=_content(_SAID, _SHOWN)),
        _object(_OF_ASSISTANT, role=_is("assistant")),
        _object(role=_is("tool"), tool_call_id=_WORDS, content=_content(_SAID, _GIVEN)),
    ]
}
_FUNCTION = _object({"description": _TEXT}, name=_NAME, parameters=_MAP)
TOOL = _object(type=_is("function"), function=_FUNCTION)
TOOL_CHOICE: Schema = {"enum": ["REQUIRED", "NONE"]}
RESPONSE_FORMAT = _object({"json_schema": _MAP}, type=_is("json_object"))
