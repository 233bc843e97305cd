"""Lines of a source: every JSON value is found with its place, and damage costs only itself."""

import io
import json
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.importers.events import Line
from tooltrail.importers.lines import read_lines

VALUES = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=9), max_size=3)


def found_in(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


@given(st.lists(VALUES, max_size=5))
def test_every_value_is_found_at_its_place(values: list[dict[str, object]]) -> None:
    data = b"".join(json.dumps(one).encode() + b"\n" for one in values)
    found = found_in(data)
    assert [one.value for one in found if not one.damage] == values
    for one in found:
        assert data[one.offset :].startswith(one.data)


def test_two_values_on_one_line_are_both_found() -> None:
    first, second = found_in(b'{"a": 1}{"b": "\xc3\xa4"}\n')
    assert (first.data, second.data) == (b'{"a": 1}', b'{"b": "\xc3\xa4"}')
    assert (first.offset, second.offset) == (0, 8)


@each_case(
    ("data", "good", "damaged"),
    [
        (b'{"a": 1}\n{"b": \n{"c": 3}\n', [{"a": 1}, {"c": 3}], [(2, b'{"b":')]),
        (b'{"a": {"b": 1\n{"c": 3}\n', [{"c": 3}], [(1, b'{"a": {"b": 1')]),
        (b'xx{"a": 1}\n', [{"a": 1}], [(1, b"xx")]),
        (b'{"a": 1} half {"b"\n', [{"a": 1}], [(1, b' half {"b"')]),
        (b'{"a": "tex{"b": 1}\n', [{"b": 1}], [(1, b'{"a": "tex')]),
        (b'{"a": {"x": 1}, {"b": 2}\n', [{"b": 2}], [(1, b'{"a": {"x": 1}, ')]),
        (b'{"a": "\\u00{"b": [{"c": 1}]}\n', [{"b": [{"c": 1}]}], [(1, b'{"a": "\\u00')]),
        (b'{"a": {"x"{"b": 1}{"c": 2}\n', [{"b": 1}, {"c": 2}], [(1, b'{"a": {"x"')]),
        (b'"x": {"b": 1}}{"c": 2}\n', [{"c": 2}], [(1, b'"x": {"b": 1}}')]),
        (b'{"c": 2}\n{"a": {"b": 1}, "x": "{} {', [{"c": 2}], [(2, b'{"a": {"b": 1}, "x": "{} {')]),
        (b'{"a": "\xff"}\n{"b": 1}\n', [{"b": 1}], []),
        (b"[" * 100_000 + b"\n" + b'{"b": 1}\n', [{"b": 1}], [(1, b"[" * 100_000)]),
    ],
)
def test_a_damaged_part_costs_itself_only(
    data: bytes, good: list[object], damaged: list[tuple[int, bytes]]
) -> None:
    found = found_in(data)
    values = [one.value for one in found if not one.damage]
    assert values[-len(good) :] == good
    parts = [(one.number, one.data) for one in found if one.damage]
    assert parts == damaged


def test_the_cut_last_line_of_a_writer_that_goes_on_is_known_as_such() -> None:
    *_, cut = found_in(b'{"a": 1}\n{"b": "tex')
    assert cut.damage
    assert cut.is_cut
    assert cut.offset == 9


@pytest.mark.parametrize("value", [{"a": [1, {"b": 2.5}]}, [{"a": 1}, {"b": 2}]])
def test_a_value_on_many_lines_is_one_value(value: object) -> None:
    data = json.dumps(value, indent=1).encode()
    (found,) = found_in(data)
    assert not found.damage
    assert (found.offset, found.data, found.value) == (0, data, value)


def test_a_value_on_many_lines_may_begin_with_a_byte_order_mark() -> None:
    (found,) = found_in(b"\xef\xbb\xbf" + json.dumps({"a": [1]}, indent=1).encode())
    assert not found.damage
    assert found.value == {"a": [1]}


@pytest.mark.parametrize(
    ("offset", "data"),
    [(0, b"XXXX"), (6, b"\x63"), (46, b"\xff")],
    ids=["no entry", "a version of tomorrow", "a name that is not UTF-8"],
)
def test_an_archive_that_cannot_be_read_is_damaged(offset: int, data: bytes) -> None:
    with io.BytesIO() as file:
        with ZipFile(file, "w") as archive:
            archive.writestr("\u00e9.json", "{}")
        whole = file.getvalue()
    at = whole.index(b"PK\x01\x02") + offset  # in the list of files
    (found,) = found_in(whole[:at] + data + whole[at + len(data) :])
    assert found.damage


def test_a_value_on_many_lines_that_is_cut_is_damaged() -> None:
    found = found_in(json.dumps({"a": [1, 2]}, indent=1).encode()[:-1])
    assert found[0].damage


def test_blank_lines_are_nothing() -> None:
    assert found_in(b'\n  \n{"a": 1}\n\n') == [Line(4, b'{"a": 1}\n', {"a": 1}, 3)]
