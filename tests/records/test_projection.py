"""The two steps: what holds for every family, and how a failure is shown."""

import dataclasses
import re
import tracemalloc
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError
from tests.records.support import captured, golden, number, omitted, surfaces, whole
from tests.support.cases import each_case
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.shown_streams import shown_of_value

from tooltrail.records import (
    DEFAULT_POLICY,
    SUMMARY_CHARS,
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    ContentItem,
    ErrorBudget,
    Family,
    GenericOutput,
    Policy,
    StreamRecord,
    ToolError,
    canonical_json,
    default_families,
    digest_of,
    error_of_exception,
    render,
)
from tooltrail.records.budgets import MAX_MESSAGE_CHARS


def failure(**fields: Any) -> CompleteOutput:
    return CompleteOutput.failure(
        "ExecCommand", ToolError.model_validate({"kind": "it_broke", "message": "m"} | fields)
    )


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("family", ["command", "generic"])
@pytest.mark.parametrize(
    ("name", "output"),
    [
        (
            "error_full",
            failure(
                kind="invalid_tool_input",
                message="input for ExecCommand does not match the tool schema",
                recovery_hint=(
                    "provide input for ExecCommand that matches the published tool schema"
                ),
                details={"tool_name": "ExecCommand", "parse_error": "missing field `cmd`"},
            ),
        ),
        (
            "error_plain",
            failure(kind="rate_limited", message="the provider asks to slow down", retryable=True),
        ),
    ],
)
def test_a_failure_is_worded_alike_in_every_family(
    family: str, name: str, output: CompleteOutput
) -> None:
    projection, receipt, publisher = surfaces(output, family)
    assert receipt.text == golden(name)
    assert (receipt.renderer_name, receipt.renderer_version) == ("error", 3)
    assert projection.canonical.error == output.error
    assert projection.canonical.result is None
    assert projection.omissions == ()
    assert publisher.published == {}


def test_a_summary_that_does_not_fit_is_cut_and_counted() -> None:
    projection, _, _ = surfaces(returned("T", summary="s" * 300), "generic")
    assert projection.canonical.summary_text == "s" * (SUMMARY_CHARS - 1) + "\u2026"
    (omission,) = projection.omissions
    assert (omission.stage, omission.field, omission.unit) == (
        "projection",
        "summary_text",
        "chars",
    )
    assert (omission.before, omission.after) == (300, SUMMARY_CHARS - 1)


def test_a_summary_is_not_cut_inside_a_cluster() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    projection, _, _ = surfaces(returned("T", summary="s" * 196 + family * 9), "generic")
    assert projection.canonical.summary_text == "s" * 196 + "\u2026"
    assert omitted(projection.omissions, "summary_text", "chars") == len(family) * 9


def test_message_and_hint_are_whole_in_the_result_and_cut_with_a_marker_in_the_receipt() -> None:
    message, hint = "first" + "m" * 9_990 + "last!", "h" * 1000
    projection, receipt, publisher = surfaces(
        failure(message=message, recovery_hint=hint), "command"
    )
    error = projection.canonical.error
    assert error is not None
    assert (error.message, error.recovery_hint) == (message, hint)
    assert (projection.omissions, publisher.published) == ((), {})
    assert receipt.text.startswith("Error (it_broke): firstmmm")
    told, _, hinted = receipt.text.partition("\nHint: hhh")
    assert told.endswith("mmlast!")
    assert "[output truncated: " in told
    assert "[output truncated: " in hinted
    assert len(told) <= 700 + 40
    assert [(one.stage, one.field) for one in receipt.omissions] == [
        ("rendering", "error.message"),
        ("rendering", "error.recovery_hint"),
    ]


def test_a_message_beyond_the_hard_bound_is_an_artifact_and_shown_with_both_ends() -> None:
    message = "the first word" + "x" * 3_800_000 + "the last word"
    output = failure(message=message, details={"a": 1})
    (stream,) = output.streams
    assert (stream.role, stream.content) == ("error.message", message.encode())
    assert len(output.to_json()) < 20_000
    projection, receipt, publisher = surfaces(output, "command")
    ((path, published),) = publisher.published.items()
    assert published == stream
    error = projection.canonical.error
    assert error is not None
    assert len(error.message) <= MAX_MESSAGE_CHARS
    assert error.details == {
        "details": {"a": 1},
        "partial_output": [{"role": "error.message", "artifact": 0, "size": len(message)}],
        "artifacts": [{"path": path}],
    }
    for text in (error.message, receipt.text):
        assert "the first word" in text
        assert "the last word" in text
        assert f"full output: {path}]" in text
        marker = re.search(r"(?P<bytes>[\d,]+) bytes omitted; full output: ", text)
        assert marker is not None
        ends = len("the first word") + len("the last word")
        shown = ends + sum(map(len, re.findall("x{9,}", text)))
        assert number(marker["bytes"]) == len(message) - shown
    assert f"\n{path} (error.message)\n" in receipt.text
    assert len(receipt.text) < 2_000


