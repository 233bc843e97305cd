"""Flipped bits, values that are none, and objects that are none: named, and nothing stops."""

import hashlib
import re
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Table
from tests.support import schema
from tests.support.call_facts import ended, started
from tests.support.effort import times
from tests.support.every_fact import LARGE, LONG, ODD, OPENED, RICH, SHORT, SHOWN, SPOOLED, TEXT
from tests.support.store_parts import StoreParts

from tooltrail.artifacts import artifact_path
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.fact_spelling import shown_json
from tooltrail.records.facts import ArtifactFact, Shown, SourceFact
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.references import expand_canonical
from tooltrail.store.verify import bodies, checking, ledger, verify

ARTIFACT = artifact_path(digest_of(LONG * 3))
BODY = digest_of(b'{"host":"h"}')
KINDS = ("CAST(x'c328' AS TEXT)", "NULL", "-1.5", "x'00ff'", "'x'", "9e300")


def named(store: StoreParts) -> set[str]:
    return {one.subject for one in store.damage()}


def object_of(store: StoreParts) -> Path:
    return store.spool.parent / "artifacts" / ARTIFACT


@pytest.mark.parametrize("call", [SHORT, LARGE, SPOOLED, SHOWN, ODD], ids=lambda one: str(one.int))
def test_one_altered_character_of_a_text_is_named(copied: StoreParts, call: UUID) -> None:
    where = "WHERE invocation_key = (SELECT key FROM invocations WHERE id = ?)"
    for column in ("arguments", "output", "canonical", "receipt"):
        ((kept,),) = copied.run(f"SELECT {column} FROM surfaces {where}", [call.bytes])
        altered = f"substr({column}, 1, length({column}) - 1) || '?'"
        copied.run(f"UPDATE surfaces SET {column} = {altered} {where}", [call.bytes])
        assert named(copied) == {f"call {call}"}, column
        copied.run(f"UPDATE surfaces SET {column} = ? {where}", [kept, call.bytes])


def test_one_altered_bit_of_each_body_is_named(copied: StoreParts) -> None:
    rows = copied.run("SELECT key, digest, data FROM bodies WHERE length(data) > 0")
    for key, digest, data in rows:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
        copied.run("UPDATE bodies SET data = ? WHERE key = ?", [flipped, key])
        assert f"body sha256:{digest.hex()}" in named(copied)
        copied.run("UPDATE bodies SET data = ? WHERE key = ?", [data, key])
    assert len(rows) > 5


def test_an_altered_artifact_is_named(copied: StoreParts) -> None:
    path = object_of(copied)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    assert named(copied) == {f"artifact {ARTIFACT}"}


@pytest.mark.parametrize("what", ["nothing", "folder", "link"])
def test_an_artifact_that_is_no_file_is_named(copied: StoreParts, what: str) -> None:
    path = object_of(copied)
    path.unlink()
    if what == "folder":
        path.mkdir()
    if what == "link":
        path.symlink_to("/dev/zero")
    (found,) = copied.damage()
    assert (found.subject, found.message.count(ARTIFACT)) == (f"artifact {ARTIFACT}", 1)
    assert "is damaged" not in found.message


def test_an_artifact_whose_row_and_object_are_gone_is_named(copied: StoreParts) -> None:
    object_of(copied).unlink()
    copied.run("DELETE FROM artifacts WHERE digest = ?", [bytes.fromhex(digest_of(LONG * 3)[7:])])
    (found,) = copied.damage()
    assert ARTIFACT in found.message


@pytest.mark.parametrize("table", schema.EVIDENCE, ids=lambda one: str(one.name))
def test_a_value_of_another_kind_stops_nothing(copied: StoreParts, table: Table) -> None:
    copied.run("PRAGMA writable_schema = ON")
    sql = "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = ?"
    copied.run(sql, [table.name])
    copied.database.close()
    copied.run("UPDATE messages SET created_at = 7 WHERE id = ?", [RICH.bytes])
    keys = [one.name for one in table.primary_key.columns]
    key = ", ".join(f'"{one}"' for one in keys)
    first = f"({key}) = (SELECT {key} FROM {table.name} ORDER BY {key} LIMIT 1)"
    for number, name in enumerate(one.name for one in table.columns if one.name not in keys):
        ((kept,),) = copied.run(f'SELECT "{name}" FROM {table.name} WHERE {first}')
        # Two of the kinds for each column, unless more effort is asked for.
        for value in KINDS if times(1) > 1 else [KINDS[number % 3], KINDS[3 + number % 3]]:
            copied.run(f'UPDATE {table.name} SET "{name}" = {value} WHERE {first}')
            noticed = {(one.table, one.column) for one in copied.damage()}
            assert ("messages", "created_at") in noticed, (name, value)
        copied.run(f'UPDATE {table.name} SET "{name}" = ? WHERE {first}', [kept])


