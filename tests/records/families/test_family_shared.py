"""What the models of several families share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.records.identifiers import identifiers
from tests.records.support import whole
from tests.support.cases import each_case

from tooltrail.records._model import Record
from tooltrail.records.families._shared import (
    Identifier,
    SparseRecord,
    entry,
    hidden_lines,
    one_line,
)
from tooltrail.records.streams import StreamRecord

IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


class Sparse(SparseRecord):
    needed: int | None
    spare: int | None = None


def test_only_an_optional_field_is_left_out_when_it_is_none() -> None:
    assert Sparse(needed=None).model_dump(mode="json") == {"needed": None}
    assert Sparse(needed=1, spare=0).model_dump(mode="json") == {"needed": 1, "spare": 0}


class Printed(Record):
    name: str
    spare: str | None = None
    log: StreamRecord


def test_an_entry_has_the_fields_of_its_output_but_no_stream_and_no_none() -> None:
    output = Printed(name="n", log=whole(b"x"))
    assert entry(output) == {"name": "n"}
    assert entry(output, {"spare"}, name="cut", size=1) == {"name": "cut", "size": 1, "spare": None}


@each_case(
    "name",
    [
        "task_1",
        "two words",
        "a/b:c#7",
        "caf\u00e9 \u6f22",
        "e\u0301",
        "x" * 256,
        "\U0001f469\u200d\U0001f680",
    ],
)
def test_an_identifier_is_kept_as_the_tool_gave_it(name: str) -> None:
    assert IDENTIFIER.validate_python(name) == name == one_line(name)


@each_case(
    "name",
    [
        "",
        " ",
        "a  b\tc",
        "a  b",
        "a\tb",
        " a",
        "a ",
        "a\n",
        "a\nb",
        "a\rb",
        "a\x00b",
        "\x1b[2Ka",
        "a\x7fb",
        "a\x85b",
        "a\u00a0b",
        "a\u2028b",
        "a\u3000b",
        "a\u202eb",
        "a\u2066b",
        "a\u200fb",
        "a\u061cb",
        "x" * 257,
    ],
)
def test_an_identifier_that_a_receipt_could_not_print_as_it_is_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        IDENTIFIER.validate_python(name)


@given(identifiers | st.text(st.characters(), max_size=40))
def test_an_identifier_that_is_taken_is_what_a_receipt_prints(name: str) -> None:
    try:
        taken = IDENTIFIER.validate_python(name)
    except ValidationError:
        # Lone surrogates are spelled out before, so that they are no reason to refuse.
        spelled = name.encode("utf-8", "backslashreplace").decode()
        assert not spelled or len(spelled) > 256 or one_line(spelled) != spelled
    else:
        assert one_line(taken) == taken


LISTED = [{"path": "a.zst"}, {"path": "b.zst"}]


@each_case(
    ("count", "index", "detail", "lines"),
    [
        (0, 1, "", []),
        (1, 1, "", ["[1 further task is not shown; listed in b.zst]"]),
        (1200, 0, "", ["[1,200 further tasks are not shown; listed in a.zst]"]),
        (2, 0, "2 failed", ["[2 further tasks are not shown: 2 failed; listed in a.zst]"]),
        (2, None, "", ["[2 further tasks are not shown]"]),
    ],
)
def test_what_is_hidden_is_counted_and_said_to_be_listed(
    count: int, index: int | None, detail: str, lines: list[str]
) -> None:
    result = {"artifacts": LISTED} | ({} if index is None else {"hidden_artifact": index})
    assert hidden_lines(result, count, "task", detail) == lines


def test_what_is_hidden_is_counted_where_there_is_no_artifact() -> None:
    assert hidden_lines({}, 1, "task") == ["[1 further task is not shown]"]
