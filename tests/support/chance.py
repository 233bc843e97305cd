"""Many invocations with random facts, and what is known of each without asking the store."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import insert

from tooltrail.records import DEFAULT_POLICY, digest_of
from tooltrail.store import Store
from tooltrail.store.tables import (
    BodyRow,
    CanonicalResultRow,
    InvocationRow,
    LedgerHeadRow,
    PolicyRow,
    SessionRow,
)

BEGINNING = datetime(2026, 3, 1, tzinfo=UTC)
TOOLS = ("Bash", "Read", "Grep", "re\\0ad")
AGENTS = ("planner", "coder", None)
STATES = ("started", "success", "success", "error", "interrupted", "denied", "cancelled")


@dataclass(frozen=True)
class Fact:
    """One invocation as it was made up."""

    id: UUID
    session: UUID
    agent: str | None
    tool: str
    family: str
    state: str
    error_kind: str | None
    exit_status: int | None
    size: int | None
    started_at: datetime

    @property
    def status(self) -> str | None:
        if self.state == "started":
            return None
        return "success" if self.state == "success" else "error"


def random_facts(count: int, *, seed: int, sessions: int = 5) -> list[Fact]:
    chance = random.Random(seed)
    homes = [(UUID(int=chance.getrandbits(128)), chance.choice(AGENTS)) for _ in range(sessions)]
    return [_fact(chance, homes) for _ in range(count)]


def _fact(chance: random.Random, homes: list[tuple[UUID, str | None]]) -> Fact:
    session, agent = chance.choice(homes)
    state = chance.choice(STATES)
    tool = chance.choice(TOOLS)
    is_command = tool == "Bash" and state == "success"
    return Fact(
        id=UUID(int=chance.getrandbits(128)),
        session=session,
        agent=agent,
        tool=tool,
        family="command" if tool == "Bash" else "generic",
        state=state,
        error_kind=chance.choice(("timeout", "broken")) if state == "error" else None,
        exit_status=chance.randrange(3) if is_command else None,
        size=None if state == "started" else chance.choice((0, 10, 5_000, 1 << 40)),
        started_at=BEGINNING + timedelta(seconds=chance.randrange(1000)),
    )


def insert_facts(store: Store, facts: list[Fact]) -> None:
    """Write them without their surfaces, in one transaction."""
    homes = {fact.session: (key, fact.agent) for key, fact in enumerate(facts, start=1)}
    moment = {"opened_at": BEGINNING, "environment": "{}"}
    head = {"entry_count": 0, "digest": "", "next_seq": len(facts)}
    body, policy = digest_of(b"{}"), DEFAULT_POLICY.digest
    with store.database.write() as connection:
        connection.execute(
            insert(PolicyRow).values(digest=policy, document="{}", created_at=BEGINNING)
        )
        connection.execute(insert(BodyRow).values(digest=body, size=2, encoding="raw", data=b"{}"))
        for session, (key, agent) in homes.items():
            connection.execute(
                insert(SessionRow).values(key=key, id=session, agent=agent, **moment)
            )
            connection.execute(insert(LedgerHeadRow).values(session_key=key, **head))
        connection.execute(
            insert(InvocationRow).values(
                policy_digest=policy, arguments_digest=body, arguments_preview="{}"
            ),
            [_row(n, fact, homes[fact.session][0]) for n, fact in enumerate(facts)],
        )
        done = [
            {"invocation_key": n + 1, "status": fact.status}
            for n, fact in enumerate(facts)
            if fact.status
        ]
        if done:
            connection.execute(
                insert(CanonicalResultRow).values(
                    summary_text="-", document="{}", digest=digest_of(b"{}")
                ),
                done,
            )


def _row(n: int, fact: Fact, session_key: int) -> dict[str, object]:
    return {
        "key": n + 1,
        "id": fact.id,
        "session_key": session_key,
        "seq": n,
        "tool_name": fact.tool,
        "family": fact.family,
        "started_at": fact.started_at,
        "state": fact.state,
        "finished_at": None if fact.state == "started" else fact.started_at,
        "error_kind": fact.error_kind,
        "exit_status": fact.exit_status,
        "output_size": fact.size,
    }
