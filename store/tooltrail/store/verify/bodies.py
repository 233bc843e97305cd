"""Checks that every body and every artifact that a fact names exists and is unaltered."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records.digests import Digest
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    UnavailableError,
)
from tooltrail.store.engines.connection import Row
from tooltrail.store.engines.database import Database
from tooltrail.store.verify.checking import Checking, Finding
from tooltrail.store.verify.source import Source

_BODIES_AT_ONCE: Final = 64
"""Bodies per batch. Bodies are usually small, but an importer may store long ones."""

_ROWS_AT_ONCE: Final = 500


@dataclass
class Needed:
    """The digests that the facts of a batch name, each with the first subject that names it.

    Attributes:
        bodies: bodies that must be in the database.
        optional: bodies that may be lost with a damaged place of the journal.
        artifacts: artifacts that must be in the sink, or wait for it.
    """

    bodies: dict[Digest, str] = field(default_factory=dict[Digest, str])
    optional: dict[Digest, str] = field(default_factory=dict[Digest, str])
    artifacts: dict[Digest, str] = field(default_factory=dict[Digest, str])

    def check(self, checking: Checking, *, is_damaged: bool) -> None:
        """Report missing rows. Retention removes bytes but keeps the row.

        With `is_damaged`, some frames of the journal are lost.
        """
        if is_damaged:
            for digest, subject in _without(checking, "bodies", self.optional).items():
                message = f"body {digest} of {subject} is missing; the journal was damaged"
                checking.incomplete(subject, "bodies", message)
        else:
            self.bodies.update(self.optional)
        for digest, subject in _without(checking, "bodies", self.bodies).items():
            checking.damage(subject, "bodies", f"body {digest} of {subject} is missing")
        if checking.may_skip_bodies:
            self._read_by_digest(checking)
        missing = _without(checking, "artifacts", self.artifacts)
        for digest, subject in _without(checking, "pending_artifacts", missing).items():
            message = f"artifact {artifact_path(digest)} of {subject} is missing"
            checking.damage(subject, "artifacts", message)

    def _read_by_digest(self, checking: Checking) -> None:
        """Read every body through the index of digests, since `check_bodies` may not reach it."""
        wanted = self.bodies | self.optional
        lost = _without(checking, "bodies", wanted)
        for digest, subject in wanted.items():
            if digest in lost or checking.is_removed(digest) or checking.body(digest) is not None:
                continue
            checking.damage(subject, "bodies", f"body {digest} of {subject} cannot be read")


def _without(
    checking: Checking, table: str, wanted: dict[Digest, str], where: str = "TRUE"
) -> dict[Digest, str]:
    """The digests without a row in a table; only rows that fulfil `where` count."""
    keys = [checking.connection.sha(one) for one in wanted]
    rows = checking.source.rows(table, "digest", keys, where, columns=["digest"])
    found = {checking.digest(one["digest"]) for one in rows}
    return {one: subject for one, subject in wanted.items() if one not in found}


def check_bodies(checking: Checking) -> Iterator[list[Finding]]:
    """Read every body, and compare the bytes with the digest."""
    for rows in checking.source.scan("bodies", "key", _BODIES_AT_ONCE):
        erased: dict[Digest, str] = {}
        for row in rows:
            digest = checking.digest(row["digest"])
            if row["data"] is None and isinstance(row["digest"], bytes):
                erased[digest] = f"body {digest}"
                continue
            try:
                checking.content(row)
            except DamageError as error:
                checking.damage(f"body {digest}", "bodies", str(error))
        checking.totals.checked["bodies"] += len(rows)
        for digest in _without(checking, "tombstones", erased, "kind = 'body'"):
            message = f"body {digest} has no bytes, and no tombstone says why"
            checking.damage(f"body {digest}", "bodies", message, "data")
        yield checking.take()
    with suppress(DamageError, InvalidRecordError):  # the pages of the index are checked before
        ((count,),) = checking.source.query("SELECT count(*) FROM bodies")  # of an index
        read = checking.totals.checked["bodies"]
        if read != count:
            message = f"{read:,} rows of table bodies could be read in order"
            checking.damage("table bodies", "bodies", f"{message}; an index has {count:,}")
    yield checking.take()


def check_pending(checking: Checking) -> Iterator[list[Finding]]:
    """List the streams that wait in a spool."""
    sql = (
        "SELECT digest, min(role), min(reason) FROM pending_artifacts"
        " WHERE digest > ? GROUP BY digest ORDER BY digest LIMIT ?"
    )
    last: Any = b""
    while True:
        rows = checking.source.read("pending_artifacts", sql, (last, _ROWS_AT_ONCE))
        for stored, role, reason in rows or ():
            path = _path_of(checking, stored)
            message = f"{role} (artifact {path}) waits in a spool: {reason}"
            checking.incomplete(f"artifact {path}", "pending_artifacts", message)
        yield checking.take()
        if not rows:
            return
        last = rows[-1][0]


def check_tombstones(checking: Checking) -> Iterator[list[Finding]]:
    """List what was removed on purpose. No fact records it, so each tombstone is a finding."""
    for rows in checking.source.scan("tombstones", "key", _ROWS_AT_ONCE):
        digests = [row["digest"] for row in rows if isinstance(row["digest"], bytes)]
        found = checking.source.rows("bodies", "digest", digests, "data IS NOT NULL")
        present = {("body", row["digest"]) for row in found}
        for row in rows:
            subject = f"{row['kind']} {checking.digest(row['digest'])}"
            is_here = (row["kind"], row["digest"]) in present
            says = "has a tombstone, but is still stored" if is_here else "was removed"
            checking.incomplete(subject, "tombstones", f"{subject} {says} ({row['reason']})")
        yield checking.take()


def check_artifacts(
    checking: Checking, database: Database, archive: ArtifactArchive
) -> Iterator[list[Finding]]:
    """Read every artifact in the sink, and compare it with its digest and its row.

    No transaction is open while artifacts are read: each batch of rows has its own snapshot.
    Artifacts that are published after the first snapshot are left out.
    """
    report = cache(checking.unreadable)  # each batch finds the same damage again
    with database.snapshot() as connection:
        source = Source(connection, report)
        # SQLite reads the last row for `key`, and the index of digests for the sum.
        for key in ("key", "key + 0"):
            with suppress(DamageError, InvalidRecordError):
                ((last,),) = source.query(f"SELECT coalesce(max({key}), 0) FROM artifacts")
                break
        else:
            report("artifacts", None, None)
            last = 0
    at, known = 0, f"key <= {last}"
    while True:
        with database.snapshot() as connection:
            source = checking.source = Source(connection, report)
            batches = source.scan("artifacts", "key", _ROWS_AT_ONCE, known, first=at, last=last)
            rows = next(filter(None, batches), list[Row]())
            digests = [row["digest"] for row in rows if isinstance(row["digest"], bytes)]
            removed = source.rows("tombstones", "digest", digests, "kind = 'artifact'")
            gone = {row["digest"] for row in removed}
        yield checking.take()
        if not rows:
            return
        for row in rows:
            _check_artifact(checking, archive, row, may_be_missing=row["digest"] in gone)
            yield checking.take()
        at = rows[-1]["key"] + 1


def _check_artifact(
    checking: Checking, archive: ArtifactArchive, row: Row, *, may_be_missing: bool
) -> None:
    path = _path_of(checking, row["digest"])
    subject = f"artifact {path}"
    checking.totals.checked["artifacts"] += 1
    known: dict[str, int] = {}
    for name in ("size", "stored_size", "line_count"):
        if isinstance(row[name], int):
            known[name] = row[name]
        else:
            checking.damage(subject, "artifacts", f"artifacts.{name} of {subject} is altered", name)
    try:
        archive.verify(path, size=known.get("size"), line_count=known.get("line_count"))
        found = archive.stat(path).stored_size
        if known.get("stored_size", found) != found:
            message = f"{subject} is stored in {found:,} bytes, not {known['stored_size']:,}"
            checking.damage(subject, "artifacts", message, "stored_size")
    except (DamageError, InvalidRecordError, OSError) as error:
        if not (may_be_missing and isinstance(error, MissingArtifactError)):
            checking.damage(subject, "artifacts", str(error))
    except UnavailableError as error:
        checking.incomplete(subject, "artifacts", f"{subject} cannot be read now: {error}")


def _path_of(checking: Checking, stored: Any) -> str:
    digest = checking.digest(stored)
    try:
        return artifact_path(digest)
    except InvalidRecordError:
        return str(digest)
