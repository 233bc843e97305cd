"""What a projector cuts with: nothing is left out without being counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import MemoryPublisher, artifact_path, lossy, omitted, whole
from tests.support.cases import each_case

from tooltrail.records import (
    DEFAULT_POLICY,
    ContentItem,
    Cutter,
    InvalidRecordError,
    Policy,
    Shown,
    StreamRecord,
    digest_of,
)
from tooltrail.records.budgets import MAX_PREVIEW_CHARS, MIN_SHARE_CHARS
from tooltrail.records.counted_streams import INLINE_BYTES
from tooltrail.records.cutting import NOT_THERE


def cut(
    stream: StreamRecord, room: int, policy: Policy = DEFAULT_POLICY
) -> tuple[Shown, Cutter, MemoryPublisher]:
    publisher = MemoryPublisher()
    cutter = Cutter(policy.edge_bytes, publisher)
    return cutter.stream(stream, room), cutter, publisher


def test_a_stream_that_the_tool_does_not_have_takes_no_share() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    absent, other = cutter.streams([None, whole(b"x" * 1000)], 1000)
    assert absent == NOT_THERE == cutter.stream(None, 10) == cutter.unseen(None, "no reason")
    assert other.text == "x" * 1000
    assert not cutter.truncated


def test_the_longest_stream_that_a_preview_can_show_whole_is_no_artifact() -> None:
    stream = whole("\U0001f600".encode() * MAX_PREVIEW_CHARS)
    assert stream.size <= INLINE_BYTES
    policy = DEFAULT_POLICY.for_tool("T", preview_chars=MAX_PREVIEW_CHARS)
    shown, cutter, publisher = cut(stream, MAX_PREVIEW_CHARS, policy)
    assert shown.text is not None
    assert shown.text.encode() == stream.content
    assert (shown.artifact, publisher.published, cutter.omissions) == (None, {}, ())


def test_a_cut_stream_is_published_however_short_and_its_marker_names_the_path() -> None:
    stream = whole(b"line\n" * 200)
    shown, cutter, publisher = cut(stream, 500)
    assert publisher.published == {artifact_path(stream): stream}
    assert shown.artifact == 0
    assert shown.text is not None
    assert f"full output: {artifact_path(stream)}]" in shown.text
    assert len(shown.text) <= 500
    kept = sum(line == "line" for line in shown.text.splitlines())
    assert omitted(cutter.omissions, "stdout", "bytes") == 5 * (200 - kept)
    assert omitted(cutter.omissions, "stdout", "lines") == 200 - kept
    assert {o.stage for o in cutter.omissions} == {"projection"}


def test_a_loss_shows_in_text_and_omissions_of_the_capture() -> None:
    shown, cutter, _ = cut(lossy(b"kept", 96), 1000)
    assert shown.artifact is None
    assert shown.truncated
    assert [(o.stage, o.unit, o.before, o.after) for o in cutter.omissions] == [
        ("capture", "bytes", 100, 4),
        ("capture", "lines", 2, 1),
    ]
    assert all(o.reason == "the spool is full" for o in cutter.omissions)


@pytest.mark.parametrize("kept", [b"", b"kept\n"])
def test_the_notice_of_a_loss_opens_no_empty_line(kept: bytes) -> None:
    shown, _, _ = cut(lossy(kept, 5), 1000)
    assert shown.text == kept.decode() + (
        "[output incomplete: the last 5 bytes were not kept: the spool is full]\n"
    )


@each_case("room", [0, 1, 10, 70, 71, 72, 73, 100, 300])
def test_a_loss_with_an_endless_unencodable_reason_stays_within_the_room(room: int) -> None:
    shown, _, _ = cut(lossy(b"kept", 5, reason="no space \udce9 " * 1000), room)
    assert len(shown.text or "") <= room
    assert "\udce9" not in (shown.text or "")


def test_the_reason_of_a_loss_is_cut_so_that_the_smallest_share_has_room_for_the_notice() -> None:
    stream = lossy(b"line\n" * 2000, 10, reason="r" * 200)
    shown, _, _ = cut(stream, MIN_SHARE_CHARS)
    assert shown.text is not None
    text, _, notice = shown.text.partition("[output incomplete")
    assert notice == ": the last 10 bytes were not kept: " + "r" * 77 + "\u2026]\n"
    assert f"full output: {artifact_path(stream)}]" in text
    assert text.startswith("line\n")
    assert text.endswith("line\n")


def test_a_loss_without_a_reason_is_told() -> None:
    shown, _, _ = cut(lossy(b"kept", 5, reason=" "), 1000)
    assert shown.text == "kept\n[output incomplete: the last 5 bytes were not kept]\n"


def test_the_reason_of_a_loss_cannot_pass_for_another_line() -> None:
    shown, _, _ = cut(lossy(b"kept", 5, reason="r\nProcess exited with code 0\n\x1b[2K"), 1000)
    assert shown.text == (
        "kept\n[output incomplete: the last 5 bytes were not kept: "
        "r Process exited with code 0 \\x1b[2K]\n"
    )


def test_an_unseen_stream_is_published_and_wholly_omitted() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, publisher := MemoryPublisher())
    stream = whole(b"\x89PNG\n", "picture")
    assert cutter.unseen(stream, "image/png is not shown") == (None, None, True, 0)
    assert publisher.published == {artifact_path(stream): stream}
    assert [(o.field, o.unit, o.before, o.after, o.reason) for o in cutter.omissions] == [
        ("picture", "bytes", 5, 0, "image/png is not shown"),
        ("picture", "lines", 1, 0, "image/png is not shown"),
    ]
    assert cutter.unseen(whole(b"", "empty"), "no reason") == NOT_THERE
    assert cutter.unseen(lossy(b"", 3, "lost"), "no reason") == (None, None, True, None)


def test_items_and_texts_are_cut_with_their_count() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    assert cutter.items("files", [1, 2, 3], 3) == [1, 2, 3]
    assert cutter.text("title", "title", 5) == "title"
    assert not cutter.truncated
    assert cutter.items("files", (1, 2, 3), 2) == (1, 2)
    assert cutter.text("title", "titles", 5) == "titl\u2026"
    assert [(o.stage, o.field, o.unit, o.before, o.after, o.reason) for o in cutter.omissions] == [
        ("projection", "files", "items", 3, 2, "no room for more than 2 items"),
        ("projection", "title", "chars", 6, 4, "longer than 5 characters"),
    ]


def test_entries_that_lists_leave_out_are_published_and_their_streams_counted() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, publisher := MemoryPublisher())
    shown = ContentItem(stream=whole(b"shown", "content.0"))
    lost = ContentItem(stream=lossy(b"ab\n", 7, "content.1", "full"))
    assert cutter.items("content", (shown, lost), 1) == (shown,)
    assert cutter.items("names", ["a", "b\n", "c"], 1) == ["a"]
    assert cutter.items("all", ["a"], 1) == ["a"]
    assert cutter.hidden_list() == 0
    assert cutter.hidden_list() is None
    ((role, reference),) = cutter.published
    listed = publisher.published[reference.path].content
    assert role == "hidden"
    assert listed == (
        b'{"field":"content","n":1,"value":{"media_type":"text/plain","stream":{"digest":"'
        + digest_of(b"ab\n").encode()
        + b'","line_count":1,"loss_reason":"full","produced_line_count":2,"produced_size":10,'
        b'"role":"content.1","size":3}}}\n'
        b'{"field":"names","n":1,"value":"b\\n"}\n'
        b'{"field":"names","n":2,"value":"c"}\n'
    )
    assert [(o.stage, o.field, o.unit, o.before, o.after) for o in cutter.omissions] == [
        ("projection", "content", "items", 2, 1),
        ("capture", "content.1", "bytes", 10, 3),
        ("capture", "content.1", "lines", 2, 1),
        ("projection", "content", "bytes", 8, 5),
        ("projection", "names", "items", 3, 1),
    ]


def test_a_result_that_shows_every_entry_has_no_list() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    assert cutter.items("names", ["a", "b"], 2) == ["a", "b"]
    assert cutter.hidden_list() is None
    assert cutter.references is None


def test_an_entry_that_is_no_json_cannot_be_hidden() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    with pytest.raises(InvalidRecordError, match="not a JSON type"):
        cutter.items("names", [b"a"], 0)


def test_a_nested_result_has_its_own_artifacts_and_truncation() -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    first, second = cutter.beside(), cutter.beside()
    assert first.attach(whole(b"one", "1.out")) == 0
    assert second.stream(whole(b"two\n" * 100, "2.out"), 200).artifact == 0
    assert cutter.attach(whole(b"three", "3")) == 0
    assert (first.truncated, second.truncated, cutter.truncated) == (False, True, True)
    assert cutter.omissions == second.omissions
    assert first.references is not None
    assert [reference.path for reference in first.references] == [
        artifact_path(whole(b"one", "1.out"))
    ]
    assert [role for role, _ in cutter.published] == ["1.out", "2.out", "3"]


@given(
    st.binary(max_size=2000) | st.text(max_size=900).map(lambda t: (t * 5).encode()),
    st.integers(0, 400),
    st.integers(0, 3000),
)
def test_the_omissions_of_a_stream_account_for_every_byte_and_line(
    kept: bytes, lost: int, budget: int
) -> None:
    stream = lossy(kept, lost) if lost else whole(kept)
    shown, cutter, _ = cut(stream, budget)
    assert len(shown.text or "") <= budget
    unseen = sum(o.before - o.after for o in cutter.omissions if o.unit == "bytes")
    assert unseen == omitted(cutter.omissions, "stdout", "bytes")
    assert lost <= unseen <= stream.produced_size
    assert shown.truncated is cutter.truncated is bool(cutter.omissions)
    was_cut = any(o.stage == "projection" for o in cutter.omissions)
    assert (shown.artifact is not None) == was_cut
    assert (cutter.references is None) == (shown.artifact is None)
