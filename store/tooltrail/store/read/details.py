"""Invocations with all their surfaces, in a fixed handful of queries whatever their number.

A damaged invocation is named in its own view, and the others are read all the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns, Computed, damage_of
from tooltrail.store.read.invocations import SMALL, WITH_SESSION, view_of
from tooltrail.store.read.rows import Row, Sql, fetch, where
from tooltrail.store.read.streams import select_streams, stream_view
from tooltrail.store.read.texts import StoredTexts, Surfaces, read_texts, text_from
from tooltrail.store.views import InvocationDetail, InvocationView, OmissionView, ReceiptView

_MORE: Final = Columns(
    "invocations: policy message_id position",
    optional=(
        "surfaces: renderer renderer_version arguments output canonical receipt shown is_exact",
        Computed("start_entries.fact", "start_fact", "bytes"),
        Computed("end_entries.fact", "end_fact", "bytes"),
    ),
)
_ARTIFACT: Final = Columns("invocation_artifacts: invocation_key role digest")
_OMISSION: Final = Columns(
    "omissions: invocation_key stage field unit before_count after_count reason"
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
    """Some invocations in their order; a damaged one says so, and has no surfaces."""
    order = " ORDER BY invocations.session_key, invocations.seq"
    read = [_read(row) for row in fetch(connection, Sql(_DETAILS) + where([which]) + order)]
    streams = _grouped(fetch(connection, select_streams(which)))
    artifacts, omissions = (
        _grouped(fetch(connection, _select_children(table, columns, which)))
        for table, columns in (("invocation_artifacts", _ARTIFACT), ("omissions", _OMISSION))
    )
    texts = read_texts(connection, [one.texts for one in read])
    return [
        _detail(
            one, surfaces, *(group.get(one.key, ()) for group in (streams, artifacts, omissions))
        )
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
    surfaces: Surfaces,
    streams: Sequence[Row],
    artifacts: Sequence[Row],
    omissions: Sequence[Row],
) -> InvocationDetail:
    problems = list(one.problems)
    erasures = {each.name: each for each in surfaces.erased}
    children = (
        tuple(stream_view(row, one.summary.id, problems, erasures) for row in streams),
        tuple(_artifact(row, problems) for row in artifacts),
        tuple(OmissionView(*_OMISSION.read(row, problems)[1:]) for row in omissions),
    )
    damage = damage_of("invocations", one.key, problems) or surfaces.damage
    policy, message, position, renderer, version = one.rest
    texts = {name: text_from(data) for name, data in surfaces.texts.items() if name != "arguments"}
    receipt = None
    if "receipt" in texts:
        digest = digest_of(surfaces.texts["receipt"])
        receipt = ReceiptView(texts["receipt"], digest, renderer or "", version or 0, policy)
    return InvocationDetail(
        one.summary if damage is None else replace(one.summary, damage=damage),
        surfaces.texts.get("arguments", b""),
        policy,
        texts.get("output"),
        children[0],
        texts.get("canonical"),
        children[1],
        receipt,
        children[2],
        message,
        None if message is None else position,
        damage=damage,
        erased=surfaces.erased,
    )


def _artifact(row: Row, problems: list[str]) -> tuple[str, str]:
    _, role, digest = _ARTIFACT.read(row, problems)
    return role, artifact_path(digest)


def _grouped(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups
