"""What the families share: fair shares, previews with artifacts, JSON that people can read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import MemoryPublisher, artifact_path, edged, lossy, omitted, whole

from tooltrail.records import ArtifactList, Policy, preview
from tooltrail.records.families._shared import (
    SparseRecord,
    fair_shares,
    indent_json,
    is_cut,
    preview_stream,
    readable,
    shares,
)

POLICY = Policy()
json_texts = st.recursive(
    st.sampled_from(["null", "1e400", "1.0", "-0", "0.10", "1" * 5000, '"a\\"[{,:\\\\"', '""']),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: "[" + " , ".join(parts) + " ]")
        | st.lists(inner, max_size=4).map(
            lambda parts: "{" + ",".join(f'"k":\n{part}' for part in parts) + "}"
        )
    ),
    max_leaves=15,
)


class Sparse(SparseRecord):
    needed: int | None
    spare: int | None = None


def test_only_an_optional_field_is_left_out_when_it_is_none() -> None:
    assert Sparse(needed=None).model_dump(mode="json") == {"needed": None}
    assert Sparse(needed=1, spare=0).model_dump(mode="json") == {"needed": 1, "spare": 0}


@pytest.mark.parametrize(
    ("sizes", "total", "parts"),
    [
        ([], 100, []),
        ([10], 100, [10]),
        ([1000], 100, [100]),
        ([1000, 1000], 100, [50, 50]),
        ([10, 1000], 100, [10, 90]),
        ([1000, 10], 100, [90, 10]),
        ([0, 1000], 100, [0, 100]),
        ([30, 30, 1000], 100, [30, 30, 40]),
        ([40, 40, 1000], 100, [33, 33, 34]),
        ([50, 50], 100, [50, 50]),
        ([7, 7], 0, [0, 0]),
    ],
)
def test_a_budget_is_shared_so_that_what_one_does_not_need_goes_to_the_others(
    sizes: list[int], total: int, parts: list[int]
) -> None:
    assert fair_shares(sizes, total) == parts


@given(st.lists(st.integers(0, 500), max_size=10), st.integers(0, 1000))
def test_shares_are_fair_and_waste_nothing(sizes: list[int], total: int) -> None:
    parts = fair_shares(sizes, total)
    assert all(0 <= part <= size for part, size in zip(parts, sizes, strict=True))
    assert sum(parts) == min(total, sum(sizes))
    starved = [part for part, size in zip(parts, sizes, strict=True) if part < size]
    if starved:
        assert max(parts) - min(starved) <= 1
        assert max(starved) - min(starved) <= 1


def test_a_share_has_room_for_the_notice_of_a_loss() -> None:
    streams = [lossy(b"kept", 10), whole(b"x" * 5000)]
    first, second = shares(streams, 1000, POLICY)
    shown, _, _ = preview_stream(streams[0], first, POLICY, ArtifactList(MemoryPublisher()))
    assert shown.text.startswith("kept\n[output incomplete: the last 10 bytes were not kept")
    assert first + second == 1000


@pytest.mark.parametrize(("size", "published"), [(16_383, 0), (16_384, 0), (16_385, 1)])
def test_a_stream_longer_than_the_inline_threshold_is_published_though_shown_whole(
    size: int, published: int
) -> None:
    publisher = MemoryPublisher()
    stream = whole(b"x" * size)
    shown, index, omissions = preview_stream(stream, 20_000, POLICY, ArtifactList(publisher))
    assert len(publisher.published) == published
    assert index == (0 if published else None)
    assert not shown.truncated
    assert not is_cut(stream, shown)
    assert omissions == ()


def test_a_cut_stream_is_published_however_short_and_its_marker_names_the_path() -> None:
    publisher = MemoryPublisher()
    stream = whole(b"line\n" * 200)
    artifacts = ArtifactList(publisher)
    shown, index, omissions = preview_stream(stream, 500, POLICY, artifacts)
    assert index == 0
    assert publisher.published == {artifact_path(stream): stream}
    assert f"full output: {artifact_path(stream)}]" in shown.text
    assert artifacts.path(0) == artifact_path(stream)
    assert len(shown.text) <= 500
    assert omitted(omissions, "stdout", "bytes") == shown.omitted_bytes > 0
    assert omitted(omissions, "stdout", "lines") == shown.omitted_lines > 0
    assert {o.stage for o in omissions} == {"projection"}


def test_a_loss_shows_in_text_and_omissions_of_the_capture() -> None:
    stream = lossy(b"kept", 96)
    shown, index, omissions = preview_stream(stream, 1000, POLICY, ArtifactList(MemoryPublisher()))
    assert index is None
    assert is_cut(stream, shown)
    assert [(o.stage, o.unit, o.before, o.after) for o in omissions] == [
        ("capture", "bytes", 100, 4),
        ("capture", "lines", 2, 1),
    ]
    assert all(o.reason == "the spool is full" for o in omissions)


@pytest.mark.parametrize("kept", [b"", b"kept\n"])
def test_the_notice_of_a_loss_opens_no_empty_line(kept: bytes) -> None:
    stream = lossy(kept, 5)
    shown, _, _ = preview_stream(stream, 1000, POLICY, ArtifactList(MemoryPublisher()))
    assert shown.text == kept.decode() + (
        "[output incomplete: the last 5 bytes were not kept: the spool is full]\n"
    )


@pytest.mark.parametrize("budget", [0, 1, 10, 70, 71, 72, 73, 100, 300])
def test_a_loss_with_an_endless_unencodable_reason_stays_within_the_budget(budget: int) -> None:
    stream = lossy(b"kept", 5, reason="no space \udce9 " * 1000)
    shown, _, _ = preview_stream(stream, budget, POLICY, ArtifactList(MemoryPublisher()))
    assert len(shown.text) <= budget
    shown.text.encode()


@given(
    st.binary(max_size=2000) | st.text(max_size=900).map(lambda t: (t * 5).encode()),
    st.integers(0, 400),
    st.integers(0, 3000),
    st.integers(0, 20_000),
)
def test_the_omissions_of_a_stream_account_for_every_byte_and_line(
    kept: bytes, lost: int, budget: int, inline: int
) -> None:
    stream = lossy(kept, lost) if lost else whole(kept)
    policy = Policy(inline_bytes=inline)
    artifacts = ArtifactList(MemoryPublisher())
    shown, index, omissions = preview_stream(stream, budget, policy, artifacts)
    assert len(shown.text) <= budget
    assert (
        omitted(omissions, "stdout", "bytes")
        == stream.produced_size - stream.size + shown.omitted_bytes
    )
    assert (
        omitted(omissions, "stdout", "lines")
        == stream.produced_line_count - stream.line_count + shown.omitted_lines
    )
    assert (index is not None) == (shown.truncated or stream.size > inline)
    assert is_cut(stream, shown) is bool(omissions)
    assert (artifacts.references is None) == (index is None)


def test_json_is_laid_out_without_touching_a_lexeme() -> None:
    text = ' {"a":1e400 ,"a":[1.0,-0.0, {} ,[],""],"b":{"c":"x:\\"{,"}}'
    assert indent_json(text) == (
        '{\n  "a": 1e400,\n  "a": [\n    1.0,\n    -0.0,\n    {},\n    [],\n    ""\n  ],\n'
        '  "b": {\n    "c": "x:\\"{,"\n  }\n}\n'
    )


@given(json_texts)
def test_laid_out_json_has_the_lexemes_of_the_original(text: str) -> None:
    def lexemes(source: str) -> list[str]:
        found: list[str] = []

        def note(lexeme: str) -> str:
            found.append(lexeme)
            return lexeme

        json.loads(
            source,
            parse_float=note,
            parse_int=note,
            object_pairs_hook=lambda pairs: note(f"{len(pairs)} pairs"),
        )
        return found

    assert lexemes(indent_json(text)) == lexemes(text)
    assert "".join(indent_json(text).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] server started\n",
        "[INFO",
        "[2026-04-23 10:00:00] server started\n",
        "[1/5] Building\n",
        "{ braces } in prose",
        "[]oops",
        '{"a":1}\n{"a":2}\n',
        '{"a":1,}',
        '"a string"',
        "42\n",
        "text",
        "",
    ],
)
def test_what_is_no_json_document_is_shown_as_it_is(text: str) -> None:
    assert readable([(text, False)], 10_000) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] server started\n",
        "[2026-04-23T10:00:00] server started\n",
        "[1/5] Building the documentation\n",
        '["quoted" words] in a log\n',
        "[1] [2] footnotes, then prose\n" if False else "[12] footnotes, then prose\n",
        '{"a" and "b"} are sets\n',
        "plain text\n",
        "{ braces } in prose\n",
    ],
)
def test_a_cut_log_is_not_called_json(text: str) -> None:
    cut = text + "[output truncated: showing first 1 lines and last 1 lines; …]\nthe end\n"
    assert readable([(cut, True)], 10_000) == [cut]


@pytest.mark.parametrize(
    "beginning",
    [
        '{"a":1,"b":"an unfinished stri\n',
        '{"a":1,"b":"an unfinished escape \\u00\n',
        "[1, 2, 3,\n",
        "[true, fal\n",
        "[null\n",
        "{\n" if False else '{\n  "a": {\n',
        '[[1,2],[3,4],"x"\n',
        '{"complete": true}\n',
        '{"line":1}\n{"line":2}\n',
        "[" + "1" * 5000 + "\n",
        "[" * 2000 + "\n",
    ],
)
def test_cut_json_is_said_to_be_incomplete_even_when_there_is_no_room(beginning: str) -> None:
    cut = beginning + "[output truncated: showing first 1 lines and last 1 lines; …]\n}}"
    assert readable([(cut, True)], 0) == [cut + "\n[the JSON above is incomplete]\n"]
    assert readable([(cut + "\n", True)], 0) == [cut + "\n[the JSON above is incomplete]\n"]


def test_json_of_which_the_capture_lost_the_end_is_said_to_be_incomplete() -> None:
    stream = lossy(b'{"rows": [1, 2, 3', 100)
    shown, _, _ = preview_stream(stream, 1000, POLICY, ArtifactList(MemoryPublisher()))
    (body,) = readable([(shown.text, True)], 1000)
    assert body.endswith("the spool is full]\n[the JSON above is incomplete]\n")


def test_json_is_indented_only_into_the_room_that_all_texts_leave() -> None:
    compact = json.dumps(list(range(100)))
    indented = json.dumps(list(range(100)), indent=2) + "\n"
    growth = len(indented) - len(compact)
    texts = [(compact, False), ("x" * 50, False), (compact, False)]
    total = 2 * len(compact) + 50
    both = readable(texts, total + 2 * growth)
    assert both == [indented, "x" * 50, indented]
    assert readable(texts, total + 2 * growth - 1) == [indented, "x" * 50, compact]
    assert readable(texts, total + growth - 1) == [compact, "x" * 50, compact]
    assert readable(texts, 0) == [compact, "x" * 50, compact]


def test_json_nested_too_deep_for_the_parser_is_shown_as_it_is() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert readable([(text, False)], 10**9) == [text]


def test_a_stream_known_by_its_ends_is_previewed_like_any_other() -> None:
    stream = edged(b"line\n" * 5000, 4000, 4000)
    artifacts = ArtifactList(MemoryPublisher())
    shown, index, _ = preview_stream(stream, 1000, POLICY, artifacts)
    assert shown == preview(stream, 1000, full_output=artifacts.path(0))
    assert index == 0
