"""How one room is shared by several previews, and for how many entries of a list there is room."""

from collections.abc import Iterable, Sequence
from itertools import islice

from tooltrail.records.budgets import MIN_SHARE_CHARS, Budget
from tooltrail.records.previews import loss_notice, needed_chars
from tooltrail.records.streams import StreamRecord


class Sharing:
    """Shares characters among streams by what each of them needs.

    Args:
        edge_bytes: bytes of either end of a stream that are looked at; the policy's.
    """

    def __init__(self, edge_bytes: int) -> None:
        self._edge_bytes = edge_bytes

    def need(self, stream: StreamRecord | None, lines: int | None = None) -> int:
        """The characters with which `stream` shows all that it can of one, in so many lines."""
        if stream is None:
            return 0
        notice = loss_notice(stream)
        lines = lines_beside(notice, lines)
        return needed_chars(stream, self._edge_bytes, lines) + len(notice)

    def shares(
        self, streams: Sequence[StreamRecord | None], room: int, lines: int | None = None
    ) -> list[int]:
        """The characters of each stream; what one does not need goes to the others."""
        return fair_shares([self.need(stream, lines) for stream in streams], room)

    def least(self, streams: Iterable[StreamRecord | None], lines: int | None = None) -> int:
        """The fewest characters with which each of the streams shows some of its text.

        A stream takes what it needs, or `MIN_SHARE_CHARS` when it needs more.
        """
        return sum(min(self.need(stream, lines), MIN_SHARE_CHARS) for stream in streams)

    def fitting(
        self,
        entries: Iterable[Iterable[StreamRecord | None]],
        budget: Budget,
        *,
        beside: StreamRecord | None = None,
        lines: int | None = None,
    ) -> int:
        """How many entries of a list can be shown so that each of their streams has its least.

        At most `budget.max_items`; at least 1 if there is any. In the smallest room, two streams
        have their least: an entry that is shown alone and has more of them may show markers only.

        Args:
            entries: the streams of each entry.
            budget: what they share; `shares` divides it as it is assumed here.
            beside: a stream that has a share, too.
            lines: the bound of lines of each entry's stream.
        """
        room, count = budget.preview_chars - self.least([beside]), 0
        for count, streams in enumerate(islice(entries, budget.max_items), 1):
            room -= self.least(streams, lines)
            if room < 0:
                return max(1, count - 1)
        return count


def lines_beside(notice: str, lines: int | None) -> int | None:
    """The lines that are left to a text beside the notice of a loss, if there is one."""
    return lines - 1 if notice and lines is not None else lines


def fair_shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide `total` so that nobody gets more than needed and the rest is shared equally."""
    shares = [0] * len(sizes)
    for done, n in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[n] = min(sizes[n], total // (len(sizes) - done))
        total -= shares[n]
    return shares


def fair_shares_of_at_least(sizes: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Divide as `fair_shares` does, with nobody getting less than `least`.

    All of `least` together are at most `total`, and none is more than its size.
    """
    shares = fair_shares(sizes, total)
    held: dict[int, int] = {}
    while short := {n: least[n] for n, share in enumerate(shares) if share < least[n]}:
        held |= short
        sizes = [0 if n in held else size for n, size in enumerate(sizes)]
        shares = fair_shares(sizes, total - sum(held.values()))
        shares = [held.get(n, share) for n, share in enumerate(shares)]
    return shares
