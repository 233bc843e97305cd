"""The generic family: content items and a structured value, within one budget."""

import json
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import (
    MARKER,
    artifact_path,
    edged,
    golden,
    lossy,
    number,
    omitted,
    result_of,
    surfaces,
    whole,
)
from tests.support.cases import each_case
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.shown_streams import shown_of_value

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    ContentItem,
    GenericOutput,
    InvalidRecordError,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
    canonical_json,
    digest_of,
)

PNG = b"\x89PNG\r\n\x1a\n\0"
SEVENS: list[JsonValue] = [7] * 500
LONG: JsonValue = {"ids": SEVENS, "log": "b" * 600, "total": 3}
SMALL = policy_with(generic={"preview_chars": 1000, "receipt_chars": 4000, "max_items": 2})


def output_of(*items: ContentItem, structured: StreamRecord | None = None) -> CompleteOutput:
    """The output with these items, each stream in the role of its place."""
    content = tuple(
        item.model_copy(update={"stream": item.stream.model_copy(update={"role": f"content.{n}"})})
        for n, item in enumerate(items)
    )
    return CompleteOutput.success(
        "mcp__tool", GenericOutput(content=content, structured=structured), "done"
    )


def text_item(stream: StreamRecord) -> ContentItem:
    return ContentItem(stream=stream)


def run(output: CompleteOutput, policy: Policy | None = None) -> tuple[Projection, Receipt]:
    projection, receipt, _ = surfaces(output, "generic", policy)
    return projection, receipt


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


def picture(data: bytes = PNG, media_type: str = "image/png") -> ContentItem:
    return ContentItem(media_type=media_type, stream=whole(data, "content.1"))


@each_case(
    ("name", "output", "policy"),
    [
        ("generic_texts", returned("tool", "first text\n", "second text", '{"k":[1,2]}'), None),
        ("generic_empty", returned("tool"), None),
        ("generic_empty", returned("tool", "", ""), None),
        (
            "generic_structured",
            returned("tool", structured={"names": ["a", "b"], "count": 2}),
            None,
        ),
        (
            "generic_binary",
            output_of(
                text_item(whole(b"a picture\n", "content.0")),
                picture(),
                picture(b"hi", "application/octet-stream"),
            ),
            None,
        ),
        ("generic_hidden", returned("tool", "one", "two", "three", "four"), SMALL),
        ("generic_structured_shortened", returned("tool", structured=LONG), SMALL),
    ],
)
def test_the_receipt_is_worded_as_in_the_golden_file(
    name: str, output: CompleteOutput, policy: Policy | None
) -> None:
    _, receipt = run(output, policy)
    assert receipt.text == golden(name)
    assert (receipt.renderer_name, receipt.renderer_version) == ("generic", 2)


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ((), "tool returned 0 content items"),
        (("a",), "tool returned 1 content item"),
        (("a", b"b"), "tool returned 2 content items"),
    ],
)
def test_the_summary_counts_the_items_unless_it_is_given(
    content: tuple[str | bytes, ...], summary: str
) -> None:
    assert returned("tool", *content).summary_text == summary
    assert returned("tool", *content, summary="found it").summary_text == "found it"


def test_the_canonical_result_of_a_short_text_is_the_text() -> None:
    projection, receipt = run(returned("tool", "short"))
    assert result_of(projection) == {
        "content": [
            {
                "type": "text",
                "text_preview": "short",
                "truncated": False,
                "media_type": "text/plain",
                "size": 5,
            }
        ],
        "content_count": 1,
        "truncated": False,
    }
    assert receipt.text == "short\n"
    assert projection.omissions == ()


def test_a_long_text_is_cut_published_and_flagged() -> None:
    text = "line of text\n" * 4000
    projection, receipt = run(returned("tool", text))
    (item,) = result_of(projection)["content"]
    path = artifact_path(whole(text.encode()))
    assert item["truncated"] is result_of(projection)["truncated"] is True
    assert item["artifact"] == 0
    assert result_of(projection)["artifacts"] == [{"path": path}]
    assert f"full output: {path}]" in receipt.text
    assert len(item["text_preview"]) <= 20_000
    match = MARKER.search(receipt.text)
    assert match is not None
    assert omitted(projection.omissions, "content.0", "bytes") == number(match["bytes"])


