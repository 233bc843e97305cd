"""What `status`, `repair` and the reading commands say of records that wait in the outbox."""

import json
from pathlib import Path

from tests.support.away import away
from tests.support.cli import Cli
from tests.support.ended import BASH, made

from tooltrail.store import create_store, open_store

HINT = "tooltrail: records wait in the outbox: `tooltrail repair`\n"


def let_wait(cli: Cli, *, key: str | None = None) -> Path:
    """Record a session, two calls and its end while the store is away; the journal."""
    with open_store(cli.database, on_unavailable="outbox") as store:
        with away(store, str(cli.database)), store.open_session(title="waits") as session:
            for stdout in (b"one", b"two"):
                session.record(BASH, made(stdout), idempotency_key=key)
        return store.fallback.outbox.journal.waiting / "journal"


def test_status_warns_of_what_waits_and_repair_stores_it(cli: Cli) -> None:
    assert json.loads(cli.ok("status", "--json").text)[0]["outbox"]["entries"] == 0
    journal = let_wait(cli)
    status = cli.ok("status", "--json")
    outbox = json.loads(status.text)[0]["outbox"]
    assert (outbox["entries"], outbox["bytes"]) == (4, journal.stat().st_size)
    assert outbox["oldest_at"] is not None
    assert "warning: 4 records (" in status.message
    assert "in the outbox, the oldest of" in status.message
    assert "`tooltrail repair` stores them" in status.message
    assert cli.ok("log").message == HINT

    assert "4 records of the outbox would be stored\n" in cli.ok("repair", "--dry-run").message
    assert "4 records of the outbox stored\n" in cli.ok("repair").message

    assert cli.ok("log").message == ""
    assert len(cli.ok("log", "--json").lines) == 2
    assert "outbox" not in cli.ok("status").message
    assert cli.ok("verify").code == 0


def test_repair_names_what_cannot_be_stored(cli: Cli) -> None:
    journal = let_wait(cli, key="same")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1] + b"#" + lines[1] + lines[2] + lines[3])
    assert "1 line of the outbox cut or altered" in cli.ok("status").message
    ended = cli.run("repair")
    assert ended.code == 4
    assert "line 3 of" in ended.message
    assert "it is not what its digest names; kept in" in ended.message
    assert "line 4 of" in ended.message
    assert "idempotency key 'same' names invocation" in ended.message
    assert "2 records of the outbox not deliverable, kept in" in cli.ok("status").message


def test_an_outbox_that_cannot_be_read_is_named_and_keeps_nothing_else_from_being_repaired(
    cli: Cli,
) -> None:
    journal = let_wait(cli)
    journal.parent.rename(journal.parents[1] / "hidden")
    journal.parent.touch()
    (cli.folder / "artifacts").rename(cli.folder / "away")
    cli.exec("--", "seq", "90000")
    (cli.folder / "away").rename(cli.folder / "artifacts")
    for flags, told in (("--dry-run", "would be stored"), ("", "stored that had waited")):
        ended = cli.run("repair", *flags.split())
        assert ended.code == 5
        assert f"records may wait in the outbox: outbox {journal.parents[1]}" in ended.message
        assert told in ended.message


def test_status_counts_what_was_dropped(cli: Cli) -> None:
    with open_store(cli.database, on_unavailable="drop_and_count") as store:
        session = store.open_session()
        with away(store, str(cli.database)):
            session.record(BASH, made())
    assert "1 record dropped while this store was away" in cli.ok("status").message


def test_status_tells_what_waits_while_the_server_is_away(
    postgres_url: str, tmp_path: Path
) -> None:
    create_store(postgres_url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s").close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "s")})
    with open_store(postgres_url, spool=tmp_path / "s", on_unavailable="outbox") as store:
        session = store.open_session()
        with away(store, postgres_url):
            ended = cli.run("status")
            assert (ended.code, ended.text) == (5, "")
            assert "outbox" not in ended.message
            session.record(BASH, made())
            ended = cli.run("status")
    assert (ended.code, ended.text) == (5, "")
    assert "warning: 1 record (" in ended.message
    assert "`tooltrail repair` stores it" in ended.message