def test_a_message_with_a_lone_surrogate_is_kept_byte_equal() -> None:
    message = "caf\ud800 closed"
    output = failure(message=message)
    (stream,) = output.streams
    assert stream.content == message.encode("utf-8", "surrogatepass")
    raised = CompleteOutput.failure("t", error_of_exception(OSError("a\udcff")))
    assert [one.content for one in raised.streams] == [b"OSError: a\xed\xb3\xbf"]
    projection, receipt, _ = surfaces(output, "command")
    assert output.error is not None
    assert projection.canonical.error == output.error
    assert projection.omissions == ()
    assert receipt.text == "Error (it_broke): caf\\ud800 closed\nRetryable: no\n"


def test_the_streams_of_a_failure_are_shown_as_those_of_a_success() -> None:
    log = b"first line\n" + b"in between\n" * 20_000 + b"last line\n"
    output = CompleteOutput.failure(
        "ExecCommand",
        ToolError(kind="it_broke", message="m", details=["why"]),
        [whole(log, "stdout"), whole(b"short\n", "stderr"), whole(b"{}", "order")],
    )
    projection, receipt, publisher = surfaces(output, "command")
    error = projection.canonical.error
    assert error is not None
    assert isinstance(error.details, dict)
    ((path, _),) = publisher.published.items()
    out, err = cast("list[dict[str, Any]]", error.details["partial_output"])
    assert err == {"role": "stderr", "preview": "short\n"}
    assert (out["role"], out["truncated"], out["artifact"]) == ("stdout", True, 0)
    assert error.details["artifacts"] == [{"path": path}]
    assert error.details["details"] == ["why"]
    assert out["preview"].startswith("first line\n")
    assert out["preview"].endswith("last line\n")
    assert f"full output: {path}]" in out["preview"]
    assert out["preview"] in receipt.text
    assert receipt.text.endswith(f"\nstderr:\nshort\n\nArtifacts:\n{path} (stdout)\n")
    shown = out["preview"].count("\n") - 1
    assert omitted(projection.omissions, "stdout", "lines") == 20_002 - shown


def test_a_success_has_no_partial_output() -> None:
    document = CompleteOutput.success("t", GenericOutput()).model_dump()
    with pytest.raises(ValidationError, match="only a failure has partial output"):
        CompleteOutput.model_validate(
            {**document, "result": GenericOutput(), "partial_output": [whole(b"x")]}
        )


def test_details_beyond_their_budget_are_replaced_and_all_else_stays() -> None:
    lines: list[JsonValue] = ["a line of the log"] * 200
    details: JsonValue = {"log": lines}
    output = failure(details=details, recovery_hint="try again", retryable=True)
    projection, receipt, _ = surfaces(output, "command")
    error = projection.canonical.error
    assert error is not None
    assert (error.kind, error.message) == ("it_broke", "m")
    assert (error.recovery_hint, error.retryable) == ("try again", True)
    text = canonical_json.encode_text(details)
    assert isinstance(error.details, dict)
    preview = error.details["preview"]
    assert error.details == {
        "omitted": True,
        "reason": "longer than 1000 characters",
        "char_count": len(text),
        "digest": digest_of(text.encode()),
        "preview": preview,
    }
    shown = canonical_json.encode_text(preview)
    assert 800 < len(shown) <= 1000
    (omission,) = projection.omissions
    assert (omission.stage, omission.field) == ("error", "error.details")
    assert omission.after == shown_of_value(details, preview)
    assert receipt.text == (
        "Error (it_broke): m\nHint: try again\nRetryable: yes\n"
        f"Details (longer than 1000 characters; incomplete):\n  {shown}\n"
    )
    assert shown.startswith('{"log":["a line of the log",')


def error_policy(**budget: int) -> Policy:
    return DEFAULT_POLICY.model_copy(update={"error": ErrorBudget(**budget)})


def test_details_at_exactly_their_budget_stay() -> None:
    policy = error_policy(details_chars=100)
    for length, kept in ((98, True), (99, False)):
        projection, _, _ = surfaces(failure(details="d" * length), "command", policy)
        assert projection.canonical.error is not None
        assert (projection.canonical.error.details == "d" * length) is kept


