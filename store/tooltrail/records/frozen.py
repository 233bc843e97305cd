"""Immutable values whose classes take little time to define.

A dataclass generates and compiles code when its class is defined. Sixteen of them took an eighth of
the processor time of `tooltrail log`. So the immutable values that commands for reading use are
`Frozen`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NoReturn, Self, cast, dataclass_transform, get_origin

_SHARED: object = ClassVar


@dataclass_transform(frozen_default=True)
class Frozen:
    """The base class of values: annotated members are set once, and equality is by member.

    >>> class Point(Frozen):
    ...     x: int
    ...     y: int = 0
    >>> Point(1) == Point(x=1, y=0)
    True
    """

    member_types: ClassVar[Mapping[str, object]] = {}
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Collect the members of a new class."""
        super().__init_subclass__()
        own: dict[str, object] = cls.__annotations__
        members = {name: kind for name, kind in own.items() if get_origin(kind) is not _SHARED}
        cls.member_types = {**cls.member_types, **members}
        cls.__match_args__ = tuple(cls.member_types)  # type: ignore[misc]  # mypy takes it as Final
        cls._required = frozenset(name for name in cls.member_types if not hasattr(cls, name))

    def __init__(self, *values: Any, **members: Any) -> None:
        """Set the members, given in order or by name. Members with a default may be left out.

        Raises:
            TypeError: a member is missing, unknown, or given twice.
        """
        if not members and len(values) == len(self.member_types):
            self.__dict__.update(zip(self.member_types, values, strict=True))  # the quick way
            self.__post_init__()
            return
        count = len(values) + len(members)
        if values:
            members.update(zip(self.member_types, values, strict=False))
        given = members.keys()
        known = self.member_types.keys()
        if not (given >= self._required and given <= known and len(given) == count):
            wrong = sorted((self._required - given) | (given - known)) or [
                "too many, or given twice"
            ]
            raise TypeError(f"{type(self).__name__} has wrong members: {', '.join(wrong)}")
        self.__dict__.update(members)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the members. A class with conditions overrides it."""

    def as_dict(self) -> dict[str, Any]:
        """The members by name, in order.

        A `Frozen` value among them, also in a tuple, becomes a dict, too. Lists, mappings and other
        objects stay as they are.
        """
        return {name: _as_plain(value) for name, value in self._members()}

    def replaced(self, **members: Any) -> Self:
        """A copy with some members replaced."""
        return type(self)(**{**dict(self._members()), **members})

    __replace__ = replaced  # for `copy.replace`, since Python 3.13

    def _members(self) -> Iterator[tuple[str, Any]]:
        return zip(self.member_types, self._values(), strict=True)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.member_types])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frozen) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in self._members())
        return f"{type(self).__name__}({members})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")


def _as_plain(value: object) -> object:
    if isinstance(value, Frozen):
        return value.as_dict()
    if type(value) is tuple:
        return tuple(map(_as_plain, cast("tuple[object, ...]", value)))
    return value
