"""Checks that every body and every artifact that something names is there, and unaltered."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records.digests import Digest
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError
from tooltrail.store import schema
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.database import Database
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.findings import Finding
from tooltrail.store.verify.source import Source, Unreadable, Values

_BODIES_AT_ONCE: Final = 64
"""Bodies are small as a rule; an importer may store long ones."""

_ROWS_AT_ONCE: Final = 500
_BODY: Final = ("key", "digest", "size", "encoding", "data")
_ARTIFACT: Final = ("digest", "size", "stored_size", "line_count")


class Unplaced(NamedTuple):
    """A stream that is a body, although it is short enough to stand in the receipt."""

    subject: str
    role: str
    digest: Digest
    receipt: bytes


@dataclass
class Needed:
    """What the facts of a batch name, by digest, with the first subject that names it.

    Attributes:
        bodies: must be in the database.
        optional: bodies that may be lost with a damaged place of the journal.
        artifacts: must be in the sink, or wait for it.
        unplaced: streams whose place in the receipt may have been removed.
    """

    bodies: dict[Digest, str] = field(default_factory=dict[Digest, str])
    optional: dict[Digest, str] = field(default_factory=dict[Digest, str])
    artifacts: dict[Digest, str] = field(default_factory=dict[Digest, str])

    unplaced: list[Unplaced] = field(default_factory=list[Unplaced])

    def check(self, checking: Checking, *, is_damaged: bool) -> None:
        """Report what is missing. Retention removes bytes and leaves the row.

        Args:
            checking: the verification.
            is_damaged: whether some frames of the journal are lost.
        """
        if is_damaged:
            for digest, subject in _without(checking, "bodies", self.optional).items():
                message = f"body {digest} of {subject} is missing; the journal was damaged"
                checking.incomplete(subject, "bodies", None, message)
        else:
            self.bodies.update(self.optional)
        self._check_unplaced(checking)
        for digest, subject in _without(checking, "bodies", self.bodies).items():
            message = f"body {digest} of {subject} is missing"
            checking.damage(subject, "bodies", None, message)
        missing = _without(checking, "artifacts", self.artifacts)
        for digest, subject in _without(checking, "pending_artifacts", missing).items():
            message = f"artifact {artifact_path(digest)} of {subject} is missing"
            checking.damage(subject, "artifacts", None, message)

    def _check_unplaced(self, checking: Checking) -> None:
        keys = list({checking.connection.sha(one.digest) for one in self.unplaced})
        rows = checking.source.rows(schema.bodies, _BODY[1:], "digest", keys)
        contents = dict[Digest, bytes]()
        for stored, size, encoding, data in rows:
            digest = checking.digest(stored)
            with suppress(DamageError, TypeError, ValueError, OverflowError):
                contents[digest] = decode_body(digest, size, encoding, data)
        for subject, role, digest, receipt in self.unplaced:
            if digest in contents and contents[digest] in receipt:
                message = f"stream {role} of {subject} stands in the receipt; its row denies it"
                checking.damage(subject, "streams", "receipt_offset", message)


def _without(
    checking: Checking,
    table: str,
    wanted: dict[Digest, str],
    where: Mapping[str, object] | None = None,
) -> dict[Digest, str]:
    """Those digests that a table does not have, in rows with certain values."""
    keys: list[object] = [checking.connection.sha(one) for one in wanted]
    rows = checking.source.rows(schema.metadata.tables[table], ("digest",), "digest", keys, where)
    found = {checking.digest(one) for (one,) in rows}
    return {one: subject for one, subject in wanted.items() if one not in found}


def check_bodies(checking: Checking) -> Iterator[list[Finding]]:
    """Read every body, and compare the bytes with the digest."""
    for rows in checking.source.scan(schema.bodies, _BODY, "key", _BODIES_AT_ONCE):
        erased: dict[Digest, str] = {}
        for key, stored, size, encoding, data in rows:
            if any(isinstance(one, Unreadable) for one in (stored, size, encoding, data)):
                continue
            digest = checking.digest(stored)
            if data is None:
                erased[digest] = f"body {digest}"
                continue
            try:
                decode_body(digest, size, encoding, data)
            except (DamageError, TypeError, ValueError, OverflowError, MemoryError) as error:
                reason = str(error) if isinstance(error, DamageError) else "its row is altered"
                message = f"body {digest} (key {key}) is damaged: {reason}"
                checking.damage(f"body {digest}", "bodies", None, message)
        checking.totals.checked["bodies"] += len(rows)
        for digest in _without(checking, "tombstones", erased, {"kind": "body"}):
            message = f"body {digest} has no bytes, and no tombstone says why"
            checking.damage(f"body {digest}", "bodies", "data", message)
        yield checking.take()


def check_pending(checking: Checking) -> Iterator[list[Finding]]:
    """List the streams that wait in a spool."""
    last: Any = None
    while True:
        behind = "" if last is None else "WHERE digest > ? "
        sql = (
            "SELECT digest, min(role), min(reason) FROM pending_artifacts "
            f"{behind}GROUP BY digest ORDER BY digest LIMIT ?"
        )
        values = (_ROWS_AT_ONCE,) if last is None else (last, _ROWS_AT_ONCE)
        try:
            rows = checking.source.query(sql, values)
        except (DamageError, InvalidRecordError):
            checking.unreadable("pending_artifacts", "some digest", None)
            rows = []
        for stored, role, reason in rows:
            path = _path_of(checking, stored)
            message = f"{role} (artifact {path}) waits in a spool: {reason}"
            checking.incomplete(f"artifact {path}", "pending_artifacts", None, message)
        yield checking.take()
        if not rows:
            return
        last = rows[-1][0]


def check_artifacts(
    checking: Checking, database: Database, archive: ArtifactArchive
) -> Iterator[list[Finding]]:
    """Read every artifact in the sink, and compare it with its digest and its row.

    The database is not kept waiting meanwhile: each batch of rows has a snapshot of its own.
    """
    at = 0
    while True:
        with database.snapshot() as connection:
            checking.source = Source(database, connection, checking.unreadable)
            rows = next(_artifact_rows(checking, at), None)
            gone = set[Any]() if rows is None else _removed(checking, [row[1] for row in rows])
        if rows is None:
            yield checking.take()
            return
        for _, stored, size, stored_size, line_count in rows:
            path = _path_of(checking, stored)
            if stored not in gone:
                _check_artifact(checking, archive, path, (size, stored_size, line_count))
            yield checking.take()
        at = max([at, *(row[0] for row in rows)]) + 1


def _artifact_rows(checking: Checking, at: int) -> Iterator[list[Any]]:
    columns = ("key", *_ARTIFACT)
    for rows in checking.source.scan(schema.artifacts, columns, "key", _ROWS_AT_ONCE, first=at):
        if rows:
            yield rows


def _removed(checking: Checking, stored: Iterable[Any]) -> set[Any]:
    """Digests of artifacts that retention removed."""
    keys: list[object] = [one for one in stored if isinstance(one, bytes)]
    where = {"kind": "artifact"}
    rows = checking.source.rows(schema.tombstones, ("digest",), "digest", keys, where)
    return {one for (one,) in rows}


def _check_artifact(
    checking: Checking, archive: ArtifactArchive, path: str, stored: Values
) -> None:
    subject = f"artifact {path}"
    checking.totals.checked["artifacts"] += 1
    numbers = dict(zip(_ARTIFACT[1:], stored, strict=True))
    for name, value in numbers.items():
        if not isinstance(value, int) and not isinstance(value, Unreadable):
            checking.damage(subject, "artifacts", name, f"artifacts.{name} of {subject} is altered")
    known = [one if isinstance(one, int) else None for one in numbers.values()]
    try:
        archive.verify(path, size=known[0], line_count=known[2])
        found = archive.stat(path).stored_size
        if known[1] not in {None, found}:
            message = f"{subject} is stored in {found:,} bytes, not {known[1]:,}"
            checking.damage(subject, "artifacts", "stored_size", message)
    except (DamageError, InvalidRecordError, OSError) as error:
        checking.damage(subject, "artifacts", None, f"{subject} is damaged: {error}")
    except UnavailableError as error:
        checking.incomplete(subject, "artifacts", None, f"{subject} cannot be read now: {error}")


def _path_of(checking: Checking, stored: Any) -> str:
    digest = checking.digest(stored)
    try:
        return artifact_path(digest)
    except InvalidRecordError:
        return str(digest)
