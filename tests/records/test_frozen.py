"""A frozen value takes its members once, and equals what has the same ones."""

import copy
import pickle
from functools import cached_property
from typing import ClassVar

import pytest

from tooltrail.records.frozen import Frozen


class Point(Frozen):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0

    @cached_property
    def total(self) -> int:
        return self.x + self.y


class Other(Frozen):
    x: int
    y: int = 0


def test_members_come_in_their_order_or_by_name() -> None:
    assert Point(1) == Point(x=1, y=0) == Point(1, y=0)
    assert (Point(1).y, Point(1).kind) == (0, "point")


def test_what_is_missing_unknown_or_too_much_is_refused() -> None:
    for values, members in [((), {}), ((1,), {"z": 2}), ((1,), {"x": 2}), ((1, 2, 3), {})]:
        with pytest.raises(TypeError, match="Point"):
            Point(*values, **members)


def test_nothing_can_be_changed() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        delattr(point, "x")
    assert point.replaced(y=5) == Point(1, 5)
    assert point == Point(1)


def test_a_copy_computes_its_cached_values_anew() -> None:
    point = Point(1, 2)
    assert (point.total, point.replaced(y=5).total) == (3, 6)


def test_equality_is_by_class_and_member() -> None:
    assert Point(1) != Other(1)
    assert Point(1) != Point(2)
    assert Point(1) != 1
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_a_value_is_shown_and_copied() -> None:
    assert repr(Point(1)) == "Point(x=1, y=0)"
    assert copy.copy(Point(3)) == Point(3)
    assert Point(3).__replace__(y=4) == Point(3, 4)
    assert pickle.loads(pickle.dumps(Point(3, 4))) == Point(3, 4)


class Pair(Frozen):
    name: str
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError(self.name)


def test_values_within_a_value_become_dicts_too() -> None:
    pair = Pair("p", (Point(1), Point(2, 3)))
    assert pair.as_dict() == {"name": "p", "points": ({"x": 1, "y": 0}, {"x": 2, "y": 3})}
    assert pair.replaced(name="q").points == pair.points


def test_a_condition_is_checked_for_each_way_to_make_a_value() -> None:
    with pytest.raises(ValueError, match="p"):
        Pair("p", ())
    with pytest.raises(ValueError, match="p"):
        Pair(name="p", points=())


def test_a_pattern_takes_members_by_position() -> None:
    match Point(1, 2):
        case Point(x, 3):
            found = x + 3
        case Point(x, y):
            found = x + y
    assert found == 3
