"""Bodies: short byte strings in the database, by digest."""

from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import Connection, select

from tooltrail.records import DamageError, Digest
from tooltrail.records.digests import EMPTY
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store.read.rows import AnySelect, Columns, damage_of, fetch
from tooltrail.store.schema import bodies

_BODY: Final = Columns(bodies.c.digest, bodies.c.size, bodies.c.encoding, bodies.c.data)
_AT_ONCE: Final = 500
"""Digests in one query."""


class Body:
    """One body, or why it cannot be read."""

    def __init__(self, data: bytes | None, problem: DamageError | None) -> None:
        self._data = data
        self._problem = problem

    def read(self) -> bytes:
        """The bytes.

        Raises:
            DamageError: they are missing, erased or altered.
        """
        if self._problem is not None or self._data is None:
            raise self._problem or DamageError("a body is missing", path="bodies")
        return self._data


def select_bodies(digests: Iterable[Digest]) -> AnySelect:
    """The bodies of some digests."""
    return select(*_BODY.selected).where(bodies.c.digest.in_(list(digests)))


def load_bodies(connection: Connection, digests: Iterable[Digest]) -> Mapping[Digest, Body]:
    """Each body of some digests; damage of one is kept until that one is read."""
    wanted = list(dict.fromkeys(digests))
    found = {one: Body(None, _missing(one)) for one in wanted}
    found[EMPTY] = Body(b"", None)
    for begin in range(0, len(wanted), _AT_ONCE):
        for row in fetch(connection, select_bodies(wanted[begin : begin + _AT_ONCE])):
            problems: list[str] = []
            digest, size, encoding, data = _BODY.read(row, problems)
            found[digest] = _checked(digest, size, encoding, data, problems)
    return found


def read_body(connection: Connection, digest: Digest) -> bytes:
    """The bytes of one body.

    Raises:
        DamageError: they are missing, erased or altered.
    """
    return load_bodies(connection, [digest])[digest].read()


def _checked(
    digest: Digest, size: int, encoding: str, data: bytes | None, problems: list[str]
) -> Body:
    damage = damage_of(bodies.name, digest, problems)
    if damage is not None:
        return Body(None, DamageError(damage, path=digest))
    try:
        return Body(decode_body(digest, size, encoding, data), None)
    except DamageError as error:
        return Body(None, error)


def _missing(digest: Digest) -> DamageError:
    return DamageError(f"body {digest} is missing", path=digest)