@pytest.mark.parametrize("levels", [250, 251, 255])
def test_details_too_deep_for_an_envelope_are_whole_in_it(levels: int) -> None:
    projection, _, _ = surfaces(failure(details=nested(levels)), "command")
    error = projection.canonical.error
    assert error is not None
    shown: Any = error.details
    for _ in range(249):
        (shown,) = shown
    gone = {251: ["[... 0 items omitted ...]"], 255: ["[... 1 item omitted ...]"]}
    assert shown == gone.get(levels, [])
    assert projection.omissions == ()
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"raw": b"a\xff" * 900}, '{"raw":"<bytes: ' + "a\\\\xff" * 900 + '>"}'),
        ({1: "x" * 1500}, '[[1,"' + "x" * 1500 + '"]]'),
        ({"n": 2**16_000}, '{"n":"<int: 0x1' + "0" * 4000 + '>"}'),
    ],
    ids=["bytes", "key", "integer"],
)
def test_details_that_are_no_json_are_cut_once_and_counted_from_the_whole(
    details: Any, text: str
) -> None:
    output = failure(details=details)
    assert output.error is not None
    assert canonical_json.encode_text(output.error.details) == text
    projection, receipt, _ = surfaces(output, "command")
    error = projection.canonical.error
    assert error is not None
    assert isinstance(error.details, dict)
    assert error.details["char_count"] == len(text)
    assert error.details["digest"] == digest_of(text.encode())
    (omission,) = projection.omissions
    assert (omission.field, omission.before) == ("error.details", len(text))
    assert " omitted ...]" in receipt.text


def test_a_failure_whose_details_are_cut_cannot_imitate_a_line_of_its_receipt() -> None:
    output = failure(
        message="the tool failed\nRetryable: yes\n\x1b[2Jin its second step",
        recovery_hint="look at the log\nDetails: none",
        details={"log": "d" * 2990},
    )
    projection, receipt, _ = surfaces(output, "command", error_policy(details_chars=200))
    assert receipt.text == golden("error_cut")
    assert projection.canonical.error is not None
    assert output.error is not None
    assert projection.canonical.error.message == output.error.message
    assert omitted(projection.omissions, "error.details", "bytes") == 2841


@pytest.mark.parametrize(
    ("details", "lines"),
    [
        (
            {"omitted": True, "reason": "none\nRetryable: yes", "preview": "a\nRetryable: yes\r"},
            ["Details (none Retryable: yes; incomplete):", "  a", "  Retryable: yes\\x0d"],
        ),
        ({"a": "\x85\u2028b"}, ['Details: {"a":"\\x85\\u2028b"}']),
    ],
)
def test_details_cannot_imitate_a_line_of_the_receipt(details: JsonValue, lines: list[str]) -> None:
    _, receipt, _ = surfaces(failure(details=details), "generic")
    assert receipt.text.splitlines() == ["Error (it_broke): m", "Retryable: no", *lines]


@pytest.mark.parametrize("entry", [{"role": [], "artifact": 9}, {"artifact": []}, 7])
def test_details_that_look_like_partial_output_are_rendered(entry: JsonValue) -> None:
    details: JsonValue = {"partial_output": [entry], "artifacts": [{"role": "x"}, 7]}
    _, receipt, _ = surfaces(failure(message="m" * 800, details=details), "generic")
    assert receipt.text.startswith("Error (it_broke): mmm")


def test_details_that_look_like_partial_output_are_shown_as_details() -> None:
    details: JsonValue = {
        "exit": 3,
        "partial_output": [{"role": "stdout", "preview": "\x1b[2J\nError (x): y", "artifact": 0}],
        "artifacts": [{"path": "sha256/none"}],
    }
    _, receipt, _ = surfaces(failure(details=details), "generic")
    spelled = canonical_json.encode_text(details)
    lines = ["Error (it_broke): m", "Retryable: no", f"Details: {spelled}"]
    assert receipt.text.splitlines() == lines
    printed = failure(details=details).model_copy(update={"partial_output": (whole(b"x"),)})
    _, receipt, _ = surfaces(printed, "generic")
    assert receipt.text.splitlines() == [*lines, "", "stdout:", "x"]


hostile = st.text(
    st.sampled_from("ab \t\n\r\0\x0b\x1b\x1c\x85\u2028\u2029\u202e\ud800"), min_size=1
)


