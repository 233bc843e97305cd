"""The account of maintenance: a fact in the journal, which the ledger keeps for ever."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.journal import Entry, JournalLog
from tooltrail.journal.clock import now
from tooltrail.journal.environment import environment_json
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import Maintenance


def account_for(spool: Path, run_id: UUID, action: str, details: Mapping[str, Any]) -> None:
    """Append to the journal what a run did, durably.

    Args:
        spool: with the journal.
        run_id: of the run.
        action: `gc`, `relocate`, …
        details: what was done; JSON values.

    Raises:
        UnavailableError: the journal cannot be written.
    """
    environment = decode(environment_json())
    assert isinstance(environment, dict)
    data = encode(dict(details))
    fact = Maintenance(
        id=run_id,
        at=now(),
        action=action,
        actor=f"{environment['user']}@{environment['host']}",
        details=digest_of(data),
    )
    log = JournalLog(spool / JOURNAL_FOLDER)
    try:
        log.record([Entry(fact, [data])])
    finally:
        log.close()
