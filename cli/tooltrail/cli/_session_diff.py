"""What differs between two sessions, for `tooltrail diff`: their calls, aligned.

Of a call, only its id and digests are kept. What is printed is read again, some calls at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from tooltrail.cli._call_diff import on_one_line, values_of
from tooltrail.cli._line_diff import matching_blocks
from tooltrail.cli._output import print_array, write
from tooltrail.cli._tables import GREEN, RED, YELLOW, coloured
from tooltrail.store import InvocationDetail, InvocationFilter, InvocationView, Reader, SessionView
from tooltrail.store.read.comparing import calls_of

_AT_ONCE = 500
_DIGEST_BYTES = 8
_IDENTITY = ("tool", "arguments")
_MARKS = {"changed": ("~", YELLOW), "only before": ("-", RED), "only after": ("+", GREEN)}


class _Outline(NamedTuple):
    """A call in a few bytes: its id, and digests of its members in the order of their names."""

    id: bytes
    names: tuple[str, ...]
    digests: bytes

    @classmethod
    def of(
        cls, call: InvocationDetail, known: dict[tuple[str, ...], tuple[str, ...]]
    ) -> "_Outline":
        values = dict(values_of(call))
        if call.damage is not None:
            values["arguments"] = call.damage  # names the call, so that it equals no other one
        names = tuple(values)
        digests = b"".join(map(_digest, values.values()))
        return cls(call.summary.id.bytes, known.setdefault(names, names), digests)

    @property
    def identity(self) -> bytes:
        """The digests of the tool and the arguments, with which the values begin."""
        return self.digests[: len(_IDENTITY) * _DIGEST_BYTES]

    def members(self) -> Mapping[str, bytes]:
        """The digest of each member."""
        size = _DIGEST_BYTES
        return {name: self.digests[n * size : (n + 1) * size] for n, name in enumerate(self.names)}


class Aligned(NamedTuple):
    """A call of both sessions, or of one of them.

    The result is `same`, `changed`, `only before` or `only after`; `changed` names the members.
    """

    result: str
    before: InvocationView | None
    after: InvocationView | None
    changed: Sequence[str] = ()


def print_session_diff(
    reader: Reader, before: SessionView, after: SessionView, *, brief: bool, as_json: bool
) -> bool:
    """Print the aligned calls of two sessions; return whether they differ."""
    counts = Counter[str]()
    aligned = _counting(_aligned(reader, before, after, with_same=as_json), counts)
    if as_json:
        print_array(map(_record, aligned))
    else:
        for one in aligned:
            if not brief and one.result != "same":
                write(_line(one))
        found = ", ".join(f"{counts[one]:,} {one}" for one in ("same", *_MARKS) if counts[one])
        write(f"{'calls' if counts.keys() - {'same'} else 'identical'}: {found or 'none'}\n")
    return bool(counts.keys() - {"same"})


def _counting(aligned: Iterator[Aligned], counts: Counter[str]) -> Iterator[Aligned]:
    for one in aligned:
        counts[one.result] += 1
        yield one


def _aligned(
    reader: Reader, before: SessionView, after: SessionView, *, with_same: bool
) -> Iterator[Aligned]:
    """The calls of both sessions, aligned. Without `with_same`, equal calls have no views."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    sides = [[_Outline.of(one, known) for one in calls_of(reader, s.id)] for s in (before, after)]
    every = ((_result(*pair), pair) for pair in _pairs(*sides))
    while some := list(islice(every, _AT_ONCE)):
        read = [pair for (result, _), pair in some if with_same or result != "same"]
        ids = {UUID(bytes=one.id) for pair in read for one in pair if one is not None}
        found = reader.invocations(InvocationFilter(invocations=tuple(ids))).items if ids else ()
        views = {view.id.bytes: view for view in found}
        for (result, changed), pair in some:
            first, second = (None if one is None else views.get(one.id) for one in pair)
            yield Aligned(result, first, second, changed)


def _pairs(
    before: Sequence[_Outline], after: Sequence[_Outline]
) -> Iterator[tuple[_Outline | None, _Outline | None]]:
    i = j = 0
    identities = ([one.identity for one in side] for side in (before, after))
    blocks = matching_blocks(*identities, is_end=True)
    for to_i, to_j, size in [*blocks, (len(before), len(after), 0)]:
        yield from ((one, None) for one in before[i:to_i])
        yield from ((None, one) for one in after[j:to_j])
        i, j = to_i + size, to_j + size
        yield from zip(before[to_i:i], after[to_j:j], strict=True)


def _result(before: _Outline | None, after: _Outline | None) -> tuple[str, Sequence[str]]:
    if before is None or after is None:
        return ("only after" if before is None else "only before"), ()
    first, second = before.members(), after.members()
    names = dict.fromkeys([*first, *second])
    changed = [name for name in names if first.get(name) != second.get(name)]
    return ("changed" if changed else "same"), changed


def _digest(value: object) -> bytes:
    data = repr(value).encode("utf-8", "backslashreplace")
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _line(one: Aligned) -> str:
    mark, colour = _MARKS[one.result]
    numbers = " ".join(f"{'' if s is None else f'#{s.seq}':>6}" for s in (one.before, one.after))
    views = [side for side in (one.before, one.after) if side is not None]
    outcomes = " → ".join(dict.fromkeys(side.outcome for side in views))
    about = f"  [{', '.join(one.changed)}]" if one.changed else ""
    call = "".join(f"{side.tool_name}  {side.arguments_preview}" for side in views[:1])
    text = on_one_line(f"{mark} {numbers}  {outcomes:<10}{about}  {call}")
    return f"{coloured(text, colour)}\n"


def _record(one: Aligned) -> Mapping[str, Any]:
    names = ("id", "seq", "tool_name", "outcome", "arguments_preview")
    sides = {
        side: view and {name: getattr(view, name) for name in names}
        for side, view in (("before", one.before), ("after", one.after))
    }
    return {"result": one.result, "changed": one.changed, **sides}
