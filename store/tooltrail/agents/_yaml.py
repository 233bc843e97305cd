"""The text of a configuration as a JSON value, with the place of everything in it.

PyYAML composes the nodes and marks their places. Its constructors are not used: they read YAML 1.1,
keep the last of two equal keys, and expand aliases without end. JSON is YAML, too.
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
"""Bytes of a file; a configuration has some thousand."""

MAX_EXPANDED = 2 << 20
"""Characters and values of a document whose aliases are written out. A file that has its full
size without aliases is below it."""

MAX_DEPTH = 100
"""Levels of nesting; the reader of pydantic stops at 200."""

_BOM = "\ufeff"

# What editors take for part of a line and YAML 1.1 for its end, and what nobody sees.
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
"""Digits of a number; more than any double needs, and far fewer than Python reads at all."""

_Place: TypeAlias = tuple[int, int]
"""A line and a column, both from 1."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value with the place of everything in it.

    Attributes:
        problems: what in the text is not taken as it is, in the order of the text.
    """

    value: JsonValue
    problems: tuple[ConfigProblem, ...]
    _file: str
    _root: Node

    def problem(self, path: Path, message: str) -> ConfigProblem:
        """A problem with a part, which is named by its key, or by its beginning in a list.

        A part that is not there has the place of the nearest one around it. A position in a list
        may be a text, as in a JSON pointer.
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
    """The text of a file.

    Raises:
        AgentConfigError: it is too large or no UTF-8.
    """
    _check_size(len(data), file)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0")):
            _fail(file, before, "no UTF-8: it looks like UTF-16; save it as UTF-8")
        byte = f"{data[error.start]:#04x}"
        _fail(file, before, f"no UTF-8: a byte {byte} that belongs to no character")


def read_document(text: str, file: str) -> Document:
    """The value that a text spells in YAML 1.2.

    Raises:
        AgentConfigError: there is none, or more than one.
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
    """Leaves scalars without a tag, and takes tabs between the parts of a flow collection."""

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":  # pyright: ignore[reportUnknownMemberType]  untyped there
            self.forward()
            super().scan_to_next_token()

    def resolve(self, kind: object, value: object, implicit: object) -> str:
        """No tag, where the file has none."""
        del kind, value, implicit
        return ""


class _Reading:
    """Makes the value of the nodes of one document. Used once.

    Attributes:
        problems: by their places.
    """

    def __init__(self, file: str) -> None:
        self.problems: dict[_Place, ConfigProblem] = {}
        self._file = file
        self._size = 0

    def value(self, node: Node, path: Path, depth: int = 0) -> JsonValue:
        """The value of a node, with its aliases written out.

        Raises:
            AgentConfigError: it is too deep or too large.
        """
        self._size += 1 + (len(node.value) if isinstance(node, ScalarNode) else 0)
        if depth > MAX_DEPTH:
            self._stop(node, f"nested deeper than {MAX_DEPTH} levels")
        if self._size > MAX_EXPANDED:
            self._stop(node, "too large when its aliases are written out")
        if node.tag:
            self._tell(node, path, "tags are not used here; leave it out")
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [self.value(one, (*path, n), depth + 1) for n, _, one in _members(node)]
        try:
            return _plain_value(node.value) if _is_plain(node) else _whole_text(node.value)
        except ValueError as error:
            self._tell(node, path, str(error))
            return None

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {}
        lines: dict[str, int] = {}
        members: list[tuple[Node, Node]] = node.value
        for key_node, member in members:
            key = self.value(key_node, path, depth + 1)
            line, _ = _place_of(key_node)
            if not isinstance(key, str):
                self._tell(key_node, path, "a key must be text: put it in quotes")
            elif key == "<<" and _is_plain(key_node):
                message = "merge keys (`<<`) are not used here: write the keys out"
                self._tell(key_node, path, message)
            elif key in lines:
                where = f"in line {lines[key]} and in line {line}"
                message = f"the key {quoted(key)} stands twice: {where}"
                self._tell(key_node, (*path, key), message)
            else:
                lines[key] = line
                value[key] = self.value(member, (*path, key), depth + 1)
        return value

    def _tell(self, node: Node, path: Path, message: str) -> None:
        place = _place_of(node)
        problem = ConfigProblem(self._file, *place, spell_path(path), message)
        self.problems.setdefault(place, problem)

    def _stop(self, node: Node, message: str) -> NoReturn:
        raise AgentConfigError([ConfigProblem(self._file, *_place_of(node), "", message)])


def _place_of(node: Node) -> _Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_plain(node: Node) -> bool:
    """Whether a scalar stands in no quotes, and has no tag."""
    return isinstance(node, ScalarNode) and node.style is None and not node.tag


def _members(node: Node) -> Iterator[tuple[str | int, Node, Node]]:
    """What is in a node, each with its key and the node whose place names it."""
    if isinstance(node, MappingNode):
        yield from ((key.value, key, one) for key, one in node.value)
    elif isinstance(node, SequenceNode):
        yield from ((number, one, one) for number, one in enumerate(node.value))


def _check_size(size: int, file: str) -> None:
    if size > MAX_SIZE:
        _fail(file, "", f"larger than {MAX_SIZE >> 20} MiB")


def _fail(file: str, before: str, message: str) -> NoReturn:
    """Refuse a text for what comes after some part of it."""
    lines = re.split("\r\n|\r|\n", before)
    raise AgentConfigError([ConfigProblem(file, len(lines), len(lines[-1]) + 1, "", message)])


def _worded(error: MarkedYAMLError, text: str, file: str) -> AgentConfigError:
    mark = error.problem_mark or error.context_mark
    assert mark is not None
    began = ""
    if error.context is not None and error.context_mark is not None:
        began = f", {error.context} that begins in line {error.context_mark.line + 1}"
    message = f"no YAML: {error.problem}{began}"
    if text[mark.index : mark.index + 1] == "\t":
        message = "a tab stands where only spaces may: indent with spaces"
    return AgentConfigError([ConfigProblem(file, mark.line + 1, mark.column + 1, "", message)])


def _whole_text(text: str) -> str:
    r"""A text whose pairs of surrogates, as JSON escapes them, are the characters they stand for.

    Raises:
        ValueError: half of a pair is missing.
    """
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
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("infinities and `.nan` are no JSON; in quotes it is text")
    if not (_BASED.fullmatch(text) or _FLOAT.fullmatch(text)):
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} digits; in quotes it is text")
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(
            "a number that begins with 0 is octal to some readers of YAML; leave the 0 out, or put "
            "it in quotes"
        )
    if _BASED.fullmatch(text) or _INTEGER.fullmatch(text):
        return int(text, 0)
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is beyond a double; in quotes it is text")
    return number
