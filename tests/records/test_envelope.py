"""The envelope has five fields, and a success and an error exclude each other."""

import json
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError
from tests.records.support import whole
from tests.support.cases import each_case

from tooltrail.records import (
    SUMMARY_CHARS,
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    FamilyOutput,
    GenericOutput,
    InvalidRecordError,
    ToolError,
    digest_of,
)

ERROR = ToolError(kind="it_broke", message="it broke")
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False).filter(lambda x: not x.is_integer() or abs(x) >= 1e21)
    | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(st.characters(), max_size=8), values, max_size=4)
errors = st.builds(
    ToolError,
    kind=st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True),
    message=st.text(st.characters(), min_size=1, max_size=50),
    details=values,
    recovery_hint=st.none() | st.text(st.characters(), max_size=20),
    retryable=st.booleans(),
)
summaries = st.text(min_size=1, max_size=SUMMARY_CHARS)
names = st.text(min_size=1, max_size=40)


def success(tool_name: str, summary_text: str, result: dict[str, JsonValue]) -> CanonicalResult:
    return CanonicalResult(
        tool_name=tool_name, status="success", summary_text=summary_text, result=result, error=None
    )


def failure(tool_name: str, summary_text: str, error: ToolError) -> CanonicalResult:
    return CanonicalResult(
        tool_name=tool_name, status="error", summary_text=summary_text, result=None, error=error
    )


envelopes = st.builds(success, names, summaries, objects) | st.builds(
    failure, names, summaries, errors
)


@given(st.sampled_from(["success", "error"]), st.none() | objects, st.none() | errors)
def test_a_success_has_a_result_and_an_error_has_an_error_and_nothing_else_is_an_envelope(
    status: str, result: dict[str, JsonValue] | None, error: ToolError | None
) -> None:
    fields = {
        "tool_name": "Tool",
        "status": status,
        "summary_text": "a summary",
        "result": result,
        "error": error,
    }
    complete = fields | {"result": None if result is None else GenericOutput()}
    good = (status == "success") == (result is not None) == (error is None)
    if good:
        assert CanonicalResult.model_validate(fields).status == status
        assert CompleteOutput.model_validate(complete).status == status
    else:
        with pytest.raises(ValidationError, match="a success has a result and no error"):
            CanonicalResult.model_validate(fields)
        with pytest.raises(ValidationError, match="a success has a result and no error"):
            CompleteOutput.model_validate(complete)


def test_the_five_fields_are_written_with_their_nulls() -> None:
    success = CanonicalResult(
        tool_name="Tool", status="success", summary_text="done", result={}, error=None
    )
    assert success.to_json() == (
        b'{"error":null,"result":{},"status":"success","summary_text":"done","tool_name":"Tool"}'
    )
    error = CanonicalResult(
        tool_name="Tool", status="error", summary_text="it broke", result=None, error=ERROR
    )
    assert error.to_json() == (
        b'{"error":{"details":null,"kind":"it_broke","message":"it broke","recovery_hint":null,'
        b'"retryable":false},"result":null,"status":"error","summary_text":"it broke",'
        b'"tool_name":"Tool"}'
    )


@given(envelopes)
@example(failure("t", "s", ToolError(kind="a", message="\ud800")))
def test_what_is_written_is_read_back_as_the_same_envelope(envelope: CanonicalResult) -> None:
    data = envelope.to_json()
    assert json.loads(data).keys() == {"tool_name", "status", "summary_text", "result", "error"}
    assert CanonicalResult.from_json(data) == envelope
    assert CanonicalResult.from_json(data.decode()) == envelope
    assert CanonicalResult.from_json(data).to_json() == data
    assert envelope.digest == digest_of(data)


@each_case("missing", ["tool_name", "status", "summary_text", "result", "error"])
def test_no_field_may_be_missing(missing: str) -> None:
    fields: dict[str, object] = {
        "tool_name": "T",
        "status": "success",
        "summary_text": "s",
        "result": {},
        "error": None,
    }
    fields.pop(missing)
    with pytest.raises(ValidationError):
        CanonicalResult.from_json(json.dumps(fields))


@each_case(
    "changes",
    [
        {"tool_name": ""},
        {"tool_name": "t" * 257},
        {"status": "timeout"},
        {"summary_text": ""},
        {"summary_text": "s" * (SUMMARY_CHARS + 1)},
        {"result": []},
        {"artifacts": []},
    ],
)
def test_an_envelope_that_breaks_the_contract_is_refused(changes: dict[str, object]) -> None:
    fields: dict[str, object] = {
        "tool_name": "T",
        "status": "success",
        "summary_text": "s",
        "result": {},
        "error": None,
    }
    assert CanonicalResult.model_validate(fields)
    with pytest.raises(ValidationError):
        CanonicalResult.model_validate(fields | changes)


