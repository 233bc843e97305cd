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
    assert pickle.loads(pickle.dumps(Point(3, 4))) == Point(3, 4)
