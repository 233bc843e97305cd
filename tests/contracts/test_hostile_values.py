"""Values that break programs, through every entrance: kept faithfully or refused, never altered.

Each pair of value and entrance has its outcome written down. What is kept is read back from a
store; what is refused is an `InvalidRecordError` that says why. Details of an error are a case of
their own: a failure is never lost for what it says, so what cannot be kept is replaced by a note.
"""

import json
import math
import tracemalloc
from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import JsonValue
from tests.support.outputs import returned
from tests.support.recording import content_of, stream_of

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    GenericOutput,
    InvalidRecordError,
    ToolCall,
    ToolError,
    canonical_json,
)
from tooltrail.store import InvocationDetail, Store

HUGE = 10_000_000
"""Characters of the longest text."""

COPIES = 8
"""Of a huge text beside itself: its JSON as text and as bytes, the frame, and the rows, which the
thread of the store and the reader may make at once."""


def nested(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


def nested_text() -> Any:
    """What details make of 10,000 levels: 250 of them, and a count of the rest."""
    value: Any = "[... 1 item omitted ...]"
    for _ in range(250):
        value = [value]
    return value


def endless() -> Any:
    value: list[object] = []
    value.append(value)
    return value


def many_keys() -> Any:
    return {f"key {n}": n for n in range(50_000)}


def is_same(one: object, other: object) -> bool:
    """Whether two values have the same type and content; NaN is the same as itself."""
    type_and_value, its_type_and_value = (type(one), one), (type(other), other)
    if isinstance(one, dict) and isinstance(other, dict):
        mine, its = cast("dict[str, object]", one), cast("dict[str, object]", other)
        return mine.keys() == its.keys() and all(is_same(mine[k], its[k]) for k in mine)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type_and_value == its_type_and_value


def record(store: Store, output: CompleteOutput) -> InvocationDetail:
    invocation = store.open_session().start(ToolCall(tool_name="t"))
    invocation.finish(output)
    return store.reader.invocation(invocation.id)


def decoded(document: str | bytes | None) -> Any:
    assert document is not None
    return canonical_json.decode(document)


KEPT: dict[str, Callable[[], Any]] = {
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "negative-infinity": lambda: {"deep": [-math.inf]}["deep"][0],
    "400-digits": lambda: 10**400,
    "60-digits": lambda: -int("7" * 60),
    "half-a-pair": lambda: "a\ud800b\\ud800",
    "half-a-pair-in-a-key": lambda: {"\udfff": 1, "\\udfff": 2},
    "nul": lambda: "a\0b",
    "nul-in-a-key": lambda: {"\0": 1, "\\0": 2},
    "looks-like-a-mark": lambda: {"$tooltrail.float": "NaN", "$$tooltrail.text": "x"},
    "250-levels": lambda: nested(250),
    "many-keys": many_keys,
}
"""What every entrance keeps."""

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "bytes": (lambda: {"data": b"\xff"}, "bytes is not a JSON type"),
    "5000-digits": (lambda: 10**5000, "an integer is too long to be written"),
    "10000-levels": (lambda: nested(10_000), r"nested deeper than 25[06] levels"),
    "contains-itself": (endless, r"nested deeper than 25[06] levels"),
    "number-as-key": (lambda: {1: 2}, "an object key must be a string, not int"),
}
"""What arguments and structured values are refused for."""

SPELLED: dict[str, JsonValue] = {
    "bytes": {"data": "<bytes: \\xff>"},
    "5000-digits": f"<int: {10**5000:#x}>",
    "10000-levels": nested_text(),
    "contains-itself": ["<list: contains itself>"],
    "number-as-key": [[1, 2]],
}
"""How details keep the same values."""

kept_values = pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
refused_values = pytest.mark.parametrize(("make", "why"), REFUSED.values(), ids=REFUSED)


@kept_values
def test_arguments_are_kept(sqlite_store: Store, make: Callable[[], Any]) -> None:
    value = make()
    invocation = sqlite_store.open_session().start(ToolCall.of("t", value))
    assert is_same(decoded(sqlite_store.reader.invocation(invocation.id).arguments), value)


