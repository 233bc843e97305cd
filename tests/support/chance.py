"""Many invocations with random facts, and what is known of each without asking the store."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
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


ORACLE: dict[str, Callable[[Fact, Any], bool]] = {
    "sessions": lambda fact, values: fact.session in values,
    "tools": lambda fact, values: fact.tool in values,
    "families": lambda fact, values: fact.family in values,
    "states": lambda fact, values: fact.state in values,
    "statuses": lambda fact, values: fact.status in values,
    "error_kinds": lambda fact, values: fact.error_kind in values,
    "agents": lambda fact, values: fact.agent in values,
    "since": lambda fact, value: fact.started_at >= value,
    "until": lambda fact, value: fact.started_at < value,
    "exit_statuses": lambda fact, values: fact.exit_status in values,
    "min_size": lambda fact, value: fact.size is not None and fact.size >= value,
    "invocations": lambda fact, values: fact.id in values,
}
"""What each field of a filter means."""


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


def uneven_facts(count: int, *, seed: int) -> list[Fact]:
    """Many in which what is rare comes at random, or at one time, and some times are old."""
    chance = random.Random(seed)
    facts = random_facts(count, seed=seed, sessions=30)
    return [_uneven(chance, n, count, fact) for n, fact in enumerate(facts)]


def _uneven(chance: random.Random, n: int, count: int, fact: Fact) -> Fact:
    at = BEGINNING + timedelta(seconds=n)
    if n // 500 % 7 == 3:  # taken in from elsewhere
        at -= timedelta(days=chance.randrange(1, 300))
    fact = replace(fact, started_at=at)
    if fact.state == "started" and chance.random() < 0.99:
        fact = replace(fact, state="success", size=0)
    if chance.random() < 0.001:
        fact = replace(fact, tool="Rare", family="rare")
    elif count // 3 < n < count // 3 + 200 and chance.random() < 0.1:
        fact = replace(fact, family="brief")
    if fact.size is None:
        return fact
    sizes = (0, 10, 30_000, 30_000, int(chance.lognormvariate(6, 2)))
    return replace(fact, size=chance.choice(sizes))


def insert_facts(store: Store, facts: Sequence[Fact], keys: Sequence[int] | None = None) -> None:
    """Write them without their surfaces, in one transaction.

    Args:
        store: a new one.
        facts: of invocations.
        keys: of each of them; from 1 on by default.
    """
    keys = range(1, len(facts) + 1) if keys is None else keys
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
            [
                fact_row(key, fact, homes[fact.session][0])
                for key, fact in zip(keys, facts, strict=True)
            ],
        )
        done = [
            {"invocation_key": key, "status": fact.status}
            for key, fact in zip(keys, facts, strict=True)
            if fact.status
        ]
        if done:
            connection.execute(
                insert(CanonicalResultRow).values(
                    summary_text="-", document="{}", digest=digest_of(b"{}")
                ),
                done,
            )


def fact_row(key: int, fact: Fact, session_key: int) -> dict[str, object]:
    """A row of `invocations`, without what belongs to all of them."""
    return {
        "key": key,
        "id": fact.id,
        "session_key": session_key,
        "seq": key - 1,
        "tool_name": fact.tool,
        "family": fact.family,
        "started_at": fact.started_at,
        "state": fact.state,
        "finished_at": None if fact.state == "started" else fact.started_at,
        "error_kind": fact.error_kind,
        "exit_status": fact.exit_status,
        "output_size": fact.size,
    }
