"""Edits of JSON with comments that leave every other byte as it is.

tree-sitter parses: it keeps the position of every value, and of comments.
"""

import json
from collections.abc import Sequence
from typing import Any

import tree_sitter_json
from tree_sitter import Language, Node, Parser

from tooltrail.records.errors import InvalidRecordError

_LANGUAGE = Language(tree_sitter_json.language())


def parse(data: bytes) -> Node:
    """The object in a document; an empty document counts as `{}`.

    Raises:
        InvalidRecordError: the document is not one JSON object.
    """
    root = Parser(_LANGUAGE).parse(data if data.strip() else b"{}").root_node
    values = children_of(root)
    if root.has_error:
        problem = f"line {_bad_line(root)} has a syntax error; check its commas"
        raise InvalidRecordError(f"it is not JSON: {problem}")
    if len(values) != 1 or values[0].type != "object":
        raise InvalidRecordError("it is not one JSON object")
    return values[0]


def _bad_line(node: Node) -> int:
    """The line, from 1, of the first error in a node that has one."""
    inner = next((one for one in node.children if one.has_error), None)
    if inner is None or node.is_error or node.is_missing:
        return node.start_point.row + 1
    return _bad_line(inner)


def children_of(container: Node) -> list[Node]:
    """The items of an array, or the pairs of an object."""
    return [one for one in container.named_children if one.type != "comment"]


def member(container: Node, name: str) -> Node | None:
    """The value of a member of an object; None if there is none."""
    # The last of several with one name counts, as in JavaScript.
    for pair in reversed(children_of(container)) if container.type == "object" else ():
        if text_of(pair.child_by_field_name("key")) == name:
            return pair.child_by_field_name("value")
    return None


def text_of(node: Node | None) -> str:
    """The text of a string; empty for any other value."""
    spelled = node.text if node is not None and node.type == "string" else None
    return json.loads(spelled, strict=False) if spelled else ""


def added(data: bytes, names: Sequence[str], item: Any) -> bytes:
    """The document with one more item, the first in the array at a path. What is missing is made.

    Raises:
        InvalidRecordError: the document is not an object, or the path leads to another value.
    """
    data = data if data.strip() else b"{}\n"
    at = parse(data)
    for n, name in enumerate(names):
        found = member(at, name)
        wanted, empty = ("object", "{}") if n + 1 < len(names) else ("array", "[]")
        if found is None:
            return added(_inserted(data, at, f"{json.dumps(name)}: {empty}"), names, item)
        if found.type != wanted:
            raise InvalidRecordError(f"{name} in it is not an {wanted}")
        at = found
    return _inserted(data, at, json.dumps(item))


def removed(data: bytes, node: Node) -> bytes:
    """The document without an item or a pair, and without the comma beside it."""
    start, end, container = node.start_byte, node.end_byte, node.parent or node
    if node.prev_sibling is None or node.prev_sibling.type != "comment":
        start = len(data[:start].rstrip())  # else the line of the comment must still end
    tokens = [one for one in container.children if one.type != "comment"]
    before, after = tokens[tokens.index(node) - 1], tokens[tokens.index(node) + 1]
    if after.type == ",":
        return data[:start] + data[end : after.start_byte] + data[after.end_byte :]
    if before.type == ",":
        return data[: before.start_byte] + data[before.end_byte : start] + data[end:]
    # The container is empty now. Without a comment in it, nothing is left between its brackets.
    is_alone = len(container.named_children) == 1
    return data[:start] + (data[end:].lstrip() if is_alone else data[end:])


def _inserted(data: bytes, container: Node, text: str) -> bytes:
    """The document with a text as the first child of a container.

    The white space before the text is that before the next child; an only child begins a line.
    """
    at, inserted = container.start_byte + 1, text.encode()
    if children := children_of(container):
        first = children[0].start_byte
        return data[:at] + data[len(data[:first].rstrip()) : first] + inserted + b"," + data[at:]
    line = data[data.rfind(b"\n", 0, at) + 1 : at]
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    outer = newline + line[: len(line) - len(line.lstrip())]
    closing = b"" if b"\n" in data[at : container.end_byte] else outer
    return data[:at] + outer + b"  " + inserted + closing + data[at:]
