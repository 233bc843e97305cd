"""SQL views for people, notebooks and tools such as Datasette.

Ids are UUIDs in text, times ISO 8601 in UTC, digests `sha256:<hex>`, flags as the database has
them. A view shows what the tables hold: `canonical` may have references into `receipt`, see
`tests.support.schema.surfaces`.

    v_invocations   one row for each call, with its session, its status and its texts
    v_sessions      one row for each session, with how many calls it has
    v_artifacts     one row for each use of an artifact; one without a use has no invocation
    v_omissions     one row for each thing that a stage left out
"""

import re
from typing import Final, Literal

Dialect = Literal["sqlite", "postgresql"]

_SPELLED: Final = re.compile(r"\b(uuid|moment|digest|digits)\(([a-z_.]+)\)")
"""A value that the two databases keep, and spell, differently."""

_REST: Final = "((COLUMN % 1000000 + 1000000) % 1000000)"
"""Microseconds of a second; the remainder of a time before 1970 is negative."""

_SPELLINGS: Final[dict[Dialect, dict[str, str]]] = {
    "sqlite": {
        "uuid": "CASE WHEN COLUMN IS NOT NULL THEN lower(substr(hex(COLUMN), 1, 8) || '-' ||"
        " substr(hex(COLUMN), 9, 4) || '-' || substr(hex(COLUMN), 13, 4) || '-' ||"
        " substr(hex(COLUMN), 17, 4) || '-' || substr(hex(COLUMN), 21)) END",
        "moment": f"strftime('%Y-%m-%dT%H:%M:%S', (COLUMN - {_REST}) / 1000000, 'unixepoch')"
        f" || printf('.%06dZ', {_REST})",
        "digest": "CASE WHEN COLUMN IS NOT NULL THEN 'sha256:' || lower(hex(COLUMN)) END",
        "digits": "lower(hex(COLUMN))",
    },
    "postgresql": {
        "uuid": "CAST(COLUMN AS text)",
        "moment": "to_char(COLUMN AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
        "digest": "'sha256:' || encode(COLUMN, 'hex')",
        "digits": "encode(COLUMN, 'hex')",
    },
}


def view_ddl(dialect: Dialect) -> list[str]:
    """Statements that make the views.

    Args:
        dialect: `sqlite` or `postgresql`.
    """
    spellings = _SPELLINGS[dialect]

    def spell(found: re.Match[str]) -> str:
        return spellings[found[1]].replace("COLUMN", found[2])

    return [f"CREATE VIEW {name} AS {_SPELLED.sub(spell, query)}" for name, query in VIEWS.items()]


VIEWS: Final = {
    "v_invocations": """SELECT
    uuid(i.id) AS id,
    uuid(s.id) AS session_id,
    s.name AS session_name,
    s.agent AS agent,
    i.seq AS seq,
    i.state AS state,
    CASE i.state WHEN 'success' THEN 'success' WHEN 'started' THEN NULL ELSE 'error' END AS status,
    i.tool_name AS tool_name,
    i.family AS family,
    i.call_id AS call_id,
    uuid(i.message_id) AS message_id,
    i.position AS position,
    moment(i.started_at) AS started_at,
    moment(i.finished_at) AS finished_at,
    i.duration_ms AS duration_ms,
    i.error_kind AS error_kind,
    i.exit_status AS exit_status,
    i.signal AS signal,
    i.timed_out AS timed_out,
    i.output_size AS output_size,
    i.lost_size AS lost_size,
    i.truncated AS truncated,
    i.is_late AS is_late,
    digest(i.policy) AS policy,
    i.title AS title,
    t.arguments AS arguments,
    t.output AS output,
    t.canonical AS canonical,
    t.receipt AS receipt,
    t.renderer AS renderer,
    t.renderer_version AS renderer_version,
    t.is_exact AS is_exact
FROM invocations AS i
LEFT JOIN sessions AS s ON s.key = i.session_key
LEFT JOIN surfaces AS t ON t.invocation_key = i.key""",
    "v_sessions": """SELECT
    uuid(s.id) AS id,
    s.name AS name,
    s.title AS title,
    s.agent AS agent,
    uuid(s.parent_id) AS parent_id,
    moment(s.opened_at) AS opened_at,
    moment(s.closed_at) AS closed_at,
    s.close_reason AS close_reason,
    digest(s.environment) AS environment,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key) AS invocation_count,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key
        AND i.state = 'started') AS open_count
FROM sessions AS s""",
    "v_artifacts": """SELECT
    digest(a.digest) AS digest,
    'sha256/' || substr(digits(a.digest), 1, 2) || '/' || digits(a.digest) || '.zst' AS path,
    a.size AS size,
    a.stored_size AS stored_size,
    a.line_count AS line_count,
    moment(a.created_at) AS created_at,
    u.role AS role,
    uuid(i.id) AS invocation_id,
    i.tool_name AS tool_name,
    uuid(s.id) AS session_id,
    s.name AS session_name
FROM artifacts AS a
LEFT JOIN (
    SELECT invocation_key, digest, role FROM streams
    UNION SELECT invocation_key, digest, role FROM invocation_artifacts
) AS u ON u.digest = a.digest
LEFT JOIN invocations AS i ON i.key = u.invocation_key
LEFT JOIN sessions AS s ON s.key = i.session_key""",
    "v_omissions": """SELECT
    uuid(i.id) AS invocation_id,
    i.tool_name AS tool_name,
    uuid(s.id) AS session_id,
    s.name AS session_name,
    moment(i.started_at) AS started_at,
    o.n AS n,
    o.stage AS stage,
    o.field AS field,
    o.unit AS unit,
    o.before_count AS before_count,
    o.after_count AS after_count,
    o.before_count - o.after_count AS omitted_count,
    o.reason AS reason
FROM omissions AS o
LEFT JOIN invocations AS i ON i.key = o.invocation_key
LEFT JOIN sessions AS s ON s.key = i.session_key""",
}
"""The query of each view. The state says the status, so that damaged JSON stops no view."""
