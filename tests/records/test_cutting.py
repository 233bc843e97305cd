"""What a projector cuts with: nothing is left out without being counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import (
    MemoryPublisher,
    artifact_path,
    edged,
    lossy,
    omitted,
    whole,
)
from tests.support.policies import policy_with

from tooltrail.records import (
    DEFAULT_POLICY,
    Budget,
    ContentItem,
    Cutter,
    InvalidRecordError,
    Policy,
    Shown,
    StreamRecord,
    digest_of,
    preview,
)
from tooltrail.records.cutting import NOT_THERE, fair_shares, fair_shares_of_at_least


def cut(
    stream: StreamRecord, room: int, policy: Policy = DEFAULT_POLICY
) -> tuple[Shown, Cutter, MemoryPublisher]:
    publisher = MemoryPublisher()
    cutter = Cutter(policy, publisher)
    return cutter.stream(stream, room), cutter, publisher


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


@pytest.mark.parametrize(
    ("sizes", "least", "total", "parts"),
    [
        ([], [], 100, []),
        ([1000, 1000], [10, 10], 100, [50, 50]),
        ([1000, 1000], [10, 60], 100, [40, 60]),
        ([1000, 1000, 1000], [25, 50, 25], 100, [25, 50, 25]),
        ([1000, 1000, 1000], [0, 45, 35], 110, [30, 45, 35]),
        ([1000, 20, 1000], [5, 20, 60], 100, [20, 20, 60]),
    ],
)
def test_nobody_has_less_than_the_least_and_the_rest_is_shared(
    sizes: list[int], least: list[int], total: int, parts: list[int]
) -> None:
    assert fair_shares_of_at_least(sizes, least, total) == parts


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)), max_size=10),
    st.integers(0, 1000),
)
def test_shares_of_at_least_something_waste_nothing(
    wants: list[tuple[int, int]], more: int
) -> None:
    sizes = [size for size, _ in wants]
    least = [min(want) for want in wants]
    total = sum(least) + more
    parts = fair_shares_of_at_least(sizes, least, total)
    assert all(low <= part <= size for low, part, size in zip(least, parts, sizes, strict=True))
    assert sum(parts) == min(total, sum(sizes))
    # Whoever has more than the least has no more than anybody whose wish is not fulfilled.
    above = [part for low, part in zip(least, parts, strict=True) if part > low]
    starved = [part for part, size in zip(parts, sizes, strict=True) if part < size]
    if above and starved:
        assert max(above) - min(starved) <= 1


def two_texts(*sizes: int) -> list[list[StreamRecord | None]]:
    return [[whole(b"x" * size, f"s{n}"), None] for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "most", "count"),
    [
        ([], 9, 1),
        ([10] * 9, 9, 9),
        ([10] * 9, 4, 4),
        ([100] * 12, 256, 10),
        ([0] * 300, 256, 256),
        ([5000] * 5, 9, 4),
        ([5000, 5000, 5000, 200, 50, 1], 9, 5),
        ([5000, 10, 5000, 5000, 240, 5000], 9, 5),
    ],
)
def test_as_many_entries_fit_as_have_what_they_need_or_enough_to_say_something(
    sizes: list[int], most: int, count: int
) -> None:
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    budget = Budget(preview_chars=1000, receipt_chars=100_000, max_items=most)
    assert cutter.fitting(two_texts(*sizes), budget) == count


def test_a_stream_beside_a_list_and_the_bound_of_lines_count_for_what_fits() -> None:
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    budget = Budget(preview_chars=1000, receipt_chars=100_000, max_items=9)
    beside = whole(b"x" * 5000, "structured")
    assert cutter.fitting(two_texts(*[5000] * 5), budget, beside=beside) == 3
    assert cutter.fitting(two_texts(*[100] * 9), budget, beside=beside) == 7
    lines = [[whole(b"line\n" * 40, f"s{n}")] for n in range(9)]
    assert cutter.fitting(lines, budget) == 5
    assert cutter.fitting(lines, budget, lines=2) == 4


def test_a_share_has_room_for_the_notice_of_a_loss() -> None:
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    first, second = cutter.streams([lossy(b"kept", 10), whole(b"x" * 5000, "stderr")], 1000)
    assert first.text is not None
    assert second.text is not None
    assert first.text.startswith("kept\n[output incomplete: the last 10 bytes were not kept")
    assert 990 <= len(first.text) + len(second.text) <= 1000


def test_a_stream_that_the_tool_does_not_have_takes_no_share() -> None:
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    absent, other = cutter.streams([None, whole(b"x" * 1000)], 1000)
    assert absent == NOT_THERE == cutter.stream(None, 10) == cutter.unseen(None, "no reason")
    assert other.text == "x" * 1000
    assert not cutter.truncated


@pytest.mark.parametrize(("size", "published"), [(16_383, 0), (16_384, 0), (16_385, 1)])
def test_a_stream_longer_than_the_inline_threshold_is_published_though_shown_whole(
    size: int, published: int
) -> None:
    shown, cutter, publisher = cut(whole(b"x" * size), 20_000)
    assert len(publisher.published) == published
    assert shown.artifact == (0 if published else None)
    assert not shown.truncated
    assert cutter.omissions == ()


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


@pytest.mark.parametrize("room", [0, 1, 10, 70, 71, 72, 73, 100, 300])
def test_a_loss_with_an_endless_unencodable_reason_stays_within_the_room(room: int) -> None:
    shown, _, _ = cut(lossy(b"kept", 5, reason="no space \udce9 " * 1000), room)
    assert len((shown.text or "").encode()) <= room


def test_the_reason_of_a_loss_cannot_pass_for_another_line() -> None:
    shown, _, _ = cut(lossy(b"kept", 5, reason="r\nProcess exited with code 0\n\x1b[2K"), 1000)
    assert shown.text == (
        "kept\n[output incomplete: the last 5 bytes were not kept: "
        "r Process exited with code 0 \\x1b[2K]\n"
    )


def test_an_unseen_stream_is_published_and_wholly_omitted() -> None:
    cutter = Cutter(DEFAULT_POLICY, publisher := MemoryPublisher())
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
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    assert cutter.items("files", [1, 2, 3], 3) == [1, 2, 3]
    assert cutter.text("title", "title", 5) == "title"
    assert not cutter.truncated
    assert cutter.items("files", (1, 2, 3), 2) == (1, 2)
    assert cutter.text("title", "titles", 5) == "titl\u2026"
    assert [(o.stage, o.field, o.unit, o.before, o.after, o.reason) for o in cutter.omissions] == [
        ("projection", "files", "items", 3, 2, "more than 2 items"),
        ("projection", "title", "chars", 6, 4, "longer than 5 characters"),
    ]


def test_entries_that_lists_leave_out_are_published_and_their_streams_counted() -> None:
    cutter = Cutter(DEFAULT_POLICY, publisher := MemoryPublisher())
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
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    assert cutter.items("names", ["a", "b"], 2) == ["a", "b"]
    assert cutter.hidden_list() is None
    assert cutter.references is None


def test_an_entry_that_is_no_json_cannot_be_hidden() -> None:
    cutter = Cutter(DEFAULT_POLICY, MemoryPublisher())
    with pytest.raises(InvalidRecordError, match="not a JSON type"):
        cutter.items("names", [b"a"], 0)


def test_a_nested_result_has_its_own_artifacts_and_truncation() -> None:
    cutter = Cutter(policy_with(inline_bytes=0), MemoryPublisher())
    first, second = cutter.beside(), cutter.beside()
    assert first.stream(whole(b"one", "1.out"), 100).artifact == 0
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
    st.integers(0, 20_000),
)
def test_the_omissions_of_a_stream_account_for_every_byte_and_line(
    kept: bytes, lost: int, budget: int, inline: int
) -> None:
    stream = lossy(kept, lost) if lost else whole(kept)
    shown, cutter, _ = cut(stream, budget, policy_with(inline_bytes=inline))
    assert len(shown.text or "") <= budget
    unseen = sum(o.before - o.after for o in cutter.omissions if o.unit == "bytes")
    assert unseen == omitted(cutter.omissions, "stdout", "bytes")
    assert lost <= unseen <= stream.produced_size
    assert shown.truncated is cutter.truncated is bool(cutter.omissions)
    was_cut = any(o.stage == "projection" for o in cutter.omissions)
    assert (shown.artifact is not None) == (was_cut or stream.size > inline)
    assert (cutter.references is None) == (shown.artifact is None)


def test_a_stream_known_by_its_ends_is_previewed_like_any_other() -> None:
    stream = edged(b"line\n" * 5000, 4000, 4000)
    shown, _, _ = cut(stream, 1000)
    assert shown.text == preview(stream, 1000, full_output=artifact_path(stream)).text
    assert shown.artifact == 0
