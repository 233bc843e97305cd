"""One YAML document as a JSON value, with the place of everything in it.

PyYAML takes the text apart into events; what they stand for is settled here. Its own constructors
read YAML 1.1, keep the last of two equal keys, and expand aliases without end. JSON is YAML, too.

This module is imported on first use: PyYAML comes with an extra.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import JsonValue
from yaml import (
    AliasEvent,
    BaseLoader,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    MarkedYAMLError,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    parse,
)

from tooltrail.agents._yaml_nodes import Fault, Node, NoDocumentError
from tooltrail.agents.config_problems import Path, Place, quoted

MAX_EXPANDED = 2 << 20
"""Characters and values of a document whose aliases are written out. A file that has its full
size without aliases is below it."""

MAX_DEPTH = 100
"""Levels of nesting; the reader of pydantic stops at 200."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

_MAX_DIGITS = 400
"""Digits of a number; more than any double needs, and far fewer than Python reads at all."""


class _Loader(BaseLoader):
    """Takes tabs between the parts of a flow collection, as YAML 1.2 and JSON do."""

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":  # pyright: ignore[reportUnknownMemberType]  untyped there
            self.forward()
            super().scan_to_next_token()


def compose(text: str) -> tuple[Node | None, list[Fault]]:
    """The node of a document, None where there is none, and what in it is not taken as it is.

    Args:
        text: of printable characters only.

    Raises:
        NoDocumentError: it is no YAML, or not one document.
    """
    composer = _Composer(parse(text, Loader=_Loader))
    try:
        return composer.compose(), composer.faults
    except MarkedYAMLError as error:
        raise _worded(error, text) from error


def _worded(error: MarkedYAMLError, text: str) -> NoDocumentError:
    mark = error.problem_mark or error.context_mark
    assert mark is not None
    place = Place(mark.line + 1, mark.column + 1)
    if text[mark.index : mark.index + 1] == "\t":
        return NoDocumentError(place, "a tab stands where only spaces may: indent with spaces")
    began = ""
    if error.context is not None and error.context_mark is not None:
        began = f", {error.context} that begins in line {error.context_mark.line + 1}"
    return NoDocumentError(place, f"no YAML: {error.problem}{began}")


