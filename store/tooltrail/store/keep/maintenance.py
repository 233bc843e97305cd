"""Shared by pruning and relocation: amounts, references to objects, and the account of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tooltrail.artifacts import ObjectStat, digest_of_path
from tooltrail.journal import Entry, JournalLog
from tooltrail.journal.clock import now
from tooltrail.journal.environment import current_actor
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import Maintenance
from tooltrail.store.engines.database import Database

_ASKED_AT_ONCE: Final = 500
"""Objects per query: far below the limit of parameters of either engine."""

_TABLES: Final = ("artifacts", "streams", "invocation_artifacts", "pending_artifacts")
"""Tables that refer to artifacts. In a sound store, `artifacts` and `pending_artifacts` have every
artifact of the other two tables. In a damaged store, the other two may refer to further objects."""

Progress = Callable[[int, int], None]
"""Called after each step with the number of finished objects, and their stored bytes."""


@dataclass(slots=True)
class Amount:
    """A number of objects, and their stored bytes."""

    count: int = 0
    stored_bytes: int = 0

    def add(self, stored_bytes: int) -> None:
        """Count one more object."""
        self.count += 1
        self.stored_bytes += stored_bytes

    def __add__(self, other: "Amount") -> "Amount":
        """The sum of both amounts."""
        return Amount(self.count + other.count, self.stored_bytes + other.stored_bytes)


def with_references(
    database: Database, stats: Iterable[ObjectStat]
) -> Iterator[tuple[ObjectStat, bool]]:
    """Each object of a sink, and whether a row of the store refers to it.

    Checks many objects in one transaction, which ends before the first of them is yielded.
    """
    rest = iter(stats)
    while some := list(islice(rest, _ASKED_AT_ONCE)):
        with database.read() as connection:
            digests = {
                stat.path: connection.sha(digest_of_path(stat.path))
                for stat in some
                if is_artifact(stat.path)
            }
            asked, found = list(digests.values()), set[object]()
            for table in _TABLES:
                sql = f"SELECT digest FROM {table} WHERE digest IN (?)"  # noqa: S608  a constant
                found |= {digest for (digest,) in connection.query_each(sql, asked)}
        for stat in some:
            yield stat, stat.path in digests and digests[stat.path] in found


def is_artifact(path: str) -> bool:
    """Whether an object of a sink has the path of an artifact."""
    with suppress(InvalidRecordError):
        digest_of_path(path)
        return True
    return False


def append_account(spool: Path, run_id: UUID, action: str, details: Mapping[str, Any]) -> None:
    """Append a fact with the results of a `gc` or `relocate` run to the journal, durably."""
    data, actor = encode(dict(details)), current_actor()
    fact = Maintenance(id=run_id, at=now(), action=action, actor=actor, details=digest_of(data))
    with closing(JournalLog(spool / JOURNAL_FOLDER)) as log:
        log.record([Entry(fact, [data])])