@pytest.mark.parametrize("data", [PNG, b"readable after all\n", b'{"json":true}'])
def test_nothing_is_shown_of_another_media_type_so_all_of_it_is_published(data: bytes) -> None:
    stream = whole(data, "content.0")
    item = ContentItem(media_type="application/x-thing", stream=stream)
    projection, receipt = run(output_of(item))
    path = artifact_path(stream)
    assert result_of(projection)["content"] == [
        {
            "type": "binary",
            "truncated": True,
            "media_type": "application/x-thing",
            "size": len(data),
            "artifact": 0,
        }
    ]
    assert result_of(projection)["truncated"] is True
    assert omitted(projection.omissions, "content.0", "bytes") == len(data)
    assert receipt.text == f"[application/x-thing, {len(data):,} bytes: {path}]\n"


def test_an_empty_item_of_another_media_type_leaves_nothing_out() -> None:
    projection, receipt = run(output_of(picture(b"")))
    assert receipt.text == "[image/png, 0 bytes]\n"
    assert result_of(projection)["truncated"] is False
    assert projection.artifacts == ()


def test_an_item_that_is_not_shown_takes_nothing_of_the_budget() -> None:
    big = ContentItem(media_type="application/pdf", stream=whole(b"x" * 90_000, "content.1"))
    projection, _ = run(output_of(text_item(whole(b"y" * 20_000, "content.0")), big))
    assert result_of(projection)["content"][0]["truncated"] is False


def test_a_long_media_type_is_shortened_in_the_receipt_only() -> None:
    media_type = "application/" + "x" * 243
    projection, receipt = run(output_of(picture(PNG, media_type)))
    assert result_of(projection)["content"][0]["media_type"] == media_type
    assert receipt.text.startswith("[application/xxx")
    assert len(receipt.text) < 160
    with pytest.raises(ValidationError):
        picture(PNG, media_type + "x")
    with pytest.raises(ValidationError):
        picture(PNG, "")


@pytest.mark.parametrize(
    ("media_type", "shown"),
    [
        ("image/png\n[2 further content items are not shown]", "image/png [2 further content"),
        ("image/png\r\u2028\x1b[2K", "image/png [2K, "),
        ("\n\t", "unnamed type, "),
        ("image/\ud800", "image/\\ud800, "),
    ],
)
def test_a_media_type_stays_on_its_line(media_type: str, shown: str) -> None:
    projection, receipt = run(output_of(picture(PNG, media_type)))
    assert receipt.text.startswith(f"[{shown}")
    assert len(receipt.text.splitlines()) == 1
    assert all(len(o.reason.splitlines()) == 1 for o in projection.omissions)


@each_case(
    "media_type",
    [
        *("text/html", "TEXT/Plain; charset=utf-8", "application/json"),
        *("Application/JSON ; charset=utf-8", "application/ld+json", "application/xml"),
        *("image/svg+xml", "application/javascript", "application/yaml", "application/x-yaml"),
        *("application/toml", "application/openapi+yaml", "application/x-ndjson"),
    ],
)
def test_every_textual_media_type_is_shown_as_text(media_type: str) -> None:
    item = ContentItem(media_type=media_type, stream=whole(b"<a>1</a>\n", "content.0"))
    projection, receipt = run(output_of(item))
    assert receipt.text == "<a>1</a>\n"
    assert result_of(projection)["content"][0]["type"] == "text"
    assert result_of(projection)["content"][0]["media_type"] == media_type
    assert projection.omissions == ()


@each_case(
    "media_type", ["application/pdf", "image/png", "json", "application/jsonish", "x/text/plain"]
)
def test_no_other_media_type_is_taken_for_text(media_type: str) -> None:
    projection, _ = run(output_of(picture(b"{}", media_type)))
    assert result_of(projection)["content"][0]["type"] == "binary"


def test_json_is_indented_up_to_the_budget_of_the_previews() -> None:
    policy = policy_with(generic={"preview_chars": 1000, "receipt_chars": 3160, "max_items": 1})
    for length, indented in ((991, True), (992, False)):
        # Two brackets, two quotes, three newlines and two spaces stand around the text.
        text = json.dumps(["x" * length])
        _, receipt = run(returned("tool", text), policy)
        assert receipt.text.startswith("[\n") is indented


