"""Complaints of pydantic about a configuration, in the words of its author, who knows no Python."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tooltrail.agents._yaml_nodes import Fault, Node
from tooltrail.agents.config_problems import Path, quoted
from tooltrail.agents.configuration import AgentConfig
from tooltrail.agents.schemas import UnsupportedSchemaError

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
}
"""What a type of pydantic's errors wants, by the type."""

_TEMPLATES = {
    "value_error": "{error}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_pattern_mismatch": "does not match the pattern `{pattern}`",
}
"""Sentences, by the type of pydantic's error; they are filled with its context."""

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


def complaints(error: ValidationError, root: Node) -> Iterator[Fault]:
    """What is wrong with a document, each time where, what it is about, and a sentence."""
    for details in error.errors(include_url=False):
        for path, message in _worded(details):
            yield Fault(*root.locate(path), message)


def _worded(error: ErrorDetails) -> Iterator[tuple[Path, str]]:
    """What one error of pydantic says: each time where, and a sentence.

    It is several sentences for a schema with several faults.
    """
    path, kind = error["loc"], error["type"]
    context = cast("Mapping[str, Any]", error.get("ctx", {}))
    refusal = context.get("error")
    if isinstance(refusal, UnsupportedSchemaError):
        for fault in refusal.faults:
            yield (*path, *_read_pointer(fault.pointer)), fault.message
    elif kind == "missing":
        yield path[:-1], f"the key {quoted(str(path[-1]))} is missing"
    elif kind == "extra_forbidden":
        yield path, unknown_key(path)
    else:
        sentence = _sentence(error, context)
        # What is said of several keys together stands where the first of them does.
        yield path or tuple(_NAMED.findall(sentence)[:1]), sentence


def _sentence(error: ErrorDetails, context: Mapping[str, Any]) -> str:
    kind, given = error["type"], error["input"]
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
    return sentence + (_proposal(given, {name: name for name in names}) if names[1:] else "")


def _other_type(wanted: str, given: object) -> str:
    sentence = f"must be {wanted}, not {_type_word(given)}"
    is_scalar = given is not None and not isinstance(given, list | dict)
    return f"{sentence}: put it in quotes" if wanted == "text" and is_scalar else sentence


def _type_word(value: object) -> str:
    if value is None:
        return "empty"
    # A boolean is an integer, too, so that its own type comes first.
    return next(word for kind, word in _TYPE_WORDS.items() if isinstance(value, kind))


def unknown_key(path: Path) -> str:
    """What is said of a key that its section does not know."""
    key = str(path[-1])
    model = _model_at(path[:-1])
    known = [info.alias or name for name, info in model.model_fields.items()]
    # Case and underscores are how people spell the same word.
    return f"unknown key {quoted(key)}" + _proposal(key, {_folded(name): name for name in known})


def _proposal(given: str, known: Mapping[str, str]) -> str:
    folded = given if given in known else _folded(given)
    close = difflib.get_close_matches(folded, known, n=1)
    return f", did you mean `{known[close[0]]}`?" if close else ""


def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _model_at(path: Path) -> type[BaseModel]:
    """The section of a configuration that stands at a path."""
    model: type[BaseModel] = AgentConfig
    for part in path:
        if isinstance(part, str):
            fields = {info.alias or name: info for name, info in model.model_fields.items()}
            model = next(_models_in(fields[part].annotation))
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _read_pointer(pointer: str) -> Path:
    """The keys of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
