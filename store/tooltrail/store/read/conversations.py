"""The messages of a session, and how its entries stand to each other in time."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select, union_all
from sqlalchemy.sql.selectable import CompoundSelect

from tooltrail.records import DamageError, InvalidRecordError, read_leg_fact
from tooltrail.records.digests import Digest
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.details import details_of_session
from tooltrail.store.read.rows import AnyRow, AnySelect, AnyUnion, Columns, damage_of, fetch
from tooltrail.store.read.texts import text_from
from tooltrail.store.read.tools import OFFERING, offers_of
from tooltrail.store.schema import agent_legs, agent_outcomes, invocations, messages
from tooltrail.store.views import InvocationDetail, MessageView

AGENT_RUN: Final = "agent"
"""The role of messages that tell a fact about a leg of an agent run."""

_LEG_ROLES: Final = ("agent_leg", "agent_outcome")

_MESSAGE: Final = Columns(
    messages.c.key,
    messages.c.id,
    messages.c.seq,
    messages.c.role,
    messages.c.created_at,
    messages.c.text,
    messages.c.document,
    messages.c.payload,
    messages.c.wire_format,
)


class _Message(NamedTuple):
    """One message whose row is read."""

    key: int
    view: MessageView
    text: Digest
    document: Digest | None
    payload: Digest | None
    problems: list[str]


def select_messages(session_key: int) -> AnySelect:
    """The messages of a session, in their order."""
    query = select(*_MESSAGE.selected).where(messages.c.session_key == session_key)
    return query.order_by(messages.c.seq)


def select_legs(session_key: int) -> CompoundSelect[int]:
    """Keys of the messages of a session that tell of a leg of an agent run."""
    tables = (agent_legs, agent_outcomes)
    return union_all(
        *(select(one.c.message_key).where(one.c.session_key == session_key) for one in tables)
    )


def select_beginnings(session_key: int) -> AnyUnion:
    """Journal, ledger entry and place of every entry of a session, in the order of the ledger."""
    begun = (
        select(one.c.journal_key, entry, one.c.seq).where(one.c.session_key == session_key)
        for one, entry in (
            (messages, messages.c.entry),
            (invocations, invocations.c.start_entry.label("entry")),
        )
    )
    return union_all(*begun).order_by("journal_key", "entry")


def select_ends(session_key: int) -> AnySelect:
    """Id, journal and ledger entry of the end of every invocation of a session that has ended."""
    row = invocations.c
    mine = (row.session_key == session_key, row.end_entry.is_not(None))
    return select(row.seq, row.journal_key, row.end_entry).where(*mine)


def messages_of(
    connection: Connection, session_key: int, *, payloads: bool = False
) -> list[MessageView]:
    """The messages of a session in their order; a damaged one says so.

    Args:
        connection: a snapshot.
        session_key: of the session.
        payloads: whether to read what providers sent of the messages, too.
    """
    read = [_read(row) for row in fetch(connection, select_messages(session_key))]
    roles = {one.view.role for one in read}
    legs: set[int] = set()
    if not roles.isdisjoint(_LEG_ROLES):
        legs = {row[0] for row in connection.execute(select_legs(session_key))}
    offers: Mapping[int, Any] = {}
    if OFFERING in roles:
        offers = offers_of(connection, messages.c.session_key == session_key)
    digests = [one for message in read for one in (message.text, message.document)]
    if payloads:
        digests += [message.payload for message in read]
    bodies = load_bodies(connection, (one for one in digests if one is not None))
    return [
        _leg_view(one, bodies) if one.key in legs else _view(one, bodies, offers.get(one.key, ()))
        for one in read
    ]


def invocations_of(connection: Connection, session_key: int) -> list[InvocationDetail]:
    """All invocations of a session in their order, each with `ended_at_seq`."""
    ends = _ends(connection, session_key)
    return [
        replace(one, ended_at_seq=ends.get(one.summary.seq))
        for one in details_of_session(connection, session_key)
    ]


def _ends(connection: Connection, session_key: int) -> Mapping[int, int]:
    """For each `seq` of an ended invocation, the `seq` of the first entry that began later.

    By the order of the ledger; clocks of several machines differ. Entries of other journals than
    that of the invocation say nothing.
    """
    entries: dict[int, list[int]] = defaultdict(list)
    last_seqs: dict[int, list[int]] = defaultdict(list)
    for journal, entry, seq in _counts(fetch(connection, select_beginnings(session_key))):
        entries[journal].append(entry)
        last_seqs[journal].append(max(seq, last_seqs[journal][-1] if last_seqs[journal] else 0))
    ends: dict[int, int] = {}
    for seq, journal, end in _counts(fetch(connection, select_ends(session_key))):
        begun = bisect_left(entries[journal], end)
        ends[seq] = last_seqs[journal][begun - 1] + 1 if begun else seq + 1
    return ends


def _counts(rows: Sequence[AnyRow]) -> list[AnyRow]:
    """The rows that hold integers and nothing else; others are damaged, and named elsewhere."""
    return [row for row in rows if all(isinstance(value, int) for value in row)]


def _read(row: AnyRow) -> _Message:
    problems: list[str] = []
    key, *small, text, document, payload, wire_format = _MESSAGE.read(row, problems)
    message_id, seq, role, created_at = small
    view = MessageView(message_id, seq, role, "", created_at, wire_format=wire_format)
    return _Message(key, view, text, document, payload, problems)


def _view(one: _Message, bodies: Mapping[Digest, Body], tools: Sequence[Any]) -> MessageView:
    problems = list(one.problems)
    text = _body(one.text, bodies, "text", problems)
    document = _body(one.document, bodies, "document", problems)
    payload = _body(one.payload, bodies, "payload", problems)
    offers = bool(tools) or (one.view.role == OFFERING and not text)
    problems += [f"tool {tool.name}: {tool.damage}" for tool in tools if tool.damage]
    return replace(
        one.view,
        text=text_from(text or b""),
        document=document,
        payload=payload,
        tools=tuple(tools) if offers else None,
        damage=damage_of(messages.name, one.key, problems),
    )


def _leg_view(one: _Message, bodies: Mapping[Digest, Body]) -> MessageView:
    """A message that tells of a leg. Its text is for people alone."""
    problems = list(one.problems)
    document = _body(one.document, bodies, "document", problems)
    leg = None
    if document is not None:
        try:
            leg = read_leg_fact(text_from(document))
        except InvalidRecordError as error:
            problems.append(str(error))
    return replace(
        one.view,
        role=AGENT_RUN,
        text="" if leg is None else leg.sentence,
        leg=leg,
        damage=damage_of(messages.name, one.key, problems),
    )


def _body(
    digest: Digest | None, bodies: Mapping[Digest, Body], name: str, problems: list[str]
) -> bytes | None:
    """A body that was asked for."""
    if digest is None or digest not in bodies:
        return None
    try:
        return bodies[digest].read()
    except DamageError as error:
        problems.append(f"its {name} cannot be read ({error})")
        return None
