"""From 0001 on with records in the store: nothing of them changes, and the guards stand."""

from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update
from tests.support.cli import Cli
from tests.support.evidence import check_evidence
from tests.support.recording import run_command
from tests.support.rows import MOMENT, all_rows, fill_every_table, row_for
from tests.support.schema import downgraded, names_of, upgraded

from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import InvalidRecordError, SchemaMismatchError
from tooltrail.store import Store, check_database, open_store, upgrade_store
from tooltrail.store.tables import ArtifactRow, MaintenanceRunRow, metadata

BIG = b"a line of a long output\n" * 5_000
"""Long enough to become an artifact."""


@pytest.fixture
def old(store: Store, database: str) -> str:
    """A store of revision 0001 with real records in it."""
    with store.open_session(title="before") as session:
        run_command(session, BIG, b"warning\n", exit_status=3)
        session.add_message("user", "go on")
        run_command(session, BIG)
    store.close()
    downgraded(database, "0001")
    return database


def test_a_store_of_0001_is_what_0001_makes(old: str, database: str) -> None:
    names = names_of(old)
    downgraded(old)
    upgraded(old, "0001")
    assert names_of(old) == names


def test_an_old_store_is_refused_with_the_command_that_helps(old: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="tooltrail db upgrade") as refused:
        open_store(old, artifacts=str(tmp_path / "artifacts"))
    assert refused.value.found == "0001"


def test_an_upgrade_keeps_every_record_and_every_guard(old: str, tmp_path: Path) -> None:
    assert upgrade_store(old) == ("0001", HEAD_REVISION)

    with open_store(old, artifacts=str(tmp_path / "artifacts")) as store:
        assert check_database(store.database) == []
        check_evidence(store)
        assert store.reader.counts().invocations == {"success": 2}
        with store.database.read() as connection:
            rows = all_rows(connection)
        # The index of an object that was stored before is not known.
        assert [row[-1] for row in rows["artifacts"]] == [None]
        assert rows["maintenance_runs"] == []
        for change in (delete(ArtifactRow), update(ArtifactRow).values(frame_index=b"x")):
            with (
                pytest.raises(InvalidRecordError, match="artifacts is append-only"),
                store.database.write() as connection,
            ):
                connection.execute(change)
        with store.open_session() as session:
            run_command(session, BIG)
        check_evidence(store)


def test_going_back_and_forth_with_a_row_in_every_table_keeps_what_0001_knows(
    store: Store, database: str, tmp_path: Path
) -> None:
    with store.database.write() as connection:
        fill_every_table(connection)
        before = all_rows(connection)
    store.close()

    downgraded(database, "0001")
    assert "table maintenance_runs" not in names_of(database)
    upgraded(database)

    with open_store(database, artifacts=str(tmp_path / "artifacts")) as again:
        with again.database.read() as connection:
            after = all_rows(connection)
        assert after == before | {
            "maintenance_runs": [],
            "idempotency_keys": [],
            "range_traits": [],
            "message_documents": [],
            "call_origins": [],
            "tool_offers": [],
            "agent_legs": [],
            "agent_outcomes": [],
        }
        assert check_database(again.database) == []


def test_db_upgrade_says_from_where_to_where(tmp_path: Path) -> None:
    cli = Cli(str(tmp_path / "trail.db"))
    cli.ok("init")
    downgraded(cli.database, "0001")
    assert cli.run("status").code == 5
    assert cli.ok("db", "upgrade").message == f"upgraded from 0001 to {HEAD_REVISION}\n"
    assert cli.ok("db", "check").message == "no problem found\n"
    cli.ok("status")


def test_a_run_only_counts_upwards_and_ends(store: Store) -> None:
    begin(store)
    changes: tuple[dict[str, object], ...] = (
        {"object_count": 2, "stored_bytes": 0},
        {"stored_bytes": 5},
        {"object_count": 0, "finished_at": MOMENT, "outcome": "finished"},
        {"object_count": 2, "kind": "repair"},
        {"object_count": 2, "facts": "y"},
        {"object_count": 2, "environment": "y"},
        {"object_count": 2, "key": 9},
        {"outcome": "finished"},
        {"finished_at": MOMENT},
        {"finished_at": MOMENT, "outcome": "forgotten"},
    )
    for change in changes:
        with pytest.raises(InvalidRecordError), store.database.write() as connection:
            connection.execute(update(MaintenanceRunRow).values(change))


def test_a_run_counts_as_often_as_it_likes_and_ends_once(store: Store) -> None:
    begin(store)
    allowed: tuple[dict[str, object], ...] = (
        {"object_count": 2},
        {"object_count": 5, "stored_bytes": 700},
        {"finished_at": MOMENT, "outcome": "finished", "report": "{}"},
    )
    for change in allowed:
        with store.database.write() as connection:
            assert connection.execute(update(MaintenanceRunRow).values(change)).rowcount == 1
    refused: tuple[dict[str, object], ...] = (
        {"object_count": 6},
        {"finished_at": None, "outcome": None},
        {"report": "x"},
    )
    for change in refused:
        with (
            pytest.raises(InvalidRecordError, match="maintenance_runs is append-only"),
            store.database.write() as connection,
        ):
            connection.execute(update(MaintenanceRunRow).values(change))


def begin(store: Store) -> None:
    with store.database.write() as connection:
        connection.execute(
            insert(MaintenanceRunRow).values(row_for(metadata.tables["maintenance_runs"]))
        )
