"""Invocations with all their surfaces, in a fixed handful of queries whatever their number.

A damaged invocation is named in its own view, and the others are read all the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, select

from tooltrail.artifacts import artifact_path
from tooltrail.records import DamageError, Digest, Omission, digest_of
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.invocations import SMALL, view_of, with_session
from tooltrail.store.read.rows import AnyRow, AnySelect, Columns, damage_of, fetch
from tooltrail.store.read.streams import select_streams, stream_view
from tooltrail.store.read.texts import StoredTexts, Surfaces, text_from
from tooltrail.store.schema import (
    invocation_artifacts,
    invocations,
    ledger_entries,
    omissions,
    surfaces,
)
from tooltrail.store.views import InvocationDetail, InvocationView, ReceiptView

_START = ledger_entries.alias("start_entries")
_END = ledger_entries.alias("end_entries")

_MORE: Final = Columns(
    invocations.c.policy,
    invocations.c.message_id,
    invocations.c.position,
    optional=(
        surfaces.c.arguments,
        surfaces.c.output,
        surfaces.c.canonical,
        surfaces.c.receipt,
        surfaces.c.renderer,
        surfaces.c.renderer_version,
        _START.c.fact.label("start_fact"),
        _END.c.fact.label("end_fact"),
    ),
)
_ARTIFACT: Final = Columns(
    invocation_artifacts.c.invocation_key,
    invocation_artifacts.c.role,
    invocation_artifacts.c.digest,
)
_OMISSION: Final = Columns(
    omissions.c.invocation_key,
    omissions.c.stage,
    omissions.c.field,
    omissions.c.unit,
    omissions.c.before_count,
    omissions.c.after_count,
    omissions.c.reason,
)


class _Children(NamedTuple):
    """What stands in other tables of one invocation."""

    streams: Sequence[AnyRow]
    artifacts: Sequence[AnyRow]
    omissions: Sequence[AnyRow]


class _Read(NamedTuple):
    """One invocation whose small columns are read.

    Attributes:
        key: of its row.
        summary: the small facts.
        texts: the columns of its surfaces.
        rest: policy, message, position, name and version of the renderer.
        problems: what cannot be read.
    """

    key: int
    summary: InvocationView
    texts: StoredTexts
    rest: tuple[Digest, UUID | None, int, str | None, int | None]
    problems: list[str]


def select_details(which: ColumnElement[bool]) -> AnySelect:
    """Some invocations with their texts and facts, in their order; whatever else may be lost."""
    mine = _START.c.journal_key == invocations.c.journal_key
    ended = _END.c.journal_key == invocations.c.journal_key
    return (
        select(*SMALL.selected, *_MORE.selected)
        .select_from(
            with_session()
            .outerjoin(surfaces, surfaces.c.invocation_key == invocations.c.key)
            .outerjoin(_START, mine & (_START.c.n == invocations.c.start_entry))
            .outerjoin(_END, ended & (_END.c.n == invocations.c.end_entry))
        )
        .where(which)
        .order_by(invocations.c.session_key, invocations.c.seq)
    )


def select_artifacts(which: ColumnElement[bool]) -> AnySelect:
    """The artifacts of the canonical results of some invocations, by their index."""
    row = invocation_artifacts.c
    mine = invocations.c.key == row.invocation_key
    query = select(*_ARTIFACT.selected).select_from(invocation_artifacts).join(invocations, mine)
    return query.where(which).order_by(row.invocation_key, row.n)


def select_omissions(which: ColumnElement[bool]) -> AnySelect:
    """What was left out of some invocations, in the order of the stages."""
    mine = invocations.c.key == omissions.c.invocation_key
    query = select(*_OMISSION.selected).select_from(omissions).join(invocations, mine)
    return query.where(which).order_by(omissions.c.invocation_key, omissions.c.n)


def detail_of(connection: Connection, key: int) -> InvocationDetail:
    """One invocation.

    Raises:
        DamageError: a row or a text of it is not what was recorded.
    """
    detail = details_of(connection, invocations.c.key == key)[0]
    if detail.damage is not None:
        raise DamageError(detail.damage, path=str(detail.summary.id))
    return detail


def details_of_session(connection: Connection, key: int) -> list[InvocationDetail]:
    """All invocations of a session in their order; a damaged one says so."""
    return details_of(connection, invocations.c.session_key == key)


def details_of(connection: Connection, which: ColumnElement[bool]) -> list[InvocationDetail]:
    """Some invocations; a damaged one says so, and has no surfaces."""
    read = [_read(row) for row in fetch(connection, select_details(which))]
    found = [
        _grouped(fetch(connection, query(which)))
        for query in (select_streams, select_artifacts, select_omissions)
    ]
    texts = _load_texts(connection, read)
    return [
        _detail(one, text, _Children(*(group.get(one.key, ()) for group in found)))
        for one, text in zip(read, texts, strict=True)
    ]


def _read(row: AnyRow) -> _Read:
    problems: list[str] = []
    key, *small = SMALL.read(row, problems)
    more = _MORE.read(row[len(SMALL) :], problems)
    policy, message, position = more[:3]
    arguments, output, canonical, receipt, renderer, version, start, end = more[3:]
    summary = view_of(key, small, problems)
    texts = StoredTexts(
        summary.id,
        arguments,
        output,
        canonical,
        receipt,
        start,
        end,
        has_ended=summary.state != "started",
    )
    return _Read(key, summary, texts, (policy, message, position, renderer, version), problems)


def _load_texts(connection: Connection, read: Sequence[_Read]) -> list[Surfaces | DamageError]:
    """The exact texts of some invocations. The bodies of texts that are not exact are read once."""
    first = [_texts_of(one, {}) for one in read]
    wanted = {digest for one in read for digest in one.texts.wanted}
    if not wanted:
        return first
    bodies = load_bodies(connection, wanted)
    return [
        _texts_of(one, bodies) if one.texts.wanted else found
        for one, found in zip(read, first, strict=True)
    ]


def _texts_of(one: _Read, bodies: Mapping[Digest, Any]) -> Surfaces | DamageError:
    try:
        return one.texts.read(bodies)
    except DamageError as error:
        return error


def _detail(one: _Read, texts: Surfaces | DamageError, children: _Children) -> InvocationDetail:
    problems = list(one.problems)
    streams = [stream_view(row, one.summary.id, problems) for row in children.streams]
    artifacts = [_artifact(row, problems) for row in children.artifacts]
    left_out = [_omission(row, problems) for row in children.omissions]
    policy, message, position, renderer, version = one.rest
    damage = damage_of(invocations.name, one.key, problems)
    if damage is None and isinstance(texts, DamageError):
        damage = str(texts)
    if isinstance(texts, DamageError):
        texts = Surfaces(b"", None, None, None)
    receipt = texts.receipt
    return InvocationDetail(
        replace(one.summary, damage=damage),
        texts.arguments,
        policy,
        None if texts.output is None else text_from(texts.output),
        tuple(streams),
        None if texts.canonical is None else text_from(texts.canonical),
        tuple(artifacts),
        None
        if receipt is None
        else ReceiptView(
            text_from(receipt), digest_of(receipt), renderer or "", version or 0, policy
        ),
        tuple(one for one in left_out if one is not None),
        message,
        None if message is None else position,
        damage=damage,
    )


def _artifact(row: AnyRow, problems: list[str]) -> tuple[str, str]:
    _, role, digest = _ARTIFACT.read(row, problems)
    return role, artifact_path(digest)


def _omission(row: AnyRow, problems: list[str]) -> Omission | None:
    _, stage, field, unit, before, after, reason = _OMISSION.read(row, problems)
    try:
        return Omission(
            stage=stage, field=field, unit=unit, before=before, after=after, reason=reason
        )
    except ValidationError:
        problems.append("an omission is none")
        return None


def _grouped(rows: Sequence[AnyRow]) -> Mapping[int, list[AnyRow]]:
    groups: dict[int, list[AnyRow]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups
