"""Turns pydantic's errors into sentences for people who may not know Python."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic_core import ErrorDetails

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
}
"""The expected value, by the type of pydantic's error."""

_TEMPLATES = {
    "value_error": "{error}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
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
_IGNORED = str.maketrans("", "", "_-")
_QUOTED = re.compile(r"'([^']*)'")


def sentence_of(error: ErrorDetails, *, is_from_file: bool) -> str:
    """The problem of a value in one sentence, without the value.

    Args:
        error: the problem.
        is_from_file: whether a person wrote the value in a file. The sentence then says how to
            write a text that looks like a number.
    """
    kind, given = error["type"], error["input"]
    context = cast("Mapping[str, Any]", error.get("ctx", {}))
    if kind in _WANTED:
        sentence = f"must be {_WANTED[kind]}, not {_type_word(given)}"
        is_scalar = given is not None and not isinstance(given, list | dict)
        lacks_quotes = is_from_file and kind == "string_type" and is_scalar
        return f"{sentence}: put it in quotes" if lacks_quotes else sentence
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
    return sentence + (proposal(given, names) if names[1:] else "")


def _type_word(value: object) -> str:
    if value is None:
        return "empty"
    # `bool` comes before its base class `int`.
    words = (word for kind, word in _TYPE_WORDS.items() if isinstance(value, kind))
    return next(words, type(value).__name__)


def proposal(given: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known name, or nothing."""
    import difflib  # noqa: PLC0415  only for mistyped names

    # Case, underscores and hyphens do not distinguish keys here.
    folded = {name.translate(_IGNORED).lower(): name for name in known}
    close = difflib.get_close_matches(given.translate(_IGNORED).lower(), folded, n=1)
    return f", did you mean `{folded[close[0]]}`?" if close else ""
