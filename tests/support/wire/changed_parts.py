"""Payloads with one part changed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast


def each_changed(value: object, change: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """The value with each of its parts in turn replaced by each of what `change` makes of it."""
    yield from change(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for name, inner in members.items():
            for other in each_changed(inner, change):
                yield {**members, name: other}
    elif isinstance(value, list):
        items = cast("Sequence[Any]", value)
        for number, inner in enumerate(items):
            for other in each_changed(inner, change):
                yield [*items[:number], other, *items[number + 1 :]]