class _Composer:
    """Makes a node of the events of one document. Used once."""

    def __init__(self, events: Iterator[Event]) -> None:
        self.faults: list[Fault] = []
        self._events = events
        self._anchors: dict[str, Node | None] = {}
        self._depth = 0

    def compose(self) -> Node | None:
        """The document; None where there is none.

        Raises:
            NoDocumentError: there are two, or it cannot be read to its end.
            MarkedYAMLError: it is no YAML.
        """
        next(self._events)  # the stream starts
        start = next(self._events)
        if isinstance(start, StreamEndEvent):
            return None
        _check_version(start)
        node = self._node(next(self._events), ())
        next(self._events)  # the document ends
        after = next(self._events)
        if isinstance(after, DocumentStartEvent):
            raise NoDocumentError(_place(after), "a second document begins; a file has one")
        return node

    def _node(self, event: Event, path: Path) -> Node:
        if isinstance(event, AliasEvent):
            return self._alias(event)
        assert isinstance(event, ScalarEvent | CollectionStartEvent)
        if event.tag is not None:
            self._fault(_place(event), path, "tags are not used here; leave it out")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            node = self._scalar(event, path)
        else:
            node = self._collection(event, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: AliasEvent) -> Node:
        name, place = event.anchor or "", _place(event)
        if name not in self._anchors:
            raise NoDocumentError(place, f"there is no anchor `&{name}` before this alias")
        node = self._anchors[name]
        if node is None:
            raise NoDocumentError(place, f"the alias `*{name}` stands inside of what it repeats")
        self._check_depth(node.depth, place)
        return replace(node, place=place)

    def _scalar(self, event: ScalarEvent, path: Path) -> Node:
        text, place = event.value, _place(event)
        size = 1 + len(text)
        try:
            is_plain = event.style is None and event.tag is None
            return Node(_plain_value(text) if is_plain else _whole_text(text), place, size)
        except ValueError as error:
            self._fault(place, path, str(error))
            return Node(None, place, size)

    def _collection(self, event: CollectionStartEvent, path: Path) -> Node:
        self._check_depth(1, _place(event))
        self._depth += 1
        is_mapping = isinstance(event, MappingStartEvent)
        node = self._mapping(event, path) if is_mapping else self._sequence(event, path)
        self._depth -= 1
        return node

    def _sequence(self, start: Event, path: Path) -> Node:
        place, size = _place(start), 1
        members: dict[str | int, Node] = {}
        while not isinstance(event := next(self._events), SequenceEndEvent):
            member = self._node(event, (*path, len(members)))
            members[len(members)] = member
            size = _within_bounds(size + member.size, member.place)
        value: JsonValue = [member.value for member in members.values()]
        return Node(value, place, size, _depth_over(members), members)

    def _mapping(self, start: Event, path: Path) -> Node:
        size = 1
        members: dict[str | int, Node] = {}
        keys: dict[str | int, Place] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, path, keys)
            member = self._node(next(self._events), path if key is None else (*path, key))
            size = _within_bounds(size + member.size + len(key or ""), member.place)
            if key is not None and key not in members:
                members[key] = member
        value: dict[str, JsonValue] = {str(key): node.value for key, node in members.items()}
        return Node(value, _place(start), size, _depth_over(members), members, keys)

    def _key(self, event: Event, path: Path, keys: dict[str | int, Place]) -> str | None:
        """The text of a key; None for one that is not taken, whose value is passed over."""
        is_plain = isinstance(event, ScalarEvent) and event.style is None
        node = self._node(event, path)
        if not isinstance(node.value, str):
            self._fault(node.place, path, "a key must be text: put it in quotes")
            return None
        if is_plain and node.value == "<<":
            self._fault(node.place, path, "merge keys (`<<`) are not used here: write the keys out")
            return None
        first = keys.setdefault(node.value, node.place)
        if first is not node.place:
            key, place = (*path, node.value), node.place
            where = f"the key {quoted(node.value)} stands twice: in line {first.line} and in line"
            self._fault(place, key, f"{where} {place.line}")
        return node.value

    def _check_depth(self, more: int, place: Place) -> None:
        if self._depth + more > MAX_DEPTH:
            raise NoDocumentError(place, f"nested deeper than {MAX_DEPTH} levels")

    def _fault(self, place: Place, path: Path, message: str) -> None:
        self.faults.append(Fault(place, path, message))


def _check_version(start: Event) -> None:
    assert isinstance(start, DocumentStartEvent)
    if start.version not in {None, (1, 2)}:
        raise NoDocumentError(_place(start), "only YAML 1.2 is read; leave the `%YAML` line out")


def _depth_over(members: Mapping[str | int, Node]) -> int:
    return 1 + max((member.depth for member in members.values()), default=0)


def _within_bounds(size: int, place: Place) -> int:
    if size > MAX_EXPANDED:
        raise NoDocumentError(place, "too large when its aliases are written out")
    return size


def _whole_text(text: str) -> str:
    r"""A text whose pairs of surrogates, as JSON escapes them, are the characters they stand for.

    Raises:
        ValueError: half of a pair is missing.
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair is no character") from None


def _plain_value(text: str) -> str | int | float | bool | None:
    """The value of a scalar that stands in no quotes, by the core schema of YAML 1.2.

    Only `true` and `false` are booleans, and only digits make numbers: `no`, `on`, `12:30` and
    `2026-01-01` are text, where readers of YAML 1.1 make something else of them.

    Raises:
        ValueError: a number that JSON cannot hold, or that is spelled ambiguously; the message says
            what to write.
    """
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("infinities and `.nan` are no JSON; in quotes it is text")
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _BASED.fullmatch(text):
        _check_length(text)
        return int(text, 0)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int:
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(
            "a number that begins with 0 is octal to some readers of YAML; leave the 0 out, or put "
            "it in quotes"
        )
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is beyond a double; in quotes it is text")
    return number


def _check_length(text: str) -> None:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} digits; in quotes it is text")


def _place(event: Event) -> Place:
    mark = event.start_mark
    assert mark is not None
    return Place(mark.line + 1, mark.column + 1)
