"""A stream record identifies the whole stream and quotes its ends truly."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.support import whole
from tests.support.cases import each_case
from tests.support.outputs import returned

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    FamilyOutput,
    InvalidRecordError,
    StreamRecord,
    canonical_json,
    count_lines,
    digest_of,
)
from tooltrail.records.streams import iter_streams


def fields(**changes: object) -> dict[str, object]:
    return {
        "role": "stdout",
        "digest": digest_of(b"abcdef"),
        "size": 6,
        "line_count": 1,
        "head": b"abc",
        "tail": b"ef",
        "produced_size": 6,
        "produced_line_count": 1,
    } | changes


@each_case(
    ("data", "count"),
    [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\r\nb\r", 2)],
)
def test_an_unfinished_last_line_is_a_line(data: bytes, count: int) -> None:
    assert count_lines(data) == count


@given(st.binary(max_size=300))
def test_a_stream_from_bytes_is_all_there(data: bytes) -> None:
    stream = StreamRecord.from_bytes("stderr", data)
    assert stream.role == "stderr"
    assert (stream.head, stream.tail, stream.content) == (data, b"", data)
    assert (stream.size, stream.produced_size) == (len(data), len(data))
    assert (
        stream.line_count == stream.produced_line_count == len(data.splitlines()) or b"\r" in data
    )
    assert stream.digest == digest_of(data)
    assert stream.loss_reason is None


@each_case(
    ("changes", "message"),
    [
        ({"head": b"abcd", "tail": b"def"}, "longer than the stream"),
        ({"content": b"abcde"}, "content is not as long"),
        ({"content": b"abdcef"}, "not the ends of content"),
        ({"content": b"abcdfe"}, "not the ends of content"),
        ({"produced_size": 5}, "more was kept than was produced"),
        ({"line_count": 2}, "more was kept than was produced"),
        ({"produced_size": 7}, "exactly when bytes were lost"),
        ({"loss_reason": "disk full"}, "exactly when bytes were lost"),
        ({"size": -1}, "greater than or equal to 0"),
        ({"line_count": -1}, "greater than or equal to 0"),
        ({"role": ""}, "at least 1 character"),
        ({"role": "r" * 65}, "at most 64 characters"),
        ({"digest": "sha256:abc"}, "should match pattern"),
        ({"surplus": 1}, "Extra inputs are not permitted"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        StreamRecord.model_validate(fields(**changes))


@each_case(
    "changes",
    [
        {},
        {"content": b"abcdef"},
        {"head": b"abcdef", "tail": b""},
        {"head": b"", "tail": b""},
        {"produced_size": 10, "produced_line_count": 3, "loss_reason": "disk full"},
    ],
)
def test_a_record_that_agrees_with_itself_is_taken(changes: dict[str, object]) -> None:
    stream = StreamRecord.model_validate(fields(**changes))
    with pytest.raises(ValidationError, match="frozen"):
        stream.size = 7  # type: ignore[misc]  # that it cannot is the point


def test_the_bytes_enter_neither_the_json_nor_the_spelling_of_a_record() -> None:
    stream = whole(b"secret \xff bytes")
    dumped = stream.model_dump()
    assert dumped.keys() == {
        *("role", "digest", "size", "line_count", "produced_size", "produced_line_count"),
        "loss_reason",
    }
    assert canonical_json.encode(dumped)
    assert "secret" not in repr(stream)


def test_the_streams_inside_a_record_come_in_the_order_of_its_fields() -> None:
    out, err, order = whole(b"o"), whole(b"e", "stderr"), whole(b"1 1 0\n", "order")
    command = CommandOutput(exit_status=0, stdout=out, stderr=err, order=order)
    assert [*iter_streams(command)] == [out, err, order]
    generic = returned("tool", "a", b"b", structured=[1])
    assert [s.role for s in iter_streams(generic.result)] == [
        "content.0",
        "content.1",
        "structured",
    ]
    assert [*iter_streams([out, (err, None)])] == [out, err]
    assert [*iter_streams({"no": "stream"})] == []


def test_no_stream_is_missed_inside_a_mapping() -> None:
    one, two, three = whole(b"1", "one"), whole(b"2", "two"), whole(b"3", "three")
    assert [*iter_streams({"a": one, "b": [{"c": (two,)}]})] == [one, two]

    class Attached(FamilyOutput):
        files: dict[str, StreamRecord]
        note: StreamRecord

    output = CompleteOutput(
        tool_name="T",
        status="success",
        summary_text="s",
        result=Attached(files={"x": one, "y": two}, note=three),
    )
    assert output.streams == (one, two, three)


@pytest.mark.parametrize(("data", "type_name"), [("text", "str"), (None, "NoneType")])
def test_a_stream_is_made_of_bytes_only(data: Any, type_name: str) -> None:
    with pytest.raises(InvalidRecordError, match=f"data must be of type bytes .*not {type_name}$"):
        StreamRecord.from_bytes("stdout", data)
