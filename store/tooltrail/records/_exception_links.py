"""All exceptions that can be reached from one, as Python keeps them.

Nothing that a class defines is run here: what is asked of an exception while it is walked could
make the walk longer, without an end. No walk recurses, so that no depth matters.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import cast


@dataclass(eq=False, slots=True)
class Reached:
    """One exception and what it is linked with.

    Attributes:
        error: the exception.
        cause: the one that Python would print before it.
        members: of a group, in their order.
        places: its traceback, the outermost call first, as far as nobody before it has the same.
        joins: the traceback at which it goes on as that of another one, and that other one.
        times: how often others are linked with it.
        is_member: whether a group holds it.
    """

    error: BaseException
    cause: "Reached | None" = None
    members: "list[Reached]" = field(default_factory=list["Reached"])
    places: list[TracebackType] = field(default_factory=list[TracebackType])
    joins: "tuple[TracebackType, Reached] | None" = None
    times: int = 0
    is_member: bool = False


def reach(error: BaseException) -> list[Reached]:
    """The exception, its causes, its members, theirs and so on: each once, the nearest first."""
    every = [Reached(error)]
    known = {id(error): every[0]}
    owners: dict[TracebackType, Reached] = {}

    def link(other: BaseException) -> Reached:
        if id(other) not in known:
            known[id(other)] = Reached(other)
            every.append(known[id(other)])
        known[id(other)].times += 1
        return known[id(other)]

    for one in every:  # it grows as it is walked
        cause = _cause_of(one.error)
        one.cause = None if cause is None else link(cause)
        one.members = [link(member) for member in _members_of(one.error)]
        for member in one.members:
            member.is_member = True
        _take_places(one, owners)
    return every


def iter_leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group, of its groups and so on; else the exception itself."""
    waiting = [error]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        members = _members_of(part)
        if not members:
            yield part
        waiting += reversed(members)


def _cause_of(error: BaseException) -> BaseException | None:
    """The exception that Python would print before this one."""
    cause = _kept(error, "__cause__")
    if cause is None and not _kept(error, "__suppress_context__"):
        cause = _kept(error, "__context__")
    return cast("BaseException | None", cause)


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    """The members of a group, which has one at least."""
    if not issubclass(type(error), BaseExceptionGroup):
        return ()
    return cast("tuple[BaseException, ...]", _kept(error, "exceptions", BaseExceptionGroup))


def _take_places(one: Reached, owners: dict[TracebackType, Reached]) -> None:
    """Take the traceback up to where it is that of another exception, which has it already."""
    place = cast("TracebackType | None", _kept(one.error, "__traceback__"))
    while place is not None:
        if place in owners:
            one.joins = place, owners[place]
            return
        owners[place] = one
        one.places.append(place)
        place = place.tb_next


def _kept(error: BaseException, name: str, kind: type[BaseException] = BaseException) -> object:
    """What Python keeps under this name. A class may define another attribute of the same name,
    which gives a new value at each question or none.
    """
    return cast("object", vars(kind)[name].__get__(error))
