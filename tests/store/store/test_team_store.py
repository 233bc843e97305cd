"""The store of a team: rows in PostgreSQL, artifacts in S3, spools on each machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import object_stores
from tests.support.evidence import check_evidence
from tests.support.keeping import prune_all, publish
from tests.support.object_stores import S3Admin, ServerProcess
from tests.support.processes import finish_all, start_worker
from tests.support.recording import content_of, run_command
from tests.support.spool_writer import SpoolWriter, digits

from tooltrail.artifacts import open_sink
from tooltrail.store import Store, create_store, open_store, relocate, repair
from tooltrail.store._roots.marks import mark_root

BIG = b"a line of a long output\n" * 5_000
COUNT = 5


@pytest.fixture
def root(s3_bucket: str) -> str:
    return f"s3://{s3_bucket}/trail"


@pytest.fixture
def team(postgres_url: str, root: str, tmp_path: Path) -> Iterator[Store]:
    """The store as one machine has it opened, with a spool of its own."""
    with create_store(postgres_url, artifacts=root, spool=tmp_path / "spool") as store:
        yield store


def stored(admin: S3Admin, root: str) -> list[str]:
    keys = admin.keys(root.removeprefix("s3://").partition("/")[0])
    return [key for key in keys if key.startswith("trail/sha256/")]


def test_what_two_machines_record_alike_is_stored_once(
    team: Store, postgres_url: str, root: str, s3_admin: S3Admin, tmp_path: Path
) -> None:
    workers = [
        start_worker(
            *("record", postgres_url, root, str(tmp_path / f"spool {number}"), str(COUNT)),
            module="tests.support.upkeep_worker",
        )
        for number in range(2)
    ]
    finish_all(workers)
    assert team.reader.counts().invocations == {"success": 2 * COUNT}
    # Both streams of a content, in either machine.
    assert len(stored(s3_admin, root)) == len(team.reader.artifacts()) == 2 * COUNT
    check_evidence(team)


def test_what_a_killed_machine_had_printed_is_recovered_where_its_spool_is(
    team: Store, postgres_url: str, root: str, tmp_path: Path
) -> None:
    spool = tmp_path / "its spool"
    with SpoolWriter(postgres_url, root, spool) as writer:
        invocation = writer.do("start")
        writer.do("fill", "stdout", 3_000_000)
        writer.do("flush", "stdout")
        writer.kill()

    assert repair(team).folders == ()
    with open_store(postgres_url, spool=spool) as there:
        assert [folder.outcome for folder in repair(there).folders] == ["interrupted"]
    detail = team.reader.invocation(invocation)
    (stream,) = detail.streams
    assert content_of(team.reader, stream) == digits(3_000_000)
    check_evidence(team)


def test_artifacts_are_pruned_and_moved_out_of_the_bucket_and_back(
    team: Store, root: str, s3_admin: S3Admin, tmp_path: Path
) -> None:
    run_command(team.open_session(), BIG)
    publish(team, BIG[1:])
    assert prune_all(team).unreferenced.count == 1
    assert relocate(team, str(tmp_path / "folder"), delete_old=True).switched
    assert stored(s3_admin, root) == []
    check_evidence(team)
    assert relocate(team, root, delete_old=True).switched
    assert len(stored(s3_admin, root)) == 1
    check_evidence(team)


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    """A server that speaks S3, of this test alone."""
    server = object_stores.s3_server()
    server.start()
    for name, value in object_stores.s3_environment(server.url).items():
        monkeypatch.setenv(name, value)
    yield server
    server.kill()


def test_records_go_on_while_the_bucket_is_away(
    postgres_url: str, tmp_path: Path, mortal: ServerProcess
) -> None:
    S3Admin(mortal.url).make_bucket("trail")
    create_store(postgres_url, artifacts="s3://trail", spool=tmp_path / "spool").close()
    mortal.kill()

    with open_store(postgres_url, spool=tmp_path / "spool") as store:
        session = store.open_session()
        waiting = [run_command(session, BIG[n:]) for n in range(2)]
        assert [len(finished.postponed) for finished in waiting] == [1, 1]
        assert {folder.outcome for folder in repair(store).folders} == {"failed"}

        mortal.start()
        S3Admin(mortal.url).make_bucket("trail")
        # The server kept everything in memory, its mark too: this is not the root any more.
        assert len(run_command(session, BIG[2:]).postponed) == 1
        mark_root(open_sink("s3://trail"), store.info.id, "here")
        assert run_command(session, BIG[3:]).postponed == ()
        assert {folder.outcome for folder in repair(store).folders} == {"stored"}
        assert len(store.reader.artifacts()) == 4
        check_evidence(store)