def test_text_that_turns_out_to_be_binary_is_described() -> None:
    projection, receipt = run(returned("tool", "a\0b"))
    (item,) = result_of(projection)["content"]
    assert (item["type"], item["text_encoding"], item["truncated"]) == ("text", "binary", True)
    assert receipt.text.startswith("[binary output: 3 bytes, sha256:")


def test_items_beyond_the_maximum_are_counted_and_kept() -> None:
    output = returned("tool", "one", "two", "three", "", "five")
    projection, receipt, publisher = surfaces(output, "generic", SMALL)
    result = result_of(projection)
    assert (len(result["content"]), result["content_count"]) == (2, 5)
    assert result["truncated"] is True
    assert omitted(projection.omissions, "content", "items") == 3
    assert omitted(projection.omissions, "content", "bytes") == len("three" + "five")
    ((role, reference),) = projection.artifacts
    listing = f"not shown; listed in {reference.path}]\n"
    assert f"[3 further content items are {listing}" in receipt.text
    assert (role, result["hidden_artifact"]) == ("hidden", 0)
    assert result["artifacts"] == [{"path": reference.path}]
    entries = hidden_of(result, publisher)
    assert [(entry["field"], entry["n"]) for entry in entries] == [
        ("content", 2),
        ("content", 3),
        ("content", 4),
    ]
    assert entries[0]["value"] == {
        "media_type": "text/plain",
        "stream": {
            "role": "content.2",
            "digest": digest_of(b"three"),
            "size": 5,
            "line_count": 1,
            "produced_size": 5,
            "produced_line_count": 1,
            "loss_reason": None,
        },
    }
    assert {s.digest for s in output.streams} >= {digest_of(d) for d in (b"three", b"", b"five")}
    _, receipt = run(returned("tool", "one", "two", "three"), SMALL)
    assert "\n[1 further content item is not shown; listed in sha256/" in receipt.text


def test_the_canonical_result_does_not_grow_with_the_number_of_items() -> None:
    sizes: list[int] = []
    for count in (100, 3000, 20_000):
        output = returned("t", *map(str, range(10_000, 10_000 + count)))
        projection, _, publisher = surfaces(output, "generic")
        assert len(result_of(projection)["artifacts"]) == len(projection.artifacts) == 1
        (listed,) = publisher.published.values()
        assert listed.line_count == count - 32
        sizes.append(len(projection.canonical.to_json()))
    assert max(sizes) <= min(sizes) + 100


@each_case("value", [0, False, "", [], {}, "text", 10**60, {"deep": {"er": [None, 1.5]}}])
def test_a_structured_value_stands_in_the_result_as_it_is(value: JsonValue) -> None:
    projection, receipt = run(returned("tool", structured=value))
    result = result_of(projection)
    assert result["structured"] == value
    assert result["truncated"] is False
    assert json.loads(receipt.text) == value
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical


def test_a_long_structured_value_is_shown_by_its_structure_and_becomes_an_artifact() -> None:
    value: JsonValue = {"count": 9000, "rows": [*range(9000)]}
    projection, receipt = run(returned("tool", structured=value))
    result = result_of(projection)
    assert "structured" not in result
    assert result["structured_truncated"] is result["truncated"] is True
    preview = result["structured_preview"]
    assert 10_000 < len(canonical_json.encode(preview)) <= 20_000
    assert (preview["count"], preview["rows"][0], preview["rows"][-1]) == (9000, 0, 8999)
    path = artifact_path(whole(canonical_json.encode(value)))
    assert result["artifacts"][result["structured_artifact"]]["path"] == path
    notice = f"[the JSON above is shortened; full output: {path}]\n"
    assert json.loads(receipt.text.removesuffix(notice)) == preview
    missing = omitted(projection.omissions, "structured", "bytes")
    assert len(canonical_json.encode(value)) - missing == shown_of_value(value, preview)


def test_a_long_text_as_structured_value_is_cut_as_the_text_it_is() -> None:
    projection, receipt = run(returned("tool", structured="line of text\n" * 4000))
    preview = result_of(projection)["structured_preview"]
    assert preview.startswith('"line of text\\n')
    assert MARKER.search(preview)
    assert receipt.text.startswith('"line of text\\n')


