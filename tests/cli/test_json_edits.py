"""Edits of JSON with comments: only the edited place changes."""

import json
from typing import Any

import pytest

from tooltrail.cli._json_edits import added, children_of, member, parse, removed, text_of
from tooltrail.records import InvalidRecordError

ITEM = {"x": 1}
DOCUMENTS = {
    "empty": "",
    "object": "{}",
    "one line": '{"a": 1}',
    "two spaces": '{\n  "a": 1\n}\n',
    "tabs": '{\n\t"a": [1, 2]\n}\n',
    "windows": '{\r\n  "a": 1\r\n}\r\n',
    "comments": '// top\n{ // here\n  "a": 1, // one\n  /* two */ "b": 2 // last\n} // end\n',
    "only a comment": "{\n  // nothing yet\n}\n",
    "empty list": '{\n  "list": []\n}',
    "list with a comment": '{"list": [ // soon\n]}',
    "list": '{"list": [{"y": 2}]}',
    "list on lines": '{\n  "list": [\n    {"y": 2}, // one\n    {"z": 3} // two\n  ],\n  "b": 1\n}',
    "escapes": '{"l\\u0069st": [1], "é": "\\n"}',
    "nested": '{"outer": {"list": []}}',
}


def plain(text: str) -> Any:
    """The value without comments: those at ends of lines, and `/* two */`."""
    lines = [line.partition("//")[0] for line in text.replace("/* two */", "").splitlines()]
    return json.loads("\n".join(lines) or "{}")


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS.keys())
@pytest.mark.parametrize("path", [("list",), ("outer", "list"), ("new", "one")], ids="/".join)
def test_an_item_is_added_and_removed_again(text: str, path: tuple[str, ...]) -> None:
    edited = added(text.encode(), path, ITEM)
    expected: dict[str, Any] = plain(text)
    had_list = "list" in expected
    place = expected
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place.setdefault(path[-1], []).insert(0, ITEM)
    assert plain(edited.decode()) == expected

    node = parse(edited)
    for name in path:
        found = member(node, name)
        assert found is not None
        node = found
    again = removed(edited, children_of(node)[0])
    place[path[-1]].pop(0)
    assert plain(again.decode()) == expected
    if path == ("list",) and had_list:
        assert again == text.encode()


def test_items_in_front_and_between_are_removed() -> None:
    data = b"[1, /* two */ 2, // b\n 3]"
    for n, left in enumerate(([2, 3], [1, 3], [1, 2])):
        whole = b'{"l": ' + data + b"}"
        array = member(parse(whole), "l")
        assert array is not None
        text = removed(whole, children_of(array)[n]).decode()
        assert plain(text) == {"l": left}
        assert "/* two */" in text
        assert "// b\n" in text


def test_values_are_read() -> None:
    root = parse(b'{"a": "x\\u00e9", "b": 1}')
    assert (text_of(member(root, "a")), text_of(member(root, "b"))) == ("xé", "")
    assert text_of(member(root, "c")) == ""
    assert member(root.named_children[0], "a") is None


@pytest.mark.parametrize("text", ["{", "[]", "{} {}", '{"a": 1,}', '{"list": {}}', '{"list": 1}'])
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError):
        added(text.encode(), ("list",), ITEM)
