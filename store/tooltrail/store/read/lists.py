"""Lists of sessions, artifacts and tools, and the totals of a store.

The path of an artifact follows from its digest, so the order of paths is the order of digests.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path, digest_of_path
from tooltrail.records.digests import ALGORITHM, EMPTY, Digest
from tooltrail.records.errors import InvalidRecordError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed, damage_of, first_line, make_view
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.pages import Order, simplified
from tooltrail.store.read.rows import (
    Row,
    Sql,
    check_limit,
    fetch,
    fetch_value,
    joined,
    limited,
    sum_of,
    where,
)
from tooltrail.store.views import ArtifactView, SessionView, StoreCounts, ToolCalls, ToolView

_COUNTED: Final = "(SELECT count(*) FROM invocations AS i WHERE i.session_key = sessions.key{})"
_IS_OPEN: Final = " AND i.state <> 'success' AND i.state = 'started'"

_SESSION: Final = Columns(
    "sessions: key id parent_id title agent environment opened_at closed_at",
    Computed(_COUNTED.format(""), "invocation_count", "integer"),
    Computed(_COUNTED.format(_IS_OPEN), "open_count", "integer"),
    "sessions: name close_reason",
)
_SELECTED: Final = Sql(f"SELECT {_SESSION.sql} FROM sessions")
_NEWEST: Final = Order("opened_at", oldest_first=False, after=None, table="sessions")

_NEARBY: Final = 200
"""Sessions whose invocations are searched one by one, before an index of the filter is used."""

_ARTIFACT: Final = Columns("artifacts: key digest size stored_size line_count created_at")
_OWNER: Final = Columns("invocations: id")
_USES: Final = ("streams", "invocation_artifacts")
_DIGITS: Final = 64
_HEX: Final = r"[0-9a-f]{0,64}"

_VIEWS: Final = ("v_invocations", "v_sessions", "v_artifacts", "v_omissions")

OFFERING: Final = "tools"
"""The role of messages that offer tools."""

# The family of the latest call of a tool.
_FAMILY: Final = (
    "(SELECT i.family FROM invocations AS i WHERE i.tool_name = tools.name"
    " ORDER BY i.started_at DESC LIMIT 1)"
)
_OFFER: Final = "(SELECT {}(o.message_key) FROM tool_offers AS o WHERE o.tool = tools.digest)"
_BY_OFFER: Final = f"tools.created_at, {_OFFER.format('min')}"
_LATEST_LAST: Final = f"coalesce({_OFFER.format('max')}, 0)"

_TOOL: Final = Columns(
    "tools: digest name",
    Computed("tools.created_at", "offered_at", "time"),
    optional=(Computed(_FAMILY, "family", "text"),),
)

_CALLED: Final = Columns(
    "tools: digest",
    Computed("count(DISTINCT invocations.key)", "call_count", "integer"),
    Computed("min(invocations.started_at)", "first_call_at", "time"),
    Computed("max(invocations.started_at)", "last_call_at", "time"),
)

# An outer join, so that a lost version is reported as damage and not left out.
_OFFERED: Final = f"""
SELECT tool_offers.message_key, {_TOOL.sql} FROM tool_offers
JOIN messages ON messages.key = tool_offers.message_key
LEFT JOIN tools ON tools.digest = tool_offers.tool"""

# A message of a runtime may also have this role: it has a text, and offers nothing.
_LAST_OFFERING: Final = """
SELECT key FROM messages WHERE session_key = ? AND role = ?
AND (text = ? OR key IN (SELECT message_key FROM tool_offers)) ORDER BY seq DESC LIMIT 1"""

# The tools that a session offers last are on offer until its next offer.
_TOOL_CALLS: Final = f"""
WITH offers AS (
    SELECT key, session_key, seq, lead(seq) OVER (PARTITION BY session_key ORDER BY seq) AS until
    FROM messages WHERE role = ?
    AND (text = ? OR key IN (SELECT message_key FROM tool_offers)))
SELECT {_CALLED.sql} FROM offers JOIN tool_offers ON tool_offers.message_key = offers.key
JOIN tools ON tools.digest = tool_offers.tool JOIN invocations
    ON invocations.session_key = offers.session_key AND invocations.seq > offers.seq
    AND (offers.until IS NULL OR invocations.seq < offers.until)
    AND invocations.tool_name = tools.name
