"""Invocations with all their surfaces, in a fixed handful of queries whatever their number.

A damaged invocation is named in its own view, and the others are read all the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.call_facts import OmissionFact
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.invocations import SMALL, WITH_SESSION, view_of
from tooltrail.store.read.rows import Columns, Computed, Row, Sql, damage_of, fetch, where
from tooltrail.store.read.streams import select_streams, stream_view
from tooltrail.store.read.texts import StoredTexts, Surfaces, read_texts, text_from
from tooltrail.store.views import InvocationDetail, InvocationView, ReceiptView

_MORE: Final = Columns(
    "invocations.policy",
    "invocations.message_id",
    "invocations.position",
    optional=(
        "surfaces.renderer",
        "surfaces.renderer_version",
        "surfaces.arguments",
        "surfaces.output",
        "surfaces.canonical",
        "surfaces.receipt",
        "surfaces.shown",
        "surfaces.is_exact",
        Computed("start_entries.fact", "start_fact", "text"),
        Computed("end_entries.fact", "end_fact", "text"),
    ),
)
_ARTIFACT: Final = Columns(
    "invocation_artifacts.invocation_key",
    "invocation_artifacts.role",
    "invocation_artifacts.digest",
)
_OMISSION: Final = Columns(
    "omissions.invocation_key",
    "omissions.stage",
    "omissions.field",
    "omissions.unit",
    "omissions.before_count",
    "omissions.after_count",
    "omissions.reason",
)
_DETAILS: Final = f"""
SELECT {SMALL.sql}, {_MORE.sql} FROM {WITH_SESSION}
LEFT JOIN surfaces ON surfaces.invocation_key = invocations.key
LEFT JOIN ledger_entries AS start_entries
    ON start_entries.journal_key = invocations.journal_key
    AND start_entries.n = invocations.start_entry
LEFT JOIN ledger_entries AS end_entries
    ON end_entries.journal_key = invocations.end_journal_key
    AND end_entries.n = invocations.end_entry"""


class _Read(NamedTuple):
    """One invocation whose columns are read.

    Attributes:
        key: of its row.
        summary: the small facts.
        rest: policy, message, position, name and version of the renderer.
        texts: the columns of its surfaces.
        problems: what cannot be read.
    """

    key: int
    summary: InvocationView
    rest: Sequence[Any]
    texts: StoredTexts
    problems: list[str]


def select_details(which: Sql) -> Sql:
    """Some invocations with their texts and facts, in their order; whatever else may be lost."""
    order = " ORDER BY invocations.session_key, invocations.seq"
    return Sql(_DETAILS) + where([which]) + order


def select_artifacts(which: Sql) -> Sql:
    """The artifacts of the canonical results of some invocations, by their index."""
    return _select_children("invocation_artifacts", _ARTIFACT, which)


def select_omissions(which: Sql) -> Sql:
    """What was left out of some invocations, in the order of the stages."""
    return _select_children("omissions", _OMISSION, which)


def detail_of(connection: Connection, key: int) -> InvocationDetail:
    """One invocation.

    Raises:
        DamageError: a row or a text of it is not what was recorded.
    """
    detail = details_of(connection, Sql("invocations.key = ?", (key,)))[0]
    if detail.damage is not None:
        raise DamageError(detail.damage, path=str(detail.summary.id))
    return detail


def details_of(connection: Connection, which: Sql) -> list[InvocationDetail]:
    """Some invocations; a damaged one says so, and has no surfaces."""
    read = [_read(row) for row in fetch(connection, select_details(which))]
    children = [
        _grouped(fetch(connection, query(which)))
        for query in (select_streams, select_artifacts, select_omissions)
    ]
    texts = read_texts(connection, [one.texts for one in read])
    return [
        _detail(one, surfaces, *(group.get(one.key, ()) for group in children))
        for one, surfaces in zip(read, texts, strict=True)
    ]


def _select_children(table: str, columns: Columns, which: Sql) -> Sql:
    source = f"{table} JOIN invocations ON invocations.key = {table}.invocation_key"
    order = f" ORDER BY {table}.invocation_key, {table}.n"
    return Sql(f"SELECT {columns.sql} FROM {source}") + where([which]) + order


def _read(row: Row) -> _Read:
    problems: list[str] = []
    key, *small = SMALL.read(row, problems)
    more = _MORE.read(row[len(SMALL) :], problems)
    summary = view_of(key, small, problems)
    texts = StoredTexts(summary.id, summary.state != "started", *more[5:])
    return _Read(key, summary, more[:5], texts, problems)


def _detail(
    one: _Read,
    texts: Surfaces,
    streams: Sequence[Row],
    artifacts: Sequence[Row],
    omissions: Sequence[Row],
) -> InvocationDetail:
    problems = list(one.problems)
    erasure = next((each for each in texts.erased if each.name == "receipt"), None)
    stream_views = tuple(stream_view(row, one.summary.id, problems, erasure) for row in streams)
    artifact_names = tuple(_artifact(row, problems) for row in artifacts)
    left_out = tuple(_omission(row, problems) for row in omissions)
    policy, message, position, renderer, version = one.rest
    receipt = texts.receipt
    damage = damage_of("invocations", one.key, problems) or texts.damage
    return InvocationDetail(
        replace(one.summary, damage=damage),
        texts.arguments or b"",
        policy,
        None if texts.output is None else text_from(texts.output),
        stream_views,
        None if texts.canonical is None else text_from(texts.canonical),
        artifact_names,
        None
        if receipt is None
        else ReceiptView(
            text_from(receipt), digest_of(receipt), renderer or "", version or 0, policy
        ),
        left_out,
        message,
        None if message is None else position,
        damage=damage,
        erased=texts.erased,
    )


def _artifact(row: Row, problems: list[str]) -> tuple[str, str]:
    _, role, digest = _ARTIFACT.read(row, problems)
    return role, artifact_path(digest)


def _omission(row: Row, problems: list[str]) -> OmissionFact:
    _, stage, field, unit, before, after, reason = _OMISSION.read(row, problems)
    return OmissionFact(
        stage=stage, field=field, unit=unit, before=before, after=after, reason=reason
    )


def _grouped(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups
