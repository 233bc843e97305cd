"""Reads the messages and invocations of a session, and the order of their beginnings and ends."""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tooltrail.records.digests import Digest, parse_digest
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.plain_text import text_from
from tooltrail.store.bodies import unpack_fact
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, damage_of, first_line
from tooltrail.store.read.details import details_of
from tooltrail.store.read.lists import OFFERING, offers_of
from tooltrail.store.read.rows import Row, Sql, fetch
from tooltrail.store.views import Erasure, InvocationDetail, MessageView, ToolView

AGENT_RUN: Final = "agent"
"""The role of messages with a fact about a leg of an agent run."""

_LEG_ROLES: Final = ("agent_leg", "agent_outcome")

_MESSAGE: Final = Columns("messages: key id seq role created_at text document payload wire_format")
_BODIES: Final = ("text", "document", "payload")
_MESSAGES: Final = f"SELECT {_MESSAGE.sql} FROM messages WHERE session_key = ? ORDER BY seq"

_FACTS: Final = """
SELECT messages.key, ledger_entries.fact FROM messages JOIN ledger_entries
ON ledger_entries.journal_key = messages.journal_key AND ledger_entries.n = messages.entry
WHERE messages.session_key = ?"""

_LEGS: Final = """
SELECT message_key FROM agent_legs WHERE session_key = ?
UNION ALL SELECT message_key FROM agent_outcomes WHERE session_key = ?"""

# Journal, ledger entry and `seq` of every entry of a session, in the order of the ledger.
_BEGINNINGS: Final = """
SELECT journal_key, entry, seq FROM messages WHERE session_key = ?
UNION ALL SELECT journal_key, start_entry, seq FROM invocations WHERE session_key = ?
ORDER BY 1, 2"""

# The end may be in another journal than the start.
_ENDS: Final = """
SELECT seq, end_journal_key, end_entry FROM invocations
WHERE session_key = ? AND end_entry IS NOT NULL"""


def messages_of(
    connection: Connection, session_key: int, *, payloads: bool = False
) -> list[MessageView]:
    """The messages of a session in order. A damaged message has `damage`.

    With `payloads`, also reads the bytes that providers sent, and the extras of messages.
    """
    read = [_MESSAGE.read(row) for row in fetch(connection, Sql(_MESSAGES, (session_key,)))]
    names = _BODIES if payloads else _BODIES[:-1]
    roles = {values["role"] for values, _ in read}
    legs: set[int] = set()
    if not roles.isdisjoint(_LEG_ROLES):
        legs = {row[0] for row in fetch(connection, Sql(_LEGS, (session_key,) * 2))}
    offers: Mapping[int, Sequence[ToolView]] = {}
    if OFFERING in roles:
        offers = offers_of(connection, Sql("messages.session_key = ?", (session_key,)))
    if payloads:
        names = (*names, "extras")
        facts = {row[0]: row[1] for row in fetch(connection, Sql(_FACTS, (session_key,)))}
        for values, problems in read:
            values["extras"] = _extras_of(facts.get(values["key"]), problems)
    digests = (values[name] for values, _ in read for name in names)
    bodies = load_bodies(connection, (one for one in digests if one is not None))
    views: list[MessageView] = []
    for values, problems in read:
        key = values["key"]
        named = {name: values[name] for name in names if values[name] is not None}
        found, erased = _contents(named, bodies, problems)
        if key in legs:
            shown = _leg(found, problems)
        else:
            shown = _message(values["role"], found, offers.get(key, ()), problems)
        small = {name: values[name] for name in ("id", "seq", "created_at", "wire_format")}
        damage = damage_of("messages", key, problems)
        views.append(MessageView(**small, **shown, damage=damage, erased=erased))
    return views


def invocations_of(
    connection: Connection, session_key: int, *, outputs: bool
) -> list[InvocationDetail]:
    """All invocations of a session in order, with their `ended_at_seq`."""
    ends = _ends(connection, session_key)
    mine = Sql("invocations.session_key = ?", (session_key,))
    return details_of(connection, mine, outputs=outputs, ends=ends)


def _ends(connection: Connection, session_key: int) -> Mapping[int, int]:
    """For each `seq` of an ended invocation, the `seq` of the first entry that began later.

    Uses the order of the ledger, since clocks of several machines differ. Only entries in the
    journal of the end can be compared; other entries are ignored.
    """
    entries: dict[int, list[int]] = defaultdict(list)
    last_seqs: dict[int, list[int]] = defaultdict(list)
    beginnings = fetch(connection, Sql(_BEGINNINGS, (session_key,) * 2))
    for journal, entry, seq in _integers(beginnings):
        entries[journal].append(entry)
        last_seqs[journal].append(max(seq, last_seqs[journal][-1] if last_seqs[journal] else 0))
    ends: dict[int, int] = {}
    for seq, journal, end in _integers(fetch(connection, Sql(_ENDS, (session_key,)))):
        begun = bisect_left(entries[journal], end)
        ends[seq] = last_seqs[journal][begun - 1] + 1 if begun else seq + 1
    return ends


def _integers(rows: Sequence[Row]) -> list[Row]:
    """The rows that hold only integers. Other rows are damaged, which is reported elsewhere."""
    return [row for row in rows if all(isinstance(value, int) for value in row)]


def _extras_of(packed: object, problems: list[str]) -> Digest | None:
    """The digest of the extras that the fact of a message names."""
    if packed is None:
        problems.append("its ledger entry is missing")
        return None
    try:
        extras = json.loads(unpack_fact(packed)).get("extras")
        return None if extras is None else parse_digest(extras)
    except (AttributeError, DamageError, TypeError, ValueError) as error:
        problems.append(f"its fact cannot be read ({error})")
        return None


def _message(
    role: str, found: Mapping[str, bytes], tools: Sequence[ToolView], problems: list[str]
) -> dict[str, Any]:
    """The values of the view of an ordinary message, without a document that is no message."""
    if "document" in found:
        from tooltrail.records.conversations import Message  # noqa: PLC0415  imports pydantic

        try:
            Message.from_json(found["document"])
        except InvalidRecordError as error:
            problems.append(f"its document cannot be read ({first_line(error)})")
            found = {name: data for name, data in found.items() if name != "document"}
    text = found.get("text", b"")
    offers = bool(tools) or (role == OFFERING and not text)
    problems += [f"tool {tool.name}: {tool.damage}" for tool in tools if tool.damage]
    shown = {"role": role, "text": text_from(text), "tools": tuple(tools) if offers else None}
    return {**found, **shown}


def _leg(found: Mapping[str, bytes], problems: list[str]) -> dict[str, Any]:
    """The values of the view of a message about a leg. Its text is only for people."""
    from tooltrail.records.agent_runs import read_leg_fact  # noqa: PLC0415  imports pydantic

    leg = None
    if "document" in found:
        try:
            leg = read_leg_fact(text_from(found["document"]))
        except InvalidRecordError as error:
            problems.append(str(error))
    return {"role": AGENT_RUN, "text": "" if leg is None else leg.sentence, "leg": leg}


def _contents(
    named: Mapping[str, Digest], bodies: Mapping[Digest, Body], problems: list[str]
) -> tuple[dict[str, bytes], tuple[Erasure, ...]]:
    """The bytes of the bodies of a message by name, and the erased bodies."""
    found: dict[str, bytes] = {}
    erased: list[Erasure] = []
    for name, digest in named.items():
        body = bodies[digest]
        if body.data is not None:
            found[name] = body.data
        elif body.erasure is not None:
            erased.append(body.erasure.replaced(name=name))
        else:
            problems.append(f"its {name} cannot be read ({body.damage})")
    return found, tuple(erased)
