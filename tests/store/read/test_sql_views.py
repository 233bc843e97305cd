"""The SQL views: each runs on both engines and shows what was recorded."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.support.call_facts import moment
from tests.support.recorded_calls import call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.artifacts import artifact_path
from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import digest_of
from tooltrail.records.facts import ArtifactFact, OmissionFact, SessionClosed, SessionOpened, Shown
from tooltrail.store.references import shorten_output

pytestmark = pytest.mark.both_engines

LOG = b"line\n" * 4_000


def rows(store: StoreParts, sql: str) -> list[dict[str, Any]]:
    with store.database.read() as connection:
        cursor: Any = connection.driver.cursor()
        cursor.execute(sql)
        names = [one[0] for one in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def spelled(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


def test_every_view_is_empty_in_an_empty_store(parts: StoreParts) -> None:
    for name in ("v_invocations", "v_sessions", "v_artifacts", "v_omissions"):
        assert rows(parts, f"SELECT * FROM {name}") == []


def test_invocations_show_readable_ids_times_and_digests(parts: StoreParts) -> None:
    session, message = new_id(), new_id()
    ended = call(
        session, 12.5, receipt=b"the receipt", start={"call_id": "c/1", "message": message}
    )
    running = call(session, 13, state=None)
    opened = SessionOpened(session=session, at=moment(1), name="nightly", agent="tester")
    parts.ingest(Entry(opened), *ended.entries(), *running.entries())
    first, second = rows(parts, "SELECT * FROM v_invocations ORDER BY seq")
    assert ended.ended is not None
    assert {
        "id": str(ended.started.id),
        "session_id": str(session),
        "session_name": "nightly",
        "agent": "tester",
        "seq": 1,
        "state": "success",
        "status": "success",
        "tool_name": "bash",
        "call_id": "c/1",
        "message_id": str(message),
        "started_at": spelled(ended.started.at),
        "finished_at": spelled(ended.ended.at),
        "duration_ms": 5,
        "policy": digest_of(ended.policy),
        "arguments": ended.arguments.decode(),
        "output": shorten_output(ended.document.decode(), ended.ended.streams),
        "receipt": "the receipt",
        "renderer": "seen",
    }.items() <= first.items()
    assert (second["state"], second["status"], second["finished_at"]) == ("started", None, None)
    assert second["message_id"] is None


def test_a_failed_call_has_the_status_error(parts: StoreParts) -> None:
    parts.ingest(*call(new_id(), receipt=b"no", state="denied").entries())
    assert rows(parts, "SELECT state, status FROM v_invocations") == [
        {"state": "denied", "status": "error"}
    ]


@pytest.mark.parametrize(
    "opened_at",
    [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 2, 28, 23, 59, 59, 1, UTC),
    ],
)
def test_sessions_show_times_to_the_microsecond(parts: StoreParts, opened_at: datetime) -> None:
    session, parent = new_id(), new_id()
    opened = SessionOpened(session=session, at=opened_at, title="a title", parent=parent)
    closed = SessionClosed(session=session, at=moment(9), reason="done")
    parts.ingest(Entry(opened), *call(session, receipt=b"r").entries(), Entry(closed))
    assert rows(parts, "SELECT * FROM v_sessions") == [
        {
            "id": str(session),
            "name": None,
            "title": "a title",
            "agent": None,
            "parent_id": str(parent),
            "opened_at": spelled(opened_at),
            "closed_at": spelled(moment(9)),
            "close_reason": "done",
            "environment": None,
            "invocation_count": 1,
            "open_count": 0,
        }
    ]


def test_artifacts_and_omissions_show_their_calls(parts: StoreParts) -> None:
    session = UUID(int=7)
    made = call(session, 3, receipt=b"cut", stdout=LOG)
    digest = digest_of(LOG)
    shown = Shown(
        canonical=made.shown.canonical,
        receipt=made.shown.receipt,
        renderer="seen",
        renderer_version=0,
        omissions=(
            OmissionFact(
                stage="projection", field="stdout", unit="bytes", before=9, after=4, reason="cut"
            ),
        ),
        artifacts=(ArtifactFact(role="stdout", digest=digest),),
    )
    made.capture(parts, LOG, shown=shown)
    parts.ingest(Entry(SessionOpened(session=session, at=moment(1), name="n")), *entries_of([made]))
    (artifact,) = rows(parts, "SELECT * FROM v_artifacts")
    owner = {
        "invocation_id": str(made.started.id),
        "tool_name": "bash",
        "session_id": str(session),
        "session_name": "n",
    }
    assert {
        "digest": digest,
        "path": artifact_path(digest),
        "size": len(LOG),
        "line_count": 4_000,
        "role": "stdout",
        **owner,
    }.items() <= artifact.items()
    (omission,) = rows(parts, "SELECT * FROM v_omissions")
    assert omission == {
        **owner,
        "started_at": spelled(moment(3)),
        "n": 0,
        "stage": "projection",
        "field": "stdout",
        "unit": "bytes",
        "before_count": 9,
        "after_count": 4,
        "omitted_count": 5,
        "reason": "cut",
    }
