"""How a room is shared by previews, and for how many entries of a list there is room."""

from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import MARKER, MemoryPublisher, lossy, whole
from tests.support.cases import each_case

from tooltrail.records import DEFAULT_POLICY, ArtifactReference, Budget, Cutter, StreamRecord
from tooltrail.records.budgets import fair_shares

CUTTER = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
SMALL = Budget(preview_chars=1000, receipt_chars=100_000, max_items=9)


@given(st.lists(st.integers(0, 500), max_size=10), st.integers(0, 1000))
def test_shares_are_fair_and_waste_nothing(sizes: list[int], total: int) -> None:
    parts = fair_shares(sizes, total)
    assert all(0 <= part <= size for part, size in zip(parts, sizes, strict=True))
    assert sum(parts) == min(total, sum(sizes))
    starved = [part for part, size in zip(parts, sizes, strict=True) if part < size]
    if starved:
        assert max(parts) - min(starved) <= 1
        assert max(starved) - min(starved) <= 1


def texts(*sizes: int) -> list[list[StreamRecord | None]]:
    """An entry for each size, with one stream that is there."""
    return [[whole(b"x" * size, f"s{n}"), None] for n, size in enumerate(sizes)]


@each_case(
    ("sizes", "most", "count"),
    [
        ([], 9, 0),
        ([10] * 9, 9, 9),
        ([10] * 9, 4, 4),
        ([100] * 12, 256, 10),
        ([0] * 300, 256, 256),
        ([5000] * 5, 9, 2),
        ([5000, 200, 50, 5000, 1], 9, 3),
        ([5000, 10, 490, 0, 1], 9, 4),
        ([499, 5000, 1, 1], 9, 3),
    ],
)
def test_as_many_entries_fit_as_have_what_they_need_or_enough_to_say_something(
    sizes: list[int], most: int, count: int
) -> None:
    budget = SMALL.model_copy(update={"max_items": most})
    assert CUTTER.fitting(texts(*sizes), budget) == count


def test_a_stream_beside_a_list_has_its_share() -> None:
    beside = whole(b"x" * 5000, "structured")
    assert CUTTER.fitting(texts(5000, 5000), SMALL, beside=beside) == 1
    assert CUTTER.fitting(texts(5000), SMALL, beside=beside) == 1
    assert CUTTER.fitting(texts(*[100] * 9), SMALL, beside=beside) == 5


def test_an_entry_of_many_streams_is_shown_alone() -> None:
    entry = [whole(b"x" * 5000, f"s{n}") for n in range(3)]
    assert CUTTER.fitting([entry, entry], SMALL) == 1


def test_a_need_is_that_of_the_text_and_of_the_notice() -> None:
    stream = lossy(b"kept\n" * 3, 1000)
    notice = "\n[output incomplete: the last 1,000 bytes were not kept: the spool is full]\n"
    assert CUTTER.need(stream) == 15 + len(notice)
    assert CUTTER.need(None) == 0


class FarPublisher(MemoryPublisher):
    """Has paths of 200 characters."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        path = super().publish(stream).path
        return ArtifactReference(path=path.rjust(200, "p"))


def any_stream(size: int, char: str, lost: int, reason: str) -> StreamRecord:
    kept = ("kept " + char * size).encode()
    return lossy(kept, lost, reason=reason) if lost else whole(kept)


any_streams = st.builds(
    any_stream,
    st.integers(0, 700) | st.sampled_from([5_200, 300_000]),
    st.sampled_from(["x", "x\n", "\u6f22"]),
    st.sampled_from([0, 9, 10**9]),
    st.sampled_from(["", "the spool is full", "r" * 200, "no space \udce9 " * 1000]),
)


@given(st.lists(st.lists(any_streams, max_size=2), max_size=12), st.integers(1000, 3000))
def test_each_stream_that_is_shown_has_text_and_says_what_is_missing_and_where_it_is(
    entries: list[list[StreamRecord]], room: int
) -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, publisher := FarPublisher())
    budget = Budget(preview_chars=room, receipt_chars=100_000, max_items=9)
    count = cutter.fitting(entries, budget)
    assert min(len(entries), 9, room // 1000) <= count <= min(len(entries), 9)
    streams = [stream for entry in entries[:count] for stream in entry]
    shown = [one.text or "" for one in cutter.streams(streams, room)]
    assert sum(map(len, shown)) <= room
    for stream, text in zip(streams, shown, strict=True):
        assert text.startswith("kept ")
        cut = MARKER.search(text)
        assert cut is None or cut["path"] == publisher.publish(stream).path
        assert cut is not None or stream.head.decode() in text
        lost = stream.produced_size - stream.size
        told = f"\n[output incomplete: the last {lost:,} bytes were not kept"
        assert lost == 0 or (told in text and text.endswith("]\n"))
