"""The cutter of a projector: it shares room among previews, and counts what is left out.

Each cut records its omissions here. Each stream that is cut is published here and gets its index. A
projector that handles large values only through the cutter cannot forget either step.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple, Protocol, TypeVar

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records._text_cuts import shorten
from tooltrail.records.budgets import MIN_SHARE_CHARS, Budget, fair_shares
from tooltrail.records.envelope import ArtifactReference
from tooltrail.records.omissions import Omission, Stage, Unit
from tooltrail.records.previews import Encoding, loss_notice, needed_chars, preview
from tooltrail.records.streams import StreamRecord, iter_streams

ItemT = TypeVar("ItemT")


class ArtifactPublisher(Protocol):
    """Decides where the bytes of a stream will be stored."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        """The reference of a stream; its bytes MUST be published before a row refers to them.

        The reference MUST depend on the content alone.
        """
        ...


class Shown(NamedTuple):
    """The part of a stream that a result shows.

    Attributes:
        text: the preview; None if the stream is empty or absent.
        encoding: how the bytes were decoded to text; None for plain UTF-8.
        truncated: whether any stage so far left something out.
        artifact: index into the result's artifacts; None if the stream is not published.
    """

    text: str | None = None
    encoding: Encoding | None = None
    truncated: bool = False
    artifact: int | None = None

    def named(self, name: str) -> dict[str, object]:
        """The four fields of a result that describe the stream `name`."""
        return {
            f"{name}_preview": self.text,
            f"{name}_encoding": self.encoding,
            f"{name}_truncated": self.truncated,
            f"{name}_artifact": self.artifact,
        }


NOT_THERE = Shown()
"""Shown for a stream that the tool does not have."""


class Published(NamedTuple):
    """A stream that is published as an artifact."""

    role: str
    reference: ArtifactReference


class Cutter:
    """Cuts the parts of one result, publishes what is cut, and counts what is left out.

    Args:
        edge_bytes: bytes at either end of a stream that a preview reads; set by the policy.
        publisher: decides where the bytes of a stream will be stored.

    Attributes:
        published: streams published by this cutter and those `beside` it, in publishing order.
    """

    def __init__(self, edge_bytes: int, publisher: ArtifactPublisher) -> None:
        self._edge_bytes = edge_bytes
        self._publisher = publisher
        self._references: list[ArtifactReference] = []
        self._parts: list[Omission | Cutter] = []
        self._hidden: list[bytes] = []
        self.published: list[Published] = []

    def beside(self) -> "Cutter":
        """A cutter for a nested result, with its own list of artifacts and `truncated` flag."""
        nested = Cutter(self._edge_bytes, self._publisher)
        nested.published = self.published
        self._parts.append(nested)
        return nested

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """The omissions so far, here and in nested results, in order."""
        parts = (p.omissions if isinstance(p, Cutter) else (p,) for p in self._parts)
        return tuple(chain.from_iterable(parts))

    @property
    def truncated(self) -> bool:
        """Whether anything was left out so far."""
        return bool(self.omissions)

    @property
    def references(self) -> tuple[ArtifactReference, ...] | None:
        """The artifacts of this result; None if there are none."""
        return tuple(self._references) or None

    def attach(self, stream: StreamRecord) -> int:
        """Publish a stream, whatever its length, and return its index in `references`."""
        reference = self._publisher.publish(stream)
        self._references.append(reference)
        self.published.append(Published(stream.role, reference))
        return len(self._references) - 1

    def need(self, stream: StreamRecord | None) -> int:
        """The characters that a preview of a stream needs to show all it can."""
        if stream is None:
            return 0
        return needed_chars(stream, self._edge_bytes) + len(loss_notice(stream))

    def shares(self, streams: Sequence[StreamRecord | None], room: int) -> list[int]:
        """The characters of each of several streams; unneeded room goes to the other streams."""
        return fair_shares([*map(self.need, streams)], room)

    def fitting(
        self,
        entries: Iterable[Iterable[StreamRecord | None]],
        budget: Budget,
        *,
        beside: StreamRecord | None = None,
    ) -> int:
        """How many entries of a list fit if each of their streams shows some of its text.

        A stream gets what it needs, or `MIN_SHARE_CHARS` if it needs more. At most
        `budget.max_items`; at least 1 if there are entries. The smallest budget has room for two
        streams: an entry that is shown alone and has more streams may show only markers.

        Args:
            entries: the streams of each entry.
            budget: the budget that the entries share, divided as by `shares`.
            beside: another stream that shares the budget.
        """
        room, count = budget.preview_chars - min(self.need(beside), MIN_SHARE_CHARS), 0
        for count, streams in enumerate(islice(entries, budget.max_items), 1):
            room -= sum(min(self.need(stream), MIN_SHARE_CHARS) for stream in streams)
            if room < 0:
                return max(1, count - 1)
        return count

    def stream(self, stream: StreamRecord | None, room: int) -> Shown:
        """Preview a stream in `room` characters; publish it if something is left out.

        If the capture itself lost bytes, the preview ends with a line that says so.
        """
        if stream is None:
            return NOT_THERE
        edge_bytes = self._edge_bytes
        notice = loss_notice(stream)[: max(room, 0)]
        room -= len(notice)
        shown = preview(stream, room, edge_bytes=edge_bytes)
        index = None
        if shown.truncated:
            index = self.attach(stream)
            path = self._references[index].path
            shown = preview(stream, room, edge_bytes=edge_bytes, full_output=path)
        reason = "binary output is not shown" if shown.encoding == "binary" else "preview budget"
        self._count_stream(stream, shown.omitted_bytes, shown.omitted_lines, reason)
        if notice and (not shown.text or shown.text.endswith("\n")):
            notice = notice.removeprefix("\n")
        return Shown(
            text=shown.text + notice or None,
            encoding=None if shown.encoding == "utf-8" else shown.encoding,
            truncated=shown.truncated or stream.loss_reason is not None,
            artifact=index,
        )

    def streams(self, streams: Sequence[StreamRecord | None], room: int) -> list[Shown]:
        """Preview several streams that share room; see `shares`."""
        return [*map(self.stream, streams, self.shares(streams, room))]

    def unseen(self, stream: StreamRecord | None, reason: str) -> Shown:
        """Publish a stream without showing any of it; an empty stream is not published."""
        if stream is None:
            return NOT_THERE
        index = self.attach(stream) if stream.size else None
        self._count_stream(stream, stream.size, stream.line_count, reason)
        return Shown(truncated=stream.produced_size > 0, artifact=index)

    def text(self, field: str, text: str, limit: int) -> str:
        """Shorten a text to `limit` characters, with an ellipsis if it was cut."""
        if len(text) <= limit:
            return text
        cut = shorten(text, limit)
        after = max(0, len(cut) - 1)
        self.count(field, "chars", len(text), after, f"longer than {limit} characters")
        return cut

    def items(self, field: str, items: Sequence[ItemT], limit: int) -> Sequence[ItemT]:
        """The first `limit` entries of a list; `hidden_list` publishes the others.

        The bytes of the hidden entries' streams are counted as left out of the list.

        Args:
            field: the name of the list.
            items: all entries.
            limit: how many entries are shown.

        Raises:
            InvalidRecordError: an entry to hide is neither a record nor made of JSON types.
        """
        shown, hidden = items[:limit], items[limit:]
        if not hidden:
            return items
        reason = f"no room for more than {limit} {'item' if limit == 1 else 'items'}"
        self.count(field, "items", len(items), len(shown), reason)
        size = 0
        for n, entry in enumerate(hidden, len(shown)):
            for stream in iter_streams(entry):
                self.count_losses(stream)
                size += stream.size
            value = entry.model_dump() if isinstance(entry, Record) else entry
            self._hidden.append(canonical_json.encode({"field": field, "n": n, "value": value}))
        seen = sum(stream.size for stream in iter_streams(tuple(shown)))
        # One count for all hidden entries, since there may be a million.
        self.count(field, "bytes", seen + size, seen, reason)
        return shown

    def hidden_list(self) -> int | None:
        """Publish the entries that `items` left out, in one artifact, and return its index.

        The stream with the role `hidden` has a line for each entry, a JSON object `{field, n,
        value}`: the name of the list, the position in it from 0, and the entry as in the complete
        output, which gives a stream by its digest and counts. None if nothing was left out.
        """
        if not self._hidden:
            return None
        lines, self._hidden = self._hidden, []
        return self.attach(StreamRecord.from_bytes("hidden", b"\n".join(lines) + b"\n"))

    def count(
        self,
        field: str,
        unit: Unit,
        before: int,
        after: int,
        reason: str,
        *,
        stage: Stage = "projection",
    ) -> None:
        """Record an omission of a projector or another stage, if `after` is less than `before`."""
        if after < before:
            self._parts.append(
                Omission(
                    stage=stage, field=field, unit=unit, before=before, after=after, reason=reason
                )
            )

    def count_losses(self, stream: StreamRecord) -> None:
        """Record what the capture of a stream could not keep."""
        role, reason = stream.role, stream.loss_reason
        if reason is not None:
            size, lines = stream.produced_size, stream.produced_line_count
            self.count(role, "bytes", size, stream.size, reason, stage="capture")
            self.count(role, "lines", lines, stream.line_count, reason, stage="capture")

    def _count_stream(self, stream: StreamRecord, size: int, lines: int, reason: str) -> None:
        self.count_losses(stream)
        self.count(stream.role, "bytes", stream.size, stream.size - size, reason)
        self.count(stream.role, "lines", stream.line_count, stream.line_count - lines, reason)
