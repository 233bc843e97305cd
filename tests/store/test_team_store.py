"""The store of a team: rows in PostgreSQL, artifacts in S3, a spool on each machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import object_stores
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.object_stores import S3Admin, ServerProcess
from tests.support.recording import content_of
from tests.support.spool_writer import SpoolWriter, digits

from tooltrail.artifacts import open_sink
from tooltrail.store import EndedCall, Store, create_store, open_store, read_condition
from tooltrail.store.marks import mark_root

BIG = b"a line of a long output\n" * 5_000


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


def record(store: Store, *outputs: bytes) -> list[str]:
    """Record calls, and return what each is acknowledged as."""
    with store.open_session() as session:
        return [session.record(EndedCall(BASH, made(one))).acknowledged for one in outputs]


def test_what_two_machines_record_alike_is_stored_once(
    team: Store, postgres_url: str, root: str, s3_admin: S3Admin, tmp_path: Path
) -> None:
    for number in range(2):
        with open_store(postgres_url, spool=tmp_path / f"spool {number}") as machine:
            assert record(machine, BIG, BIG[24:]) == ["store", "store"]
    assert team.reader.counts().invocations == {"ok": 4}
    assert len(stored(s3_admin, root)) == len(team.reader.artifacts()) == 2
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

    with open_store(postgres_url, spool=spool) as there:
        assert there.ingest().recovered_count == 1
    detail = team.reader.invocation(invocation)
    assert detail.summary.state == "interrupted"
    (stream,) = detail.streams
    assert content_of(team.reader, stream) == digits(3_000_000)
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

    with open_store(postgres_url, spool=tmp_path / "spool", acknowledge="journal") as store:
        assert record(store, BIG) == ["journal"]
        store.ingest()
        assert read_condition(store).pending_count == 1

        mortal.start()
        S3Admin(mortal.url).make_bucket("trail")
        # The server kept everything in memory, the mark too: this is not the root any more.
        assert store.ingest().published_count == 0
        mark_root(open_sink("s3://trail"), store.info.id, "here")
        assert store.ingest().published_count == 1
        assert len(store.reader.artifacts()) == 1
        check_evidence(store)