@given(hostile, hostile, hostile | st.lists(hostile, min_size=20, max_size=30))
def test_no_text_of_a_failure_begins_a_line_of_its_receipt(
    message: str, hint: str, details: JsonValue
) -> None:
    output = failure(message=message, recovery_hint=hint, details=details)
    _, receipt, _ = surfaces(output, "generic", error_policy(details_chars=200))
    assert receipt.text.endswith("\n")
    lines = receipt.text.splitlines()
    assert receipt.text.split("\n") == [*lines, ""]
    assert [line.partition(" ")[0] for line in lines if not line.startswith("  ")] == [
        "Error",
        "Hint:",
        "Retryable:",
        *(["Details:"] if "\nDetails: " in receipt.text else ["Details"]),
    ]


TINY = policy_with(
    command={"preview_chars": 1001, "receipt_chars": 3100},
    generic={"preview_chars": 1003, "receipt_chars": 9000, "max_items": 2},
)


def output_of_streams(*streams: StreamRecord) -> CompleteOutput:
    result: CommandOutput | GenericOutput
    if len(streams) == 2:
        result = CommandOutput(exit_status=0, stdout=streams[0], stderr=streams[1])
    else:
        items = (ContentItem(stream=streams[0]), ContentItem(stream=streams[1]))
        result = GenericOutput(content=items, structured=streams[2])
    return CompleteOutput(tool_name="T", status="success", summary_text="s", result=result)


BINARY_AMID_TEXT = b"text\n" * 4000 + b"\xff\xfe" + b"text\n" * 4000


@each_case(
    ("first", "second", "family"),
    [
        (BINARY_AMID_TEXT, b"", "command"),
        (b"\xf0\x9f\x87\xa9" * 2001 + b"x", b"y" * 9000, "command"),
        (b"text\n" * 1700, b"text\n" * 1700 + b"\xff", "generic"),
        (b"caf\xe9 " * 5000, b"\x1b[38;5;196mred\x1b[0m" * 2000, "generic"),
        (b"\0" + b"x" * 30_000, BINARY_AMID_TEXT, "generic"),
    ],
)
def test_a_stream_in_memory_is_shown_exactly_like_a_captured_one(
    first: bytes, second: bytes, family: str
) -> None:
    parts = [(first, "stdout"), (second, "stderr")]
    if family == "generic":
        parts.append((canonical_json.encode(first.decode("latin-1")), "structured"))
    in_memory = output_of_streams(*(whole(data, role) for data, role in parts))
    from_capture = output_of_streams(*(captured(data, TINY, role) for data, role in parts))
    assert in_memory.to_json() == from_capture.to_json()
    projection, receipt, published = surfaces(in_memory, family, TINY)
    again, receipt_again, published_again = surfaces(from_capture, family, TINY)
    assert projection.canonical.to_json() == again.canonical.to_json()
    assert projection.omissions == again.omissions
    assert projection.artifacts == again.artifacts
    assert receipt.to_bytes() == receipt_again.to_bytes()
    assert published.published.keys() == published_again.published.keys()


def test_a_long_stream_in_memory_is_projected_without_decoding_its_middle() -> None:
    data = (b"x" * 1022 + b"\xff\n") * (64 * 1024)
    output = output_of_streams(whole(data), whole(data, "stderr"))
    tracemalloc.start()
    try:
        projection, _, _ = surfaces(output, "command")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert omitted(projection.omissions, "stdout", "bytes") > 60_000_000
    assert peak < 20_000_000


def worded(text: str) -> Family:
    """A family whose renderer keeps to no budget."""

    def words(_canonical: CanonicalResult, _budget: Any) -> str:
        return text

    return dataclasses.replace(default_families().named("generic"), render=words)


def test_a_receipt_of_a_renderer_that_breaks_its_budget_is_cut_and_says_so() -> None:
    canonical = surfaces(returned("T", "text"), "generic")[0].canonical
    receipt = render(canonical, worded("line of a receipt\n" * 2000), DEFAULT_POLICY)
    assert len(receipt.text) <= DEFAULT_POLICY.families["generic"].receipt_chars
    (omission,) = receipt.omissions
    assert (omission.stage, omission.field, omission.unit) == ("rendering", "receipt", "bytes")
    assert omission.before == 36_000
    assert f"{omission.before - omission.after:,} bytes omitted]" in receipt.text
    whole_receipt = render(canonical, worded("short \ud800"), DEFAULT_POLICY)
    assert (whole_receipt.text, whole_receipt.omissions) == ("short \\ud800", ())