@refused_values
def test_arguments_are_refused(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(InvalidRecordError, match=why):
        ToolCall.of("t", make())


@kept_values
def test_a_structured_value_is_kept(sqlite_store: Store, make: Callable[[], Any]) -> None:
    value = make()
    detail = record(sqlite_store, returned("t", structured=value))
    stored = content_of(sqlite_store.reader, stream_of(detail, "structured"))
    assert is_same(decoded(stored), value)
    result = decoded(detail.canonical_json)["result"]
    if result["truncated"]:
        assert result["artifacts"][result["structured_artifact"]]["path"]
        assert len(canonical_json.encode_text(result["structured_preview"])) <= 20_002
    else:
        assert is_same(result["structured"], value)


@refused_values
def test_a_structured_value_is_refused(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(InvalidRecordError, match=why):
        GenericOutput.of(structured=make())


@kept_values
def test_details_of_an_error_are_kept(sqlite_store: Store, make: Callable[[], Any]) -> None:
    value = make()
    error = ToolError(kind="broken", message="no", details=value)
    detail = record(sqlite_store, CompleteOutput.failure("t", error))
    assert is_same(decoded(detail.complete_json)["error"]["details"], value)
    shown = decoded(detail.canonical_json)["error"]["details"]
    if detail.omissions:
        assert {o.field for o in detail.omissions} == {"error.details"}
        assert shown["omitted"] is True
    else:
        assert is_same(shown, value)


@pytest.mark.parametrize("name", REFUSED)
def test_details_of_an_error_keep_as_text_what_is_refused_elsewhere(
    sqlite_store: Store, name: str
) -> None:
    error = ToolError(kind="broken", message="no", details=REFUSED[name][0]())
    detail = record(sqlite_store, CompleteOutput.failure("t", error))
    assert detail.summary.state == "error"
    assert decoded(detail.complete_json)["error"]["details"] == SPELLED[name]
    text = canonical_json.encode_text(SPELLED[name])
    shown = decoded(detail.canonical_json)["error"]["details"]
    assert detail.receipt is not None
    if len(text) <= 1_000:
        assert shown == SPELLED[name]
        assert detail.omissions == ()
        assert detail.receipt.text.endswith(f"\nDetails: {text}\n")
    else:
        assert (shown["omitted"], shown["char_count"]) == (True, len(text))
        assert [(o.field, o.before) for o in detail.omissions] == [("error.details", len(text))]
        assert "; incomplete):\n" in detail.receipt.text


def test_details_with_tuples_are_kept_as_lists(sqlite_store: Store) -> None:
    details: Any = {"pair": (1, (2, 3))}
    error = ToolError(kind="broken", message="no", details=details)
    detail = record(sqlite_store, CompleteOutput.failure("t", error))
    assert decoded(detail.complete_json)["error"]["details"] == {"pair": [1, [2, 3]]}


TEXTS: dict[str, str] = {
    "bare-nan": '{"a": NaN, "b": -Infinity}',
    "beyond-a-double": "[1e400, -1e400]",
    "60-digits": f'{{"n": {"7" * 60}}}',
    "5000-digits": f"[{'9' * 5000}]",
    "half-a-pair": '{"a": "\ud800", "\udfff": "\\ud800"}',
    "nul": '{"a": "\0", "b": "\\u0000"}',
    "key-twice": '{"a": 1, "a": 2}',
    "10000-levels": "[" * 10_000 + "]" * 10_000,
    "10000-levels-of-objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "many-keys": "{" + ",".join(f'"key {n}":{n}' for n in range(50_000)) + "}",
    "empty": "",
}
"""JSON or not, as a model or a tool may write it."""

hostile_texts = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@hostile_texts
def test_raw_arguments_are_kept_to_the_byte(sqlite_store: Store, text: str) -> None:
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="t", arguments_raw=text))
    detail = sqlite_store.reader.invocation(invocation.id)
    assert detail.arguments == text.encode("utf-8", "surrogatepass")
    assert len(detail.summary.arguments_preview) <= 240


@hostile_texts
def test_a_text_is_kept_to_the_byte(sqlite_store: Store, text: str) -> None:
    detail = record(sqlite_store, returned("t", text))
    stored = content_of(sqlite_store.reader, stream_of(detail, "content.0"))
    assert stored == text.encode("utf-8", "surrogatepass")
    assert detail.receipt is not None
    assert len(detail.receipt.text) <= 28_000


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"\xff\xfe", b"\xed\xa0\x80", b"caf\xe9"],
    ids=["every-byte", "no-utf-8", "half-a-pair", "latin-1"],
)
def test_bytes_are_kept_to_the_byte(sqlite_store: Store, data: bytes) -> None:
    detail = record(sqlite_store, returned("t", data))
    assert content_of(sqlite_store.reader, stream_of(detail, "content.0")) == data


@pytest.mark.parametrize("name", ["60-digits", "5000-digits", "key-twice", "beyond-a-double"])
def test_json_in_a_text_keeps_its_spelling_in_the_receipt(sqlite_store: Store, name: str) -> None:
    detail = record(sqlite_store, returned("t", TEXTS[name]))
    assert detail.receipt is not None
    assert "".join(detail.receipt.text.split()) == "".join(TEXTS[name].split())


def huge_arguments(store: Store, text: str) -> object:
    invocation = store.open_session().start(ToolCall.of("t", text))
    return store.reader.invocation(invocation.id).arguments[1:-1]


def huge_raw_arguments(store: Store, text: str) -> object:
    call = ToolCall(tool_name="t", arguments_raw=text)
    invocation = store.open_session().start(call)
    return store.reader.invocation(invocation.id).arguments


def huge_structured(store: Store, text: str) -> object:
    detail = record(store, returned("t", structured=text))
    return content_of(store.reader, stream_of(detail, "structured"))[1:-1]


def huge_details(store: Store, text: str) -> object:
    error = ToolError(kind="broken", message="no", details=text)
    detail = record(store, CompleteOutput.failure("t", error))
    assert detail.complete_json is not None
    return json.loads(detail.complete_json)["error"]["details"].encode()


def huge_text(store: Store, text: str) -> object:
    detail = record(store, returned("t", text))
    return content_of(store.reader, stream_of(detail, "content.0"))


def huge_document(_: Store, text: str) -> object:
    value: JsonValue = {"text": text}
    envelope = {"tool_name": "t", "status": "success", "summary_text": "s", "error": None}
    document = CanonicalResult.model_validate({**envelope, "result": value}).to_json()
    loaded = CanonicalResult.from_json(document)
    assert loaded.result is not None
    return cast("str", loaded.result["text"]).encode()


@pytest.mark.parametrize(
    "entrance",
    [huge_arguments, huge_raw_arguments, huge_structured, huge_details, huge_text, huge_document],
)
def test_a_huge_text_is_kept_and_takes_a_few_copies(
    sqlite_store: Store, entrance: Callable[[Store, str], object]
) -> None:
    text = "x" * (HUGE - 1) + "y"
    tracemalloc.start()
    try:
        kept = entrance(sqlite_store, text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept == text.encode()
    assert peak <= COPIES * HUGE