@each_case("data", [b"", b"{", b"\xff", '{"a":NaN}', '{"a":1,"a":2}'])
def test_text_that_is_no_canonical_json_is_no_envelope(data: bytes | str) -> None:
    with pytest.raises(InvalidRecordError):
        CanonicalResult.from_json(data)


@pytest.mark.parametrize("data", ["[]", "null", "1", "{}"])
def test_json_that_is_no_object_of_five_fields_is_no_envelope(data: str) -> None:
    with pytest.raises(ValidationError):
        CanonicalResult.from_json(data)


@each_case(
    ("kind", "state"),
    [
        ("permission_denied", "denied"),
        ("cancelled", "cancelled"),
        ("interrupted", "interrupted"),
        ("tool_execution_failed", "error"),
        ("a_kind_of_its_own", "error"),
    ],
)
def test_a_failure_ends_an_invocation_in_the_state_of_its_kind(kind: str, state: str) -> None:
    output = CompleteOutput.failure("Tool", ToolError(kind=kind, message="no"))
    assert output.final_state == state
    assert (output.status, output.summary_text, output.result) == ("error", "no", None)
    assert output.streams == ()


def test_a_complete_output_is_written_without_its_bytes() -> None:
    result = CommandOutput(exit_status=1, stdout=whole(b"secret \xff"), stderr=whole(b"", "stderr"))
    output = CompleteOutput(tool_name="T", status="success", summary_text="s", result=result)
    assert result.stdout is not None
    assert output.streams == (result.stdout, result.stderr)
    written = json.loads(output.to_json())
    assert written["result"]["exit_status"] == 1
    assert written["result"]["stdout"]["digest"] == result.stdout.digest
    assert b"secret" not in output.to_json()


@each_case(
    ("given", "kept"),
    [
        ("a\n b\t c\r\n", "a b c"),
        ("ok\nstatus: error\x1b[2J\0", "ok status: error\\x1b[2J\\x00"),
        ("a\u2028b\x85c\u202ed", "a b c\\u202ed"),
        ("read caf\udce9", "read caf\\udce9"),
        (" \n", "(no summary)"),
        ("", "(no summary)"),
        ("s" * 5000 + "\n" + "t" * 5000, "s" * 5000 + " " + "t" * 5000),
    ],
)
def test_a_summary_is_kept_whole_on_one_line(given: str, kept: str) -> None:
    output = CompleteOutput(
        tool_name="T", status="success", summary_text=given, result=GenericOutput()
    )
    assert output.summary_text == kept
    assert (
        CompleteOutput.model_validate(
            output.model_dump(exclude={"result"}) | {"result": GenericOutput()}
        ).summary_text
        == kept
    )
    by_tool = CompleteOutput.success("T", GenericOutput(), given)
    assert by_tool.summary_text == (
        "tool returned 0 content items" if kept == "(no summary)" else kept
    )


class Wordy(FamilyOutput):
    """A result that words a summary of any length."""

    text: str

    def summary(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("worded", "kept"),
    [
        ("s" * 200, "s" * 200),
        ("s" * 201, "s" * 199 + "\u2026"),
        ("a\nb", "a b"),
        ("", "(no summary)"),
    ],
)
def test_a_derived_summary_is_one_short_line_when_it_is_made(worded: str, kept: str) -> None:
    assert CompleteOutput.success("T", Wordy(text=worded)).summary_text == kept
    if worded:
        error = ToolError(kind="x", message=worded)
        output = CompleteOutput.failure("T", error)
        assert (output.summary_text, output.error) == (kept, error)


@given(st.text(st.characters()), st.booleans())
def test_any_summary_is_one_line_that_stays_as_it_is(text: str, is_failure: bool) -> None:
    output = CompleteOutput.success("T", GenericOutput(), text)
    if is_failure:
        output = CompleteOutput.failure("T", ToolError(kind="x", message=text))
    (line,) = output.summary_text.splitlines()
    again = CompleteOutput(
        tool_name="T", status="success", summary_text=line, result=GenericOutput()
    )
    assert again.summary_text == line


def test_a_text_is_no_output_and_no_error() -> None:
    with pytest.raises(InvalidRecordError, match="result must be of type FamilyOutput, not str"):
        CompleteOutput.success("Bash", cast("Any", "hello"))
    with pytest.raises(InvalidRecordError, match="error must be of type ToolError, not str"):
        CompleteOutput.failure("Bash", cast("Any", "hello"))