GROUP BY tools.digest"""


_INVOCATIONS: Final = Sql(
    f"SELECT count(*), {sum_of('output_size')}, {sum_of('lost_size')},"
    f" {sum_of('CASE WHEN lost_size > 0 THEN 1 ELSE 0 END')} FROM invocations"
)
_NOT_OK: Final = Sql(  # with an index of these alone
    "SELECT outcome, count(*) FROM invocations WHERE outcome <> 'ok' GROUP BY outcome"
)
_ARTIFACTS: Final = Sql(
    f"SELECT count(*), {sum_of('size')}, {sum_of('stored_size')} FROM artifacts"
)
_BODIES: Final = Sql(f"SELECT count(*), {sum_of('size')}, {sum_of('length(data)')} FROM bodies")


def list_sessions(
    connection: Connection, filters: InvocationFilter, *, limit: int | None, cursor: UUID | None
) -> list[SessionView]:
    """See `Reader.sessions`."""
    check_limit(limit)
    after = None
    if cursor is not None:
        after = fetch_value(connection, Sql("SELECT key FROM sessions WHERE id = ?", (cursor,)))
        if after is None:
            raise NotFoundError(f"no session has the id {cursor}")
    behind = _NEWEST._replace(after=after).conditions()
    if filters == ALL:
        return _session_views(connection, _session_rows(connection, behind, limit))
    rows: Sequence[Row] = ()
    if limit is not None:
        # Values that most sessions have are found among the newest, session by session.
        near = Sql("SELECT sessions.key FROM sessions") + where(behind) + _NEWEST.clause
        is_near = Sql("sessions.key IN (SELECT key FROM (") + near + f" LIMIT {_NEARBY}) AS near)"
        of_session = Sql("invocations.session_key = sessions.key")
        fits = where([of_session, *conditions_of(filters, lead="sessions")])
        has_one = Sql("EXISTS (SELECT 1 FROM invocations") + fits + ")"
        rows = _session_rows(connection, [is_near, has_one], limit)
    if limit is None or len(rows) < limit:
        keys = Sql("SELECT invocations.session_key FROM invocations")
        found = keys + where(conditions_of(simplified(filters)))
        is_found = Sql("sessions.key IN (") + found + ")"
        rows = _session_rows(connection, [*behind, is_found], limit)
    return _session_views(connection, rows)


def _session_rows(
    connection: Connection, conditions: Sequence[Sql], limit: int | None
) -> Sequence[Row]:
    return fetch(connection, _SELECTED + where(conditions) + _NEWEST.clause + limited(limit))


def session_view(connection: Connection, key: int) -> SessionView:
    """One session."""
    one = Sql(" WHERE sessions.key = ?", (key,))
    return _session_views(connection, fetch(connection, _SELECTED + one))[0]


def _session_views(connection: Connection, rows: Sequence[Row]) -> list[SessionView]:
    read = [_SESSION.read(row) for row in rows]
    digests = (values["environment"] for values, _ in read)
    bodies = load_bodies(connection, (one for one in digests if one is not None))
    views: list[SessionView] = []
    for values, problems in read:
        # A session without a `session.opened` so far has no environment.
        body = bodies.get(values["environment"], Body())
        if body.damage is not None:
            problems.append("environment names a body that is missing or damaged")
        environment = "{}" if body.data is None else body.data.decode(errors="surrogateescape")
        damage = damage_of("sessions", values["key"], problems)
        views.append(make_view(SessionView, values, environment=environment, damage=damage))
    return views


def list_artifacts(
    connection: Connection,
    *,
    invocation: UUID | None = None,
    session: UUID | None = None,
    beginning: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> list[ArtifactView]:
    """See `Reader.artifacts`."""
    check_limit(limit)
    conditions: list[Sql] = []
    if beginning is not None:
        digits = _digits_of(beginning)
        if digits is None:
            return []
        ends = tuple(bytes.fromhex(digits.ljust(_DIGITS, one)) for one in "0f")
        conditions.append(Sql("artifacts.digest BETWEEN ? AND ?", ends))
    if cursor is not None:
        conditions.append(Sql("artifacts.digest > ?", (connection.sha(digest_of_path(cursor)),)))
    of_session = "invocations.session_key = (SELECT key FROM sessions WHERE id = ?)"
    users = {"invocations.id = ?": invocation, of_session: session}
    if used := [Sql(one, (id_,)) for one, id_ in users.items() if id_ is not None]:
        mine = "JOIN invocations ON invocations.key = used.invocation_key"
        uses = (Sql(f"SELECT used.digest FROM {one} AS used {mine}") + where(used) for one in _USES)
        conditions.append(Sql("artifacts.digest IN (") + joined(" UNION ALL ", uses) + ")")
    query = Sql(f"SELECT {_ARTIFACT.sql} FROM artifacts") + where(conditions)
    query += Sql(" ORDER BY artifacts.digest") + limited(limit)
    return [_artifact_view(row) for row in fetch(connection, query)]


def artifact_owners(connection: Connection, path: str) -> list[UUID]:
    """See `Reader.artifact_owners`."""
    owned = "invocations.key IN (SELECT invocation_key FROM {} WHERE digest = ?)"
    refers = " OR ".join(owned.format(one) for one in _USES)
    order = "ORDER BY invocations.started_at, invocations.key"
    query = f"SELECT {_OWNER.sql} FROM invocations WHERE {refers} {order}"
    rows = fetch(connection, Sql(query, (connection.sha(digest_of_path(path)),) * len(_USES)))
    return [_OWNER.read(row)[0]["id"] for row in rows]


def _digits_of(path: str) -> str | None:
    """The first digits of the digest in the beginning of a path; None if it is not one."""
    if f"{ALGORITHM}/".startswith(path):
        return ""
    folder, _, name = path.removeprefix(f"{ALGORITHM}/").partition("/")
    digits = max(folder, name.partition(".")[0], key=len)
    if not re.fullmatch(_HEX, digits):
        return None
    first = artifact_path(Digest(f"{ALGORITHM}:{digits.ljust(_DIGITS, '0')}"))
    return digits if first.startswith(path) else None


def _artifact_view(row: Row) -> ArtifactView:
    values, problems = _ARTIFACT.read(row)
    # No artifact is empty: this digest replaces one that cannot be read.
    path = "" if values["digest"] == EMPTY else artifact_path(values["digest"])
    damage = damage_of("artifacts", values["key"], problems)
    return make_view(ArtifactView, values, path=path, damage=damage)


def list_tools(connection: Connection, name: str | None, *, latest: bool) -> list[ToolView]:
    """See `Reader.tools`."""
    only = [] if name is None else [Sql("tools.name = ?", (name,))]
    order = _LATEST_LAST if latest else _BY_OFFER
    behind = f" ORDER BY tools.name, {order}, tools.digest"
    query = Sql(f"SELECT {_TOOL.sql} FROM tools") + where(only) + behind
    rows = fetch(connection, query)
    if latest:
        rows = list({row[1]: row for row in rows}.values())
    return _tool_views(connection, rows)


def called_tools(connection: Connection) -> dict[Digest, ToolCalls]:
    """See `Reader.called_tools`."""
    values = (OFFERING, connection.sha(EMPTY))
    read = [_CALLED.read(row)[0] for row in fetch(connection, Sql(_TOOL_CALLS, values))]
    return {one["digest"]: make_view(ToolCalls, one) for one in read}


def offered_tools(connection: Connection, session_key: int) -> list[ToolView]:
    """The last offer of a session, in order."""
    query = Sql(_LAST_OFFERING, (session_key, OFFERING, connection.sha(EMPTY)))
    last = fetch_value(connection, query)
    offers = {} if last is None else offers_of(connection, Sql("messages.key = ?", (last,)))
    return [tool for found in offers.values() for tool in found]


def offers_of(connection: Connection, which: Sql) -> dict[int, list[ToolView]]:
    """The offers of some messages, by the key of the message; each offer is in order."""
    order = " ORDER BY messages.seq, tool_offers.position"
    rows = fetch(connection, Sql(_OFFERED) + where([which]) + order)
    offers: dict[int, list[ToolView]] = defaultdict(list)
    for row, view in zip(rows, _tool_views(connection, [row[1:] for row in rows]), strict=True):
        offers[row[0]].append(view)
    return offers


def _tool_views(connection: Connection, rows: Sequence[Row]) -> list[ToolView]:
    read = [_TOOL.read(row) for row in rows]
    bodies = load_bodies(connection, (values["digest"] for values, _ in read))
    views: list[ToolView] = []
    for values, problems in read:
        body = bodies[values["digest"]]
        definition, unreadable = body.data, body.damage or _problem_of(body.data)
        if unreadable is not None:
            problems.append(f"its definition cannot be read ({first_line(unreadable)})")
            definition = None
        more = {"definition_json": definition, "erasure": body.erasure}
        damage = damage_of("tools", values["digest"], problems)
        views.append(make_view(ToolView, values, **more, damage=damage))
    return views


def _problem_of(definition: bytes | None) -> InvalidRecordError | None:
    """Why the bytes of a definition are not one."""
    from tooltrail.records.conversations import ToolDefinition  # noqa: PLC0415  imports pydantic

    try:
        if definition is not None:
            ToolDefinition.from_json(definition)
    except InvalidRecordError as error:
        return error
    return None


def count_store(connection: Connection, *, with_bodies: bool) -> StoreCounts:
    """See `Reader.counts`."""
    count, *sizes = fetch(connection, _INVOCATIONS)[0]
    outcomes = {str(outcome): number for outcome, number in fetch(connection, _NOT_OK)}
    if ok_count := count - sum(outcomes.values()):
        outcomes["ok"] = ok_count
    bodies: Any = fetch(connection, _BODIES)[0] if with_bodies else (None, None, None)
    return StoreCounts(
        fetch_value(connection, Sql("SELECT count(*) FROM sessions")),
        outcomes,
        *sizes,
        *bodies,
        *fetch(connection, _ARTIFACTS)[0],
    )


def view_columns(connection: Connection) -> list[tuple[str, str]]:
    """See `Reader.view_columns`."""
    return [(view, name) for view in _VIEWS for name in connection.column_names(view)]