def test_a_number_of_an_entry_that_is_a_text_is_named(copied: StoreParts) -> None:
    copied.run("UPDATE ledger_entries SET n = 'last' WHERE n = 3")
    said = "ledger_entries.n of the row with n 'last' cannot be read"
    assert said in {one.message for one in copied.damage()}


def test_an_erased_body_without_a_digest_stops_nothing(copied: StoreParts) -> None:
    copied.run("UPDATE messages SET created_at = 7 WHERE id = ?", [RICH.bytes])
    copied.run("UPDATE bodies SET digest = 'x', data = NULL WHERE key = 1")
    assert {"body 'x'", f"message {RICH}"} <= named(copied)


def test_a_call_that_ends_in_a_later_batch_is_compared_as_a_whole(
    copied: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_BATCH_ENTRIES", 1)
    assert copied.damage(receipts=True) == []
    flip = "UPDATE surfaces SET is_exact = NOT is_exact WHERE invocation_key = ?"
    calls = copied.run("SELECT key, id FROM invocations")
    for key, call in calls:
        copied.run(flip, [key])
        assert named(copied) == {f"call {UUID(bytes=call)}"}
        copied.run(flip, [key])


def test_a_verification_that_cannot_remember_all_sessions_finds_no_damage_of_its_own(
    copied: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_BATCH_ENTRIES", 1)
    monkeypatch.setattr(checking, "_KNOWN_SESSIONS", 0)
    assert copied.damage() == []


def test_several_damages_are_all_named(copied: StoreParts) -> None:
    copied.run("UPDATE invocations SET duration_ms = 'x' WHERE id = ?", [SHORT.bytes])
    copied.run("UPDATE invocations SET tool_name = x'ff00' WHERE id = ?", [LARGE.bytes])
    copied.run(
        "UPDATE surfaces SET receipt = CAST(x'c328' AS TEXT)"
        " WHERE invocation_key = (SELECT key FROM invocations WHERE id = ?)",
        [SHOWN.bytes],
    )
    copied.run("UPDATE messages SET role = 'other' WHERE id = ?", [TEXT.bytes])
    copied.run("UPDATE sessions SET title = 'other' WHERE id = ?", [OPENED.bytes])
    copied.run("UPDATE bodies SET data = x'00' WHERE digest = ?", [bytes.fromhex(BODY[7:])])
    copied.run("DELETE FROM tools WHERE name = 'read'")
    object_of(copied).unlink()
    found = named(copied)
    expected = {
        f"call {SHORT}",
        f"call {LARGE}",
        f"call {SHOWN}",
        f"message {TEXT}",
        f"session {OPENED}",
        f"body {BODY}",
        f"artifact {ARTIFACT}",
    }
    assert expected <= found
    assert any(one.startswith("tool ") for one in found)


def overwrite(store: StoreParts, holding: bytes, data: bytes, *, before: int = 0) -> None:
    """Overwrite the beginning of the last page with some bytes, or a part `before` these."""
    assert isinstance(store.database.target, SqliteTarget)
    path = store.database.target.path
    store.database.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    at = path.read_bytes().rindex(holding)  # the pages of leaves are behind the root
    with path.open("r+b") as file:
        file.seek(at - before if before else at // size * size)
        file.write(data)


def test_a_page_that_cannot_be_read_stops_nothing(copied: StoreParts) -> None:
    copied.run("UPDATE sessions SET title = 'altered' WHERE id = ?", [OPENED.bytes])
    overwrite(copied, b"shown to the model", b"\xff" * 64)
    found = copied.damage()
    assert any(one.table == "surfaces" for one in found)
    assert f"session {OPENED}" in {one.subject for one in found}


@pytest.mark.parametrize(
    ("table", "column"),
    [("sessions", "id"), ("messages", "id"), ("invocations", "id"), ("tools", "digest")],
)
def test_a_value_that_its_index_hides_is_named(copied: StoreParts, table: str, column: str) -> None:
    assert isinstance(copied.database.target, SqliteTarget)
    path = copied.database.target.path
    copied.database.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((value,),) = connection.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchall()
    data = path.read_bytes()
    altered = set[str]()
    for place in re.finditer(re.escape(value), data):
        path.write_bytes(data[: place.start()] + b"\xff" + data[place.start() + 1 :])
        with closing(sqlite3.connect(path)) as connection:
            sql = f"SELECT count(*) FROM {table} {{}} WHERE {column} = ?"
            in_table, in_index = (
                connection.execute(sql.format(how), [value]).fetchone()[0]
                for how in ("NOT INDEXED", "")
            )
        if (in_table, in_index) == (0, 1):
            altered |= {f"{one.table}.{one.column}" for one in copied.damage()}
        copied.database.close()
    assert f"{table}.{column}" in altered


def add_bodies(store: StoreParts) -> list[bytes]:
    """Store more bodies, so that their table has several pages. Returns the rows in the file."""
    rows: list[bytes] = []
    for number in range(60):
        data = b"body %d of many " % number * 20
        digest = hashlib.sha256(data).digest()
        sql = "INSERT INTO bodies (digest, size, encoding, data) VALUES (?, ?, 'raw', ?)"
        store.run(sql, [digest, len(data), data])
        rows.append(digest + len(data).to_bytes(2) + b"raw" + data)
    return rows


def test_rows_that_the_database_skips_without_an_error_are_damage(copied: StoreParts) -> None:
    rows = add_bodies(copied)
    assert copied.damage() == []
    key, headers = b"\x03", 7
    overwrite(copied, rows[30], key, before=len(key) + headers)
    assert any("out of order" in one.message for one in copied.damage())
    assert named(copied) == {"table bodies"}


def test_damaged_pages_of_the_index_of_words_are_no_damage_of_the_evidence(
    copied: StoreParts,
) -> None:
    copied.run("INSERT INTO search_words VALUES (255, 1, 99, ?)", [b"the words of a batch"])
    overwrite(copied, b"the words of a batch", b"\xff" * 64)
    assert copied.damage() == []


def test_bodies_are_read_once_if_pages_of_another_table_are_damaged(
    copied: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[object]()
    monkeypatch.setattr(bodies.Needed, "_read_by_digest", lambda *_: read.append(1))
    overwrite(copied, b"shown to the model", b"\xff" * 64)
    assert copied.damage()
    assert not read


def test_the_check_of_the_pages_reports_progress(copied: StoreParts) -> None:
    progress = list[int]()
    findings = verify(
        copied.database, copied.archive, on_progress=lambda done, _: progress.append(done)
    )
    assert {one.kind for one in findings} == {"incomplete"}
    assert progress.count(0) >= len(schema.EVIDENCE)


def test_calls_and_sessions_whose_bodies_cannot_be_read_are_named(copied: StoreParts) -> None:
    row = bytes.fromhex(BODY[7:]) + bytes([len(b'{"host":"h"}')]) + b"raw"
    rows = add_bodies(copied)
    copied.run("UPDATE bodies SET size = 7 WHERE digest = ?", [rows[-1][:32]])
    overwrite(copied, row, b"\xff" * 64)
    found = copied.damage()
    assert f"body {BODY} of session {OPENED} cannot be read" in {one.message for one in found}
    assert f"body sha256:{rows[-1][:32].hex()}" in {one.subject for one in found}


def test_a_table_that_ends_in_a_damaged_page_is_compared_up_to_it(
    copied: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_BATCH_ENTRIES", 4)
    copied.run("UPDATE sessions SET title = 'altered' WHERE id = ?", [OPENED.bytes])
    ((last,),) = copied.run("SELECT hash FROM ledger_entries ORDER BY n DESC LIMIT 1")
    overwrite(copied, last, b"\xff" * 64)
    messages = [one.message for one in copied.damage()]
    assert f"sessions.title of session {OPENED} is not what its fact says" in messages
    assert "some rows of table ledger_entries cannot be read" in messages
    assert not any("missing" in one for one in messages)


def test_rows_of_a_replaced_page_that_only_an_index_has_are_counted(copied: StoreParts) -> None:
    """A page from an older copy of the file is sound in itself."""
    copied.run("CREATE TABLE kept AS SELECT * FROM bodies")
    copied.run("PRAGMA writable_schema = ON")
    ((old,),) = copied.run("SELECT rootpage FROM sqlite_schema WHERE name = 'kept'")
    copied.run("DELETE FROM kept WHERE key = 3")
    copied.run("UPDATE sqlite_schema SET rootpage = ? WHERE name = 'bodies'", [old])
    copied.database.close()
    ((count,),) = copied.run("SELECT count(*) FROM bodies")
    said = f"{count - 1} rows of table bodies could be read in order; an index has {count}"
    assert said in {one.message for one in copied.damage()}


def test_artifacts_before_a_damaged_end_of_their_table_are_checked(copied: StoreParts) -> None:
    digests = [hashlib.sha256(b"artifact %d" % number).digest() for number in range(200)]
    columns = "digest, size, stored_size, line_count, created_at"
    for digest in digests:
        copied.run(f"INSERT INTO artifacts ({columns}) VALUES (?, 7, 7, 7, 99)", [digest])
    overwrite(copied, digests[-1] + b"\x07\x07\x07\x63", b"\xff" * 64)
    messages = [one.message for one in copied.damage()]
    assert messages.count("some rows of table artifacts cannot be read") == 1
    for digest in digests[:100]:
        assert any(digest.hex() in one for one in messages)


@pytest.mark.parametrize("column", ["canonical", "receipt"])
def test_making_receipts_anew_names_the_text_that_was_altered(
    copied: StoreParts, column: str
) -> None:
    key = copied.run("SELECT key FROM invocations WHERE id = ?", [SHORT.bytes])[0]
    copied.run(f"UPDATE surfaces SET {column} = {column} || ' ' WHERE invocation_key = ?", key)
    (found,) = copied.damage()
    assert "`tooltrail verify --receipts` compares each" in found.message
    assert column in {one.column for one in copied.damage(receipts=True)}


def test_an_altered_size_does_not_stop_making_receipts_anew(copied: StoreParts) -> None:
    call, seen = UUID(int=399), b"what the model saw"
    source = SourceFact(format="f", file="f.jsonl", offset=0, digest=digest_of(b"line"))
    end = ended(OPENED, call, source=source, receipt=digest_of(seen), bodies=[seen])
    copied.ingest(started(OPENED, call), end)
    assert copied.damage(receipts=True) == []
    copied.run("UPDATE invocations SET output_size = 'x'")
    found = copied.damage(receipts=True)
    assert {(one.table, one.column) for one in found} == {("invocations", "output_size")}


@pytest.mark.parametrize("way", ["altered", "removed"])
def test_a_lost_entry_is_no_damage_of_intact_rows(copied: StoreParts, way: str) -> None:
    sql = "DELETE FROM ledger_entries WHERE n = ?"
    if way == "altered":
        sql = "UPDATE ledger_entries SET fact = x'00' WHERE n = ?"
    columns = "n, journal_key, kind, subject_id, fact, hash"
    entries = copied.run(f"SELECT {columns} FROM ledger_entries ORDER BY n")
    last = entries[-1][0]
    for entry in entries:
        copied.run(sql, [entry[0]])
        messages = [one.message for one in copied.damage()]
        assert messages
        assert not any("is not what its fact says" in one for one in messages), entry[:3]
        copied.run("DELETE FROM ledger_entries WHERE n = ?", [entry[0]])
        copied.run(f"INSERT INTO ledger_entries ({columns}) VALUES (?, ?, ?, ?, ?, ?)", entry)
    assert (last, copied.damage()) == (len(entries) - 1, [])


def test_an_altered_position_behind_a_lost_entry_is_named(copied: StoreParts) -> None:
    copied.run("UPDATE ledger_entries SET fact = x'00' WHERE n = 1")
    (call,) = copied.run("SELECT id FROM invocations WHERE start_entry = 16")[0]
    copied.run("UPDATE invocations SET seq = seq + 100 WHERE id = ?", [call])
    assert f"call {UUID(bytes=call)}" in named(copied)
    copied.run("UPDATE invocations SET seq = seq + 1 WHERE id = ?", [call])
    assert f"call {UUID(bytes=call)}" in named(copied)


def test_receipts_that_were_rewritten_with_their_digest_show_when_made_anew(
    copied: StoreParts,
) -> None:
    ((key, stored, receipt, renderer, version),) = copied.run(
        "SELECT s.invocation_key, s.canonical, s.receipt, s.renderer, s.renderer_version"
        " FROM surfaces AS s JOIN invocations AS i ON i.key = s.invocation_key WHERE i.id = ?",
        [LARGE.bytes],
    )
    canonical = expand_canonical(stored, receipt.encode())
    left_out = copied.run("SELECT * FROM omissions WHERE invocation_key = ?", [key])
    assert left_out
    artifacts = [
        ArtifactFact(role=role, digest=Digest(f"sha256:{digest.hex()}"))
        for role, digest in copied.run(
            "SELECT role, digest FROM invocation_artifacts WHERE invocation_key = ?", [key]
        )
    ]
    forged = Shown(
        canonical=digest_of(canonical.encode()),
        receipt=digest_of(b"forged"),
        renderer=renderer,
        renderer_version=version,
        artifacts=tuple(artifacts),
    )
    copied.run("DELETE FROM omissions WHERE invocation_key = ?", [key])
    copied.run("UPDATE invocations SET truncated = 0 WHERE key = ?", [key])
    copied.run(
        "UPDATE surfaces SET canonical = ?, receipt = 'forged', shown = ?, cut_size = NULL"
        " WHERE invocation_key = ?",
        [canonical, bytes.fromhex(digest_of(shown_json(forged))[7:]), key],
    )
    ((stream,),) = copied.run(
        "SELECT count(*) FROM streams WHERE invocation_key = ? AND receipt_offset IS NOT NULL",
        [key],
    )
    assert stream == 0
    assert copied.damage() == []
    assert {one.subject for one in copied.damage(receipts=True)} == {f"call {LARGE}"}