def test_a_structured_value_that_lost_bytes_is_shown_as_the_text_it_is() -> None:
    structured = lossy(b'{"a":[1,2', 50, "structured")
    projection, receipt = run(output_of(structured=structured))
    assert "structured" not in result_of(projection)
    assert result_of(projection)["truncated"] is True
    assert receipt.text == (
        '{"a":[1,2\n'
        "[output incomplete: the last 50 bytes were not kept: the spool is full]\n"
        "[the JSON above is incomplete]\n"
    )


def test_a_structured_value_known_by_ends_that_meet_is_the_value() -> None:
    projection, _ = run(output_of(structured=edged(b'{"a":[1,2]}', 4, 7, "structured")))
    assert result_of(projection)["structured"] == {"a": [1, 2]}


@pytest.mark.parametrize("levels", [250, 251, 256])
def test_a_structured_value_too_deep_for_an_envelope_is_shown_as_text(levels: int) -> None:
    projection, receipt = run(returned("tool", structured=nested(levels)))
    result = result_of(projection)
    if levels == 250:
        assert result["structured"] == nested(250)
    else:
        assert result["structured_preview"] == "[" * levels + "]" * levels
    assert "[" * levels + "]" * levels == "".join(receipt.text.split())
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical


def test_a_structured_stream_that_is_no_json_is_shown_as_the_text_it_is() -> None:
    projection, receipt = run(output_of(structured=whole(b"no json", "structured")))
    assert result_of(projection)["structured_preview"] == "no json"
    assert receipt.text == "no json\n"


@pytest.mark.parametrize("text", ['{"rows":2}', '{\n  "rows": 2\n}\n'])
def test_a_text_that_says_the_same_stands_for_the_structured_value_in_the_receipt(
    text: str,
) -> None:
    projection, receipt = run(returned("tool", text, structured={"rows": 2}))
    assert receipt.text.split() == ["{", '"rows":', "2", "}"]
    assert result_of(projection)["structured"] == {"rows": 2}


def policy_of(preview: int, more: int, most: int) -> Policy:
    budget = {
        "preview_chars": preview,
        "receipt_chars": preview + 2000 + 160 * most + more,
        "max_items": most,
    }
    return policy_with(generic=budget)


def test_items_are_hidden_only_where_there_is_no_room_for_them() -> None:
    policy = policy_of(1000, 0, 64)
    for size, most in ((10, 64), (30, 33), (100, 10), (5000, 2)):
        output = returned("tool", *["x" * size] * 80)
        result = result_of(run(output, policy)[0])
        assert len(result["content"]) == most
        for item in result["content"]:
            assert item["text_preview"].startswith("x" * min(size, 20))
        output = returned("tool", *["x" * size] * most)
        assert len(result_of(run(output, policy)[0])["content"]) == most


def test_why_items_are_hidden_is_told() -> None:
    output = returned("tool", *["x" * 300] * 9)
    for most, reason in (
        (64, "no room for more than 3 items"),
        (2, "no room for more than 2 items"),
    ):
        projection, _ = run(output, policy_of(1000, 0, most))
        reasons = {o.reason for o in projection.omissions if o.field == "content"}
        assert reasons == {reason}


def test_every_index_points_at_the_artifact_of_its_own_item() -> None:
    output = returned("tool", b"a", "b" * 30_000, b"c", structured="d" * 30_000)
    projection, _, publisher = surfaces(output, "generic")
    result = result_of(projection)
    paths = [artifact["path"] for artifact in result["artifacts"]]
    indices = [item["artifact"] for item in result["content"]] + [result["structured_artifact"]]
    assert [paths[index] for index in indices] == [artifact_path(s) for s in output.streams]
    assert sorted(indices) == [0, 1, 2, 3]
    assert len(publisher.published) == 4


@pytest.mark.parametrize("value", [{"a": 1}, 5, None])
def test_content_is_text_or_bytes_and_json_is_structured(value: Any) -> None:
    with pytest.raises(
        InvalidRecordError, match=r"^content must be str or bytes; pass JSON as structured=$"
    ):
        GenericOutput.of(value)
