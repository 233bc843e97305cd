"""Bodies: short byte strings in the database, by digest; and what retention removed of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.errors import DamageError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.rows import Columns, Sql, damage_of, fetch_each, is_in, sha
from tooltrail.store.views import Erasure

_BODY: Final = Columns("bodies.digest", "bodies.size", "bodies.encoding", "bodies.data")
_TOMBSTONE: Final = Columns(
    "tombstones.digest", "tombstones.reason", "tombstones.rule", "tombstones.removed_at"
)


class Body(NamedTuple):
    """One body, or why there is none.

    Attributes:
        data: the bytes.
        erasure: who removed them and why.
        damage: why they cannot be read, where nobody removed them.
    """

    data: bytes | None = None
    erasure: Erasure | None = None
    damage: DamageError | None = None

    def read(self) -> bytes:
        """The bytes.

        Raises:
            NotFoundError: they are erased.
            DamageError: they are missing or altered.
        """
        if self.data is not None:
            return self.data
        if self.erasure is not None:
            raise NotFoundError(self.erasure.sentence)
        raise self.damage or DamageError("a body is missing", path="bodies")


def select_bodies(digests: Iterable[object]) -> Sql:
    """The bodies of some digests."""
    return Sql(f"SELECT {_BODY.sql} FROM bodies WHERE ") + is_in("digest", [*digests])


def select_tombstones(digests: Iterable[object]) -> Sql:
    """The tombstones of some digests, the newest last."""
    found = Sql(f"SELECT {_TOMBSTONE.sql} FROM tombstones WHERE ") + is_in("digest", [*digests])
    return found + " ORDER BY key"


def load_bodies(connection: Connection, digests: Iterable[Digest]) -> Mapping[Digest, Body]:
    """Each body of some digests; damage of one is kept until that one is read."""
    wanted = list(dict.fromkeys(digests))
    found = {one: Body(damage=_lost(one)) for one in wanted}
    found[EMPTY] = Body(b"")
    for row in fetch_each(connection, select_bodies, [sha(one) for one in wanted]):
        problems: list[str] = []
        digest, *values = _BODY.read(row, problems)
        damage = damage_of("bodies", digest, problems)
        if damage is not None:
            found[digest] = Body(damage=DamageError(damage, path=digest))
        elif values[-1] is not None:
            found[digest] = _decoded(digest, *values)
    lost = [sha(one) for one in wanted if found[one].data is None]
    for row in fetch_each(connection, select_tombstones, lost):
        digest, *values = _TOMBSTONE.read(row, [])
        found[digest] = Body(erasure=Erasure(f"body {digest}", *values))
    return found


def read_body(connection: Connection, digest: Digest) -> bytes:
    """The bytes of one body.

    Raises:
        NotFoundError: they are erased.
        DamageError: they are missing or altered.
    """
    return load_bodies(connection, [digest])[digest].read()


def _decoded(digest: Digest, size: int, encoding: str, data: Any) -> Body:
    from tooltrail.store.bodies import decode_body  # noqa: PLC0415  zstandard is slow to import

    try:
        return Body(decode_body(digest, size, encoding, data))
    except DamageError as error:
        return Body(damage=error)


def _lost(digest: Digest) -> DamageError:
    return DamageError(f"body {digest} is missing", path=digest)
