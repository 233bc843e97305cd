"""What `status`, `repair` and the reading commands say of records that wait in the outbox."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.away import away, remove_store
from tests.support.cli import Cli
from tests.support.ended import BASH, made
from tests.support.template_stores import make_store

from tooltrail.store import Store, open_store

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


def test_what_waits_for_a_store_that_is_gone_is_named(cli: Cli) -> None:
    # It is a copy of a store that is known at another place.
    shutil.rmtree(Path(cli.database).parent / "spool" / "known-stores")
    journal = let_wait(cli)
    with open_store(cli.database) as store:
        gone = store.info.id
    folder = journal.parents[1]
    assert gone_of(cli) == []
    remove_store(str(cli.database))
    root = str(cli.folder / "anew")
    make_store(cli.database, artifacts=root, on_unavailable="outbox").close()
    (told,) = gone_of(cli)
    assert (told["store_id"], told["folder"]) == (str(gone), str(folder))
    assert (told["entry_count"], told["is_known"]) == (4, False)
    sentence = f"4 in {folder} wait for store {gone}, which is not known in that spool any more"
    assert f"another store: {sentence}" in cli.ok("status").message
    for flags in ("--dry-run", ""):
        assert f"outbox left: {sentence}" in cli.ok("repair", *flags.split()).message
    assert journal.is_file()

    journal.chmod(0)
    journal.unlink()
    journal.mkdir()
    assert f"{journal} cannot be read" in cli.ok("repair").message


def test_what_waits_for_a_living_store_is_named_as_such(cli: Cli, tmp_path: Path) -> None:
    journal = let_wait(cli)
    spool = journal.parents[2]
    database = str(tmp_path / "other.db")
    make_store(database, artifacts=str(tmp_path / "a2"), spool=spool).close()
    other = Cli(database, {"TOOLTRAIL_SPOOL": str(spool)})
    assert [one["is_known"] for one in gone_of(other)] == [True]
    assert ": repair there" in other.ok("status").message


def gone_of(cli: Cli) -> list[dict[str, Any]]:
    status = json.loads(cli.ok("status", "--json").text)[0]
    found: list[dict[str, Any]] = status["outbox"]["foreign"]
    return found


def altered(line: bytes) -> bytes:
    return line[:-10] + b"#" + line[-9:]


def test_repair_names_what_cannot_be_stored(cli: Cli) -> None:
    journal = let_wait(cli, key="same")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1] + altered(lines[1]) + lines[2] + lines[3])
    assert "1 line of the outbox cut or altered" in cli.ok("status").message
    ended = cli.run("repair")
    assert ended.code == 4
    assert "line 3 of" in ended.message
    assert "it is not what its digest names; kept in" in ended.message
    assert "line 4 of" in ended.message
    assert "idempotency key 'same' names invocation" in ended.message
    assert "2 records of the outbox not deliverable, kept in" in cli.ok("status").message


def test_what_cannot_be_stored_is_told_to_programs_tried_again_and_acknowledged(cli: Cli) -> None:
    journal = let_wait(cli, key="same")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1] + altered(lines[1]) + lines[2] + lines[3])
    for count, flags in ((2, ""), (1, "--retry-kept")):
        ended = cli.run("repair", "--json", *flags.split())
        assert ended.code == 4
        told = [one for one in json.loads(ended.text) if one["outcome"] == "undeliverable"]
        assert len(told) == count
        assert all(one["invocation_id"] is None for one in told)
        assert all(Path(one["kept_in"]).is_file() for one in told)
        assert "'same' names invocation" in told[-1]["reason"]
        assert "2 records of the outbox not deliverable" in cli.ok("status").message
    outcomes = cli.run("repair", "--retry-kept", "--fields", "outcome").text
    assert json.loads(outcomes) == [{"outcome": "undeliverable"}]

    for other in ("--dry-run", "--retry-kept"):
        assert cli.run("repair", "--acknowledge", other).code == 2
    assert "not deliverable" in cli.ok("status").message
    (folder,) = moved_by(cli)
    assert len(list((folder / "kept").iterdir())) == 4
    assert "outbox" not in cli.ok("status").message
    assert moved_by(cli) == []


def moved_by(cli: Cli) -> list[Path]:
    message = cli.ok("repair", "--acknowledge").message
    return [Path(line.split()[-1]) for line in message.splitlines() if " moved to " in line]


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
        folder = careless_folder(store)
    assert "1 record dropped while this store was away" in cli.ok("status").message
    cli.ok("repair", "--acknowledge")
    assert "dropped" not in cli.ok("status").message
    assert [path.name for path in folder.glob("acknowledged/*/*")] == ["dropped"]


def careless_folder(store: Store) -> Path:
    return store.fallback.outbox.journal.folder


def test_status_tells_what_waits_while_the_server_is_away(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(postgres_url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s").close()
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
