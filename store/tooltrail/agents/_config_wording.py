"""Turns pydantic's errors into messages for the author of a file, who may not know Python."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tooltrail.agents.config_problems import Path, quoted
from tooltrail.agents.configuration import (
    AgentConfig,
    Context,
    Limits,
    Output,
    StaticContext,
    Tier,
)
from tooltrail.agents.schemas import UnsupportedSchemaError

_SECTIONS: Mapping[str, type[BaseModel]] = {
    "tiers": Tier,
    "limits": Limits,
    "context": Context,
    "static": StaticContext,
    "output": Output,
}
"""Models of sections, by their keys."""

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
}
"""The expected value, by the type of pydantic's error."""

_TEMPLATES = {
    "value_error": "{error}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_pattern_mismatch": "does not match the pattern `{pattern}`",
}
"""Templates of messages, by the type of pydantic's error; the context fills them."""

_TYPE_WORDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number with a fraction",
    str: "text",
    list: "a list",
    dict: "a mapping of keys",
}
_NAMED = re.compile(r"`(\w+)`")
_QUOTED = re.compile(r"'([^']*)'")


def complaints(error: ValidationError) -> Iterator[tuple[Path, str]]:
    """The path and the message of each error."""
    for details in error.errors(include_url=False):
        path, kind = details["loc"], details["type"]
        refusal = details.get("ctx", {}).get("error")
        if isinstance(refusal, UnsupportedSchemaError):
            for fault in refusal.faults:
                yield (*path, *read_pointer(fault.pointer)), fault.message
        elif kind == "missing":
            yield path[:-1], f"the key {quoted(str(path[-1]))} is missing"
        elif kind == "extra_forbidden":
            yield path, unknown_key(path)
        else:
            sentence = _sentence(details)
            # An error about several keys has the position of the first of them.
            yield path or tuple(_NAMED.findall(sentence)[:1]), sentence


def _sentence(error: ErrorDetails) -> str:
    kind, given = error["type"], error["input"]
    context = cast("Mapping[str, Any]", error.get("ctx", {}))
    if kind in _WANTED:
        return _other_type(_WANTED[kind], given)
    if kind in _TEMPLATES:
        return _TEMPLATES[kind].format(**context)
    if kind == "literal_error":
        return _one_of(str(context["expected"]), given)
    return error["msg"][:1].lower() + error["msg"][1:]


def _one_of(expected: str, given: object) -> str:
    names = _QUOTED.findall(expected)
    sentence = "must be " + _QUOTED.sub(r"`\1`", expected)
    if not isinstance(given, str):
        return f"{sentence}, not {_type_word(given)}"
    return sentence + (_proposal(given, names) if names[1:] else "")


def _other_type(wanted: str, given: object) -> str:
    sentence = f"must be {wanted}, not {_type_word(given)}"
    is_scalar = given is not None and not isinstance(given, list | dict)
    return f"{sentence}: put it in quotes" if wanted == "text" and is_scalar else sentence


def _type_word(value: object) -> str:
    if value is None:
        return "empty"
    # `bool` comes before its base class `int`.
    return next(word for kind, word in _TYPE_WORDS.items() if isinstance(value, kind))


def unknown_key(path: Path) -> str:
    """The message about an unknown key of a section."""
    key = str(path[-1])
    section = next((one for one in reversed(path[:-1]) if isinstance(one, str)), "")
    fields = _SECTIONS.get(section, AgentConfig).model_fields
    known = [info.alias or name for name, info in fields.items()]
    return f"unknown key {quoted(key)}" + _proposal(key, known)


def unknown_tool(name: str, known: Iterable[str]) -> str:
    """The message about a tool that is not among the known ones."""
    return f"no built-in tool has the name {quoted(name)}" + _proposal(name, known)


def _proposal(given: str, known: Iterable[str]) -> str:
    # Case, underscores and hyphens do not distinguish keys here.
    folded = {_folded(name): name for name in known}
    close = difflib.get_close_matches(_folded(given), folded, n=1)
    return f", did you mean `{folded[close[0]]}`?" if close else ""


def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def read_pointer(pointer: str) -> Path:
    """The keys of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
