"""Reads bodies, short byte strings in the database, by digest; reports those that are erased."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.errors import DamageError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns, damage_of
from tooltrail.store.read.rows import Sql, fetch_each
from tooltrail.store.views import Erasure

_BODY: Final = Columns("bodies: digest size encoding data")
_TOMBSTONE: Final = Columns("tombstones: digest reason rule removed_at")


class Body(NamedTuple):
    """One body, or why its bytes are missing.

    Attributes:
        erasure: how retention removed the bytes, if it did.
        damage: why the bytes cannot be read, if they were not erased.
    """

    data: bytes | None = None
    erasure: Erasure | None = None
    damage: DamageError | None = None

    def read(self) -> bytes:
        """The bytes.

        Raises:
            NotFoundError: the bytes are erased.
            DamageError: the bytes are missing or altered.
        """
        if self.data is not None:
            return self.data
        if self.erasure is not None:
            raise NotFoundError(self.erasure.sentence)
        raise self.damage or DamageError("a body is missing", path="bodies")


def load_bodies(connection: Connection, digests: Iterable[Digest]) -> Mapping[Digest, Body]:
    """The bodies of some digests. The damage of a body is raised later, by `Body.read`."""
    found = {one: Body(damage=DamageError(f"body {one} is missing", path=one)) for one in digests}
    wanted = [connection.sha(one) for one in found]
    found[EMPTY] = Body(b"")
    query = Sql(f"SELECT {_BODY.sql} FROM bodies WHERE ")
    for row in fetch_each(connection, query, "digest", wanted):
        values, problems = _BODY.read(row)
        digest: Digest = values["digest"]
        damage = damage_of("bodies", digest, problems)
        if damage is not None:
            found[digest] = Body(damage=DamageError(damage, path=digest))
        elif values["data"] is not None:
            found[digest] = _decoded(**values)
    lost = [connection.sha(one) for one, body in found.items() if body.data is None]
    query = Sql(f"SELECT {_TOMBSTONE.sql} FROM tombstones WHERE ")
    for row in fetch_each(connection, query, "digest", lost, " ORDER BY key"):
        values, _ = _TOMBSTONE.read(row)
        digest = values.pop("digest")
        found[digest] = Body(erasure=Erasure(f"body {digest}", **values))
    return found


def read_body(connection: Connection, digest: Digest) -> bytes:
    """The bytes of one body; see `Body.read`."""
    return load_bodies(connection, [digest])[digest].read()


def _decoded(digest: Digest, size: int, encoding: str, data: Any) -> Body:
    from tooltrail.store.bodies import decode_body  # noqa: PLC0415  zstandard is slow to import

    try:
        return Body(decode_body(digest, size, encoding, data))
    except DamageError as error:
        return Body(damage=error)
