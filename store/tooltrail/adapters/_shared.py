"""What several adapters need: outputs of Python values, texts, new items of an input, errors."""

import json
import logging
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final

from pydantic_core import to_jsonable_python

from tooltrail.records import CompleteOutput, GenericOutput
from tooltrail.records.frozen import Frozen

_log = logging.getLogger("tooltrail.adapters")

_MOST_INPUTS: Final = 4096
"""The most conversations with a model that a handler can tell apart at the same time."""


def output_of(tool_name: str, value: object) -> CompleteOutput:
    """The complete output of a tool that returned this value: text, bytes, or else as JSON.

    Members that have no JSON are texts. So is a value that canonical JSON does not have.
    """
    try:
        found: Any = value if isinstance(value, str | bytes) else json_of(value)
        is_text = isinstance(found, str | bytes)
        result = GenericOutput.of(found) if is_text else GenericOutput.of(structured=found)
    except ValueError:  # a cycle, too deep, or a number that canonical JSON does not have
        result = GenericOutput.of(str(value))
    return CompleteOutput.success(tool_name, result)


def json_of(value: object) -> Any:
    """The JSON of a value; pydantic models, dataclasses and values of a store are objects.

    Raises:
        ValueError: the value contains itself, or is too deep.
    """
    try:
        return to_jsonable_python(value, bytes_mode="base64", fallback=_members_or_text)
    except UnicodeEncodeError:  # a lone surrogate, which only Python's own JSON can have
        return json.loads(json.dumps(value, default=str))


def _members_or_text(value: object) -> object:
    if isinstance(value, Frozen):
        return value.as_dict()
    try:
        return str(value)
    except Exception:  # noqa: BLE001  code of another program
        return f"<Unserializable {type(value).__qualname__} object>"


def text_of(content: Any) -> str | None:
    """The text that a model is shown: a content, or its parts; None if no part has a text."""
    if isinstance(content, str):
        return content
    texts = [one if isinstance(one, str) else one.get("text") for one in content]
    return "\n".join(one for one in texts if one is not None) or None


class Inputs:
    """Finds what is new in inputs of a model, which repeat the conversation so far. Thread-safe.

    Args:
        spell: makes the text of an item by which items are compared.
    """

    def __init__(self, spell: Callable[[Any], str] = repr) -> None:
        self._spell = spell
        self._known: dict[int, bool] = {}  # hashes of inputs, the oldest first
        self._lock = threading.Lock()

    def new_items(self, items: Iterable[Any]) -> list[Any]:
        """The items behind the longest earlier input that this input continues.

        Without such an input, all items are new.
        """
        given = list(items)
        # A hash of each beginning of the input. Items are spelled again, since they may change.
        *starts, whole = accumulate(
            map(self._spell, given), lambda old, new: hash((old, new)), initial=0
        )
        with self._lock:
            # An input that is repeated unchanged is another request with the same text.
            continued = [n for n, one in enumerate(starts) if self._known.pop(one, False)]
            self._known[whole] = True
            if len(self._known) > _MOST_INPUTS:
                del self._known[next(iter(self._known))]
        return given[max(continued, default=0) :]


@contextmanager
def logged_errors(what: str) -> Generator[None]:
    """Log an exception of recording instead of raising the exception, so that the agent goes on."""
    try:
        yield
    except Exception:  # noqa: BLE001  the values that are recorded may raise anything
        _log.exception("%s is not recorded", what)
