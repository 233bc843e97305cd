"""Reads the YAML of a configuration as a JSON value with positions.

PyYAML composes the nodes and marks their positions. Its constructors are not used: they read YAML
1.1, keep the last of two equal keys, and expand aliases without a limit. JSON is YAML, too.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from pydantic import JsonValue

from tooltrail.agents._extra import missing_extra
from tooltrail.agents.config_problems import (
    AgentConfigError,
    ConfigProblem,
    Path,
    quoted,
    spell_path,
)

try:
    from yaml import BaseLoader, MappingNode, MarkedYAMLError, Node, ScalarNode, SequenceNode
except ModuleNotFoundError as error:
    raise missing_extra(error) from error

MAX_SIZE = 1 << 20
"""Largest size of a file in bytes. A usual configuration has a few thousand."""

MAX_EXPANDED = 2 << 20
"""Largest number of characters and values after aliases are expanded. A file of `MAX_SIZE` without
aliases is below it."""

MAX_DEPTH = 100
"""Levels of nesting. The JSON parser of pydantic stops at 200."""

_BOM = "\ufeff"

# Control characters, and characters that end a line in YAML 1.1 but not in editors.
_INVISIBLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

_MAX_DIGITS = 400
"""Digits of a number. A double never needs more, and Python can read far more."""

_Place: TypeAlias = tuple[int, int]
"""A line and a column, both from 1."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value with the positions of its parts.

    Attributes:
        problems: problems of the text, in its order.
    """

    value: JsonValue
    problems: tuple[ConfigProblem, ...]
    _file: str
    _root: Node

    def problem(self, path: Path, message: str) -> ConfigProblem:
        """Make a problem at the position of a part: its key, or its beginning in a list.

        A missing part has the position of the nearest part around it. An index of a list may be
        text, as in a JSON pointer.
        """
        node, place, done = self._root, self._root, list[str | int]()
        for part in path:
            found = next((one for one in _members(node) if str(one[0]) == str(part)), None)
            if found is None:
                break
            key, place, node = found
            done.append(key)
        spelled = spell_path((*done, *path[len(done) :]))
        return ConfigProblem(self._file, *_place_of(place), spelled, message)


def decode(data: bytes, file: str) -> str:
    """Decode a file.

    Raises:
        AgentConfigError: the file is too large or not UTF-8.
    """
    _check_size(len(data), file)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0")):
            _fail(file, before, "not UTF-8: it looks like UTF-16; save it as UTF-8")
        byte = f"{data[error.start]:#04x}"
        _fail(file, before, f"not UTF-8: the byte {byte} is not part of a character")


def read_document(text: str, file: str) -> Document:
    """Parse text as YAML 1.2.

    Raises:
        AgentConfigError: the text is not one YAML document.
    """
    _check_size(len(text.encode("utf-8", "surrogatepass")), file)
    text = text.removeprefix(_BOM)
    if (hidden := _INVISIBLE.search(text)) is not None:
        code = f"U+{ord(hidden[0]):04X}"
        message = f"an invisible character, {code}: escape it in double quotes"
        _fail(file, text[: hidden.start()], message)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    except MarkedYAMLError as error:
        raise _worded(error, text, file) from error
    except RecursionError:
        _fail(file, "", f"nested deeper than {MAX_DEPTH} levels")
    if loader.yaml_version not in {None, (1, 2)}:
        _fail(file, "", "only YAML 1.2 is read; leave the `%YAML` line out")
    reading = _Reading(file)
    value = None if root is None else reading.value(root, ())
    if root is None or (value is None and not reading.problems):
        _fail(file, "", "the file is empty")
    return Document(value, tuple(reading.problems.values()), file, root)


class _Loader(BaseLoader):
    """Gives scalars no implicit tag, and allows tabs between the parts of a flow collection."""

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":  # pyright: ignore[reportUnknownMemberType]  untyped there
            self.forward()
            super().scan_to_next_token()

    def resolve(self, kind: object, value: object, implicit: object) -> str:
        """No implicit tag."""
        del kind, value, implicit
        return ""


class _Reading:
    """Makes the value of the nodes of one document. Use an instance once.

    Attributes:
        problems: problems by position.
    """

    def __init__(self, file: str) -> None:
        self.problems: dict[_Place, ConfigProblem] = {}
        self._file = file
        self._size = 0

    def value(self, node: Node, path: Path, depth: int = 0) -> JsonValue:
        """The value of a node, with aliases expanded.

        Raises:
            AgentConfigError: the value is nested too deep or too large.
        """
        self._size += 1 + (len(node.value) if isinstance(node, ScalarNode) else 0)
        if depth > MAX_DEPTH:
            self._stop(node, f"nested deeper than {MAX_DEPTH} levels")
        if self._size > MAX_EXPANDED:
            self._stop(node, "too large after aliases are expanded")
        if node.tag:
            self._report(node, path, "tags are not supported; remove the tag")
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [self.value(one, (*path, n), depth + 1) for n, _, one in _members(node)]
        try:
            return _plain_value(node.value) if _is_plain(node) else _whole_text(node.value)
        except ValueError as error:
            self._report(node, path, str(error))
            return None

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {}
        lines: dict[str, int] = {}
        members: list[tuple[Node, Node]] = node.value
        for key_node, member in members:
            key = self.value(key_node, path, depth + 1)
            line, _ = _place_of(key_node)
            if not isinstance(key, str):
                self._report(key_node, path, "a key must be text: put it in quotes")
            elif key == "<<" and _is_plain(key_node):
                message = "merge keys (`<<`) are not supported: write the keys out"
                self._report(key_node, path, message)
            elif key in lines:
                where = f"lines {lines[key]} and {line}"
                message = f"duplicate key {quoted(key)}: {where}"
                self._report(key_node, (*path, key), message)
            else:
                lines[key] = line
                value[key] = self.value(member, (*path, key), depth + 1)
        return value

    def _report(self, node: Node, path: Path, message: str) -> None:
        place = _place_of(node)
        problem = ConfigProblem(self._file, *place, spell_path(path), message)
        self.problems.setdefault(place, problem)

    def _stop(self, node: Node, message: str) -> NoReturn:
        raise AgentConfigError([ConfigProblem(self._file, *_place_of(node), "", message)])


def _place_of(node: Node) -> _Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_plain(node: Node) -> bool:
    """Whether a scalar has no quotes and no tag."""
    return isinstance(node, ScalarNode) and node.style is None and not node.tag


def _members(node: Node) -> Iterator[tuple[str | int, Node, Node]]:
    """The parts of a node: key or index, the node whose position stands for the part, the value."""
    if isinstance(node, MappingNode):
        yield from ((key.value, key, one) for key, one in node.value)
    elif isinstance(node, SequenceNode):
        yield from ((number, one, one) for number, one in enumerate(node.value))


def _check_size(size: int, file: str) -> None:
    if size > MAX_SIZE:
        _fail(file, "", f"larger than {MAX_SIZE >> 20} MiB")


def _fail(file: str, before: str, message: str) -> NoReturn:
    """Raise a problem at the position after the text `before`."""
    lines = re.split("\r\n|\r|\n", before)
    raise AgentConfigError([ConfigProblem(file, len(lines), len(lines[-1]) + 1, "", message)])


def _worded(error: MarkedYAMLError, text: str, file: str) -> AgentConfigError:
    mark = error.problem_mark or error.context_mark
    assert mark is not None
    began = ""
    if error.context is not None and error.context_mark is not None:
        began = f", {error.context} that begins in line {error.context_mark.line + 1}"
    message = f"not YAML: {error.problem}{began}"
    if text[mark.index : mark.index + 1] == "\t":
        message = "a tab in the indentation: indent with spaces"
    elif error.problem == "but found another document":
        message = "the file has more than one document; keep only one"
    return AgentConfigError([ConfigProblem(file, mark.line + 1, mark.column + 1, "", message)])


def _whole_text(text: str) -> str:
    r"""Text in which surrogate pairs, as JSON escapes them, are replaced by their characters.

    Raises:
        ValueError: half of a pair is missing.
    """
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair is missing") from None


def _plain_value(text: str) -> str | int | float | bool | None:
    """The value of a scalar without quotes, by the core schema of YAML 1.2.

    `no`, `on`, `12:30` and `2026-01-01` are text here; YAML 1.1 reads them as other types.

    Raises:
        ValueError: a number that JSON cannot hold, or that YAML versions read differently; the
            message says what to write.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("JSON has no infinity and no `.nan`; put it in quotes for text")
    if not (_BASED.fullmatch(text) or _FLOAT.fullmatch(text)):
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} digits; put it in quotes for text")
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(
            "a number that begins with 0 is octal in some versions of YAML; remove the 0, or put "
            "the number in quotes"
        )
    if _BASED.fullmatch(text) or _INTEGER.fullmatch(text):
        return int(text, 0)
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is too large for a double; put it in quotes for text")
    return number
