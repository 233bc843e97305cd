"""Reads invocations with all their surfaces. The number of queries does not depend on theirs.

The view of a damaged invocation reports its damage. The other invocations are still read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError
from tooltrail.records.facts import OmissionFact
from tooltrail.records.plain_text import text_from
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed, damage_of
from tooltrail.store.read.pages import SMALL_COLUMNS, WITH_SESSION, view_of
from tooltrail.store.read.rows import Row, Sql, fetch, where
from tooltrail.store.read.streams import select_streams, stream_view
from tooltrail.store.read.texts import Surfaces, read_texts
from tooltrail.store.views import InvocationDetail, ReceiptView

_DETAIL: Final = Columns(
    *SMALL_COLUMNS,
    "invocations: policy message_id position",
    optional=(
        Computed("COALESCE(invocations.environment, sessions.environment)", "ran_in", "digest"),
        "surfaces: renderer renderer_version arguments output canonical receipt shown is_exact",
        Computed("start_entries.fact", "start_fact", "bytes"),
        Computed("end_entries.fact", "end_fact", "bytes"),
        Computed("receipt_entries.fact", "receipt_fact", "bytes"),
    ),
)
_ARTIFACT: Final = Columns("invocation_artifacts: invocation_key role digest")
_OMISSION: Final = Columns(
    "omissions: invocation_key stage field unit before_count after_count reason"
)
_DETAILS: Final = f"""
SELECT {_DETAIL.sql} FROM {WITH_SESSION}
LEFT JOIN surfaces ON surfaces.invocation_key = invocations.key
LEFT JOIN ledger_entries AS start_entries
    ON start_entries.journal_key = invocations.journal_key
    AND start_entries.n = invocations.start_entry
LEFT JOIN ledger_entries AS end_entries
    ON end_entries.journal_key = invocations.end_journal_key
    AND end_entries.n = invocations.end_entry
LEFT JOIN ledger_entries AS receipt_entries
    ON receipt_entries.journal_key = surfaces.receipt_journal_key
    AND receipt_entries.n = surfaces.receipt_entry"""


def detail_of(connection: Connection, key: int) -> InvocationDetail:
    """One invocation; raises `DamageError` if a row or a text of it is damaged."""
    detail = details_of(connection, Sql("invocations.key = ?", (key,)))[0]
    if detail.damage is not None:
        raise DamageError(detail.damage, path=str(detail.summary.id))
    return detail


def details_of(
    connection: Connection,
    which: Sql,
    *,
    outputs: bool = True,
    ends: Mapping[int, int] = MappingProxyType({}),
) -> list[InvocationDetail]:
    """Some invocations in order. A damaged invocation has `damage` and no surfaces.

    `which` selects them. With `outputs`, their complete outputs and streams are read, too. `ends`
    has the `ended_at_seq` by `seq`, if known.
    """
    order = " ORDER BY invocations.session_key, invocations.seq"
    read = [_DETAIL.read(row) for row in fetch(connection, Sql(_DETAILS) + where([which]) + order)]
    ran_in = {one["ran_in"] for one, _ in read if outputs and one["ran_in"] is not None}
    environments = load_bodies(connection, ran_in)
    texts = read_texts(connection, [values for values, _ in read], outputs=outputs)
    children = (
        _by_owner(fetch(connection, select_streams(which)) if outputs else []),
        _by_owner(fetch(connection, _select_children("invocation_artifacts", _ARTIFACT, which))),
        _by_owner(fetch(connection, _select_children("omissions", _OMISSION, which))),
    )
    return [
        _detail(row, surfaces, ends, environments.get(row[0]["ran_in"]), children)
        for row, surfaces in zip(read, texts, strict=True)
    ]


def _select_children(table: str, columns: Columns, which: Sql) -> Sql:
    source = f"{table} JOIN invocations ON invocations.key = {table}.invocation_key"
    order = f" ORDER BY {table}.invocation_key, {table}.n"
    return Sql(f"SELECT {columns.sql} FROM {source}") + where([which]) + order


def _detail(
    row: tuple[Mapping[str, Any], list[str]],
    surfaces: Surfaces,
    ends: Mapping[int, int],
    environment: Body | None,
    children: Sequence[Mapping[int, list[Row]]],
) -> InvocationDetail:
    values, problems = row
    streams, artifacts, omissions = (one.get(values["key"], ()) for one in children)
    erasures = {each.name: each for each in surfaces.erased}
    read_streams = [stream_view(row, values["id"], erasures) for row in streams]
    read_artifacts = [_ARTIFACT.read(row) for row in artifacts]
    read_omissions = [_OMISSION.read(row) for row in omissions]
    for _, more in (*read_streams, *read_artifacts, *read_omissions):
        problems += more
    damage = damage_of("invocations", values["key"], problems) or surfaces.damage
    lost, ran_in = None, None if environment is None else environment.data
    if environment is not None and environment.damage is not None:
        # The texts and the streams of the call can still be read.
        lost = f"the environment of call {values['id']} is damaged: {environment.damage}"
        ran_in = b"{}"
    message = values["message_id"]
    return InvocationDetail(
        view_of(values, damage or lost),
        surfaces.texts.get("arguments", b""),
        values["policy"],
        _text(surfaces, "output"),
        tuple(view for view, _ in read_streams),
        _text(surfaces, "canonical"),
        tuple((one["role"], artifact_path(one["digest"])) for one, _ in read_artifacts),
        _receipt(surfaces, values),
        tuple(OmissionFact(*list(one.values())[1:]) for one, _ in read_omissions),
        message,
        None if message is None else values["position"],
        ends.get(values["seq"]),
        damage=damage,
        erased=surfaces.erased,
        source=surfaces.source,
        redacted=surfaces.redacted,
        extras=_text(surfaces, "extras"),
        environment=None if ran_in is None else text_from(ran_in),
    )


def _text(surfaces: Surfaces, name: str) -> str | None:
    """A text; None if it is erased, or if the source of an imported call does not have it."""
    return text_from(surfaces.texts[name]) if surfaces.texts.get(name) else None


def _receipt(surfaces: Surfaces, values: Mapping[str, Any]) -> ReceiptView | None:
    data = surfaces.texts.get("receipt")
    if data is None:
        return None
    worded_by = (values["renderer"] or "", values["renderer_version"] or 0)
    return ReceiptView(text_from(data), digest_of(data), *worded_by, values["policy"])


def _by_owner(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups
