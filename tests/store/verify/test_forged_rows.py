"""Changes by somebody who may change the schema, too: without constraints and triggers."""

from uuid import UUID

import pytest
from tests.support.call_facts import ended, started
from tests.support.every_fact import LARGE, OPENED, RICH, SHORT
from tests.support.store_parts import StoreParts

from tooltrail.artifacts import artifact_path
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import DamageError
from tooltrail.records.facts import SourceFact
from tooltrail.store.bodies import encode_body, pack_fact, unpack_fact

CALL = UUID(int=399)
SEEN = b"what the model saw"
BURIED = "INSERT INTO tombstones (kind, digest, size, reason, rule, actor, removed_at)"


def loosen(store: StoreParts, table: str) -> None:
    """Drop the constraints, indexes and generated columns of a table."""
    store.run("PRAGMA legacy_alter_table = ON")  # views name the table
    store.run(f"CREATE TABLE kept AS SELECT * FROM {table}")
    store.run(f"DROP TABLE {table}")
    store.run(f"ALTER TABLE kept RENAME TO {table}")


def places(store: StoreParts) -> set[tuple[str, str | None, str]]:
    return {(one.table, one.column, one.subject) for one in store.damage()}


@pytest.fixture
def with_later_receipt(copied: StoreParts) -> StoreParts:
    """A store with a call whose receipt came with another fact than its end."""
    source = SourceFact(format="f", file="f.jsonl", offset=0, digest=digest_of(b"line"))
    copied.ingest(started(OPENED, CALL), ended(OPENED, CALL, source=source))
    copied.ingest(ended(OPENED, CALL, source=source, receipt=digest_of(SEEN), bodies=[SEEN]))
    assert copied.damage() == []
    assert copied.run("SELECT receipt FROM surfaces WHERE receipt_entry > 0") == [(SEEN.decode(),)]
    return copied


def test_a_later_receipt_that_was_removed_is_named(with_later_receipt: StoreParts) -> None:
    with_later_receipt.run(
        "UPDATE surfaces SET receipt = NULL, renderer = NULL, renderer_version = NULL,"
        " receipt_journal_key = NULL, receipt_entry = NULL, cut_size = NULL"
        " WHERE receipt_entry IS NOT NULL"
    )
    assert places(with_later_receipt) == {
        ("surfaces", "receipt_journal_key", f"call {CALL}"),
        ("surfaces", "receipt_entry", f"call {CALL}"),
    }


@pytest.mark.parametrize(("ending", "forged"), [("IS NULL", "ok"), ("IS NOT NULL", "exit")])
def test_a_forged_outcome_is_named(copied: StoreParts, ending: str, forged: str) -> None:
    where = f"outcome <> ? AND finished_at {ending}"
    ((key, name),) = copied.run(
        f"SELECT key, id FROM invocations WHERE {where} ORDER BY key LIMIT 1", [forged]
    )
    loosen(copied, "invocations")
    assert copied.damage() == []
    copied.run("UPDATE invocations SET outcome = ? WHERE key = ?", [forged, key])
    assert places(copied) == {("invocations", "outcome", f"call {UUID(bytes=name)}")}


@pytest.mark.parametrize(
    ("table", "name"),
    [("invocations", "id"), ("messages", "id"), ("sessions", "id"), ("tools", "digest")],
)
def test_a_second_row_with_the_same_name_is_named(
    copied: StoreParts, table: str, name: str
) -> None:
    loosen(copied, table)
    copied.run(f"INSERT INTO {table} SELECT * FROM {table} ORDER BY key LIMIT 1")
    ((value,),) = copied.run(f"SELECT {name} FROM {table} ORDER BY key LIMIT 1")
    said = f"several rows of {table} have the {name} {value.hex()}"
    assert said in {one.message for one in copied.damage()}


def test_a_second_row_of_texts_is_named(copied: StoreParts) -> None:
    loosen(copied, "surfaces")
    copied.run("INSERT INTO surfaces SELECT * FROM surfaces WHERE invocation_key = 1")
    ((name,),) = copied.run("SELECT id FROM invocations WHERE key = 1")
    assert ("surfaces", None, f"call {UUID(bytes=name)}") in places(copied)


def test_bytes_behind_a_compressed_body_are_named(copied: StoreParts) -> None:
    ((key, digest, data),) = copied.run(
        "SELECT key, digest, data FROM bodies WHERE encoding = 'zstd' ORDER BY key LIMIT 1"
    )
    for more in (b"hidden", encode_body(b"hidden" * 99)[1]):
        copied.run("UPDATE bodies SET data = ? WHERE key = ?", [data + more, key])
        assert places(copied) >= {("bodies", None, f"body sha256:{digest.hex()}")}
    copied.run("UPDATE bodies SET data = ? WHERE key = ?", [data, key])
    assert copied.damage() == []


def test_bytes_within_a_packed_fact_are_named(copied: StoreParts) -> None:
    ((packed,),) = copied.run("SELECT fact FROM ledger_entries WHERE n = 3")
    digits = len(b"".join(bytes.fromhex(one) for one in digits_of(unpack_fact(packed))))
    assert digits > 0
    forged = packed[:-digits] + b"hidden" + packed[-digits:]
    copied.run("UPDATE ledger_entries SET fact = ? WHERE n = 3", [forged])
    assert {(one.table, one.column) for one in copied.damage()} >= {("ledger_entries", "fact")}


def digits_of(fact: bytes) -> list[str]:
    """The digests and ids that a packed fact has behind its frame."""
    words = fact.decode().replace("sha256:", "").split('"')
    return [
        one.replace("-", "")
        for one in words
        if len(one) in {36, 64} and set(one) <= set("0123456789abcdef-")
    ]


def test_a_packed_fact_that_was_cut_is_damaged() -> None:
    packed = pack_fact(b'{"id":"01a21dcc-6bab-7000-aac2-b8e83cf77998","kind":"call.ended"}')
    for forged in (packed[:-1], packed[:-17], packed + b"\0"):
        with pytest.raises(DamageError, match="a ledger entry is damaged"):
            unpack_fact(forged)


@pytest.mark.parametrize("number", ["last", b"\xff", 5.5, 9.3e18, -1e30, (1 << 63) - 1])
def test_an_entry_with_an_impossible_number_hides_no_damage(
    copied: StoreParts, number: object
) -> None:
    copied.run(
        "INSERT INTO ledger_entries SELECT journal_key, ?, kind, subject_id, fact, hash"
        " FROM ledger_entries WHERE n = 5",
        [number],
    )
    copied.run("UPDATE surfaces SET receipt = 'forged' WHERE invocation_key = 1")
    ((name,),) = copied.run("SELECT id FROM invocations WHERE key = 1")
    found = copied.damage()
    said = f"ledger_entries.n of the row with n {number!r} cannot be read"
    assert said in {one.message for one in found}
    assert f"call {UUID(bytes=name)}" in {one.subject for one in found}


def test_every_tombstone_is_listed(copied: StoreParts) -> None:
    copied.run("DELETE FROM tombstones")
    digest = digest_of(b"what no body has")
    copied.run(
        f"{BURIED} VALUES ('body', ?, 1, 'forged', 'r', 'a', 7)", [bytes.fromhex(digest[7:])]
    )
    found = [one for one in copied.verify() if one.table == "tombstones"]
    assert [(one.kind, one.subject) for one in found] == [("incomplete", f"body {digest}")]
    assert found[0].message == f"body {digest} was removed (forged)"


def test_an_artifact_with_a_tombstone_is_compared_as_long_as_it_is_there(
    copied: StoreParts,
) -> None:
    ((digest,),) = copied.run("SELECT digest FROM artifacts ORDER BY key LIMIT 1")
    path = artifact_path(Digest(f"sha256:{digest.hex()}"))
    copied.run(f"{BURIED} VALUES ('artifact', ?, 1, 'r', 'r', 'a', 7)", [digest])
    assert copied.damage() == []
    copied.run("UPDATE artifacts SET line_count = line_count + 1 WHERE digest = ?", [digest])
    assert {one.subject for one in copied.damage()} == {f"artifact {path}"}
    copied.sink.delete(path)
    assert copied.damage() == []


def test_a_message_whose_document_is_erased_is_compared_with_its_fact(copied: StoreParts) -> None:
    ((name, document),) = copied.run(
        "SELECT m.id, m.document FROM messages AS m"
        " JOIN agent_outcomes AS o ON o.message_key = m.key ORDER BY m.key LIMIT 1"
    )
    copied.run(f"{BURIED} VALUES ('body', ?, 1, 'r', 'r', 'a', 7)", [document])
    copied.run("UPDATE bodies SET data = NULL WHERE digest = ?", [document])
    assert copied.damage() == []
    copied.run("UPDATE messages SET role = 'user' WHERE id = ?", [name])
    assert places(copied) == {("messages", "role", f"message {UUID(bytes=name)}")}


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (f"UPDATE messages SET seq = seq + 1000 WHERE id = x'{RICH.bytes.hex()}'", "session "),
        (f"UPDATE invocations SET seq = seq + 1000 WHERE id = x'{LARGE.bytes.hex()}'", "session "),
        ("UPDATE sessions SET journal_key = 99", "session "),
        (f"UPDATE invocations SET is_late = 'x' WHERE id = x'{SHORT.bytes.hex()}'", "call "),
    ],
)
def test_an_impossible_value_of_one_of_several_journals_is_named(
    copied: StoreParts, change: str, subject: str
) -> None:
    copied.other_journal().ingest(started(OPENED, CALL), ended(OPENED, CALL, b"there\n"))
    assert copied.damage() == []
    copied.run(change)
    assert any(one.subject.startswith(subject) for one in copied.damage())


@pytest.mark.parametrize(
    ("table", "column"), [("invocations", "start_entry"), ("messages", "entry")]
)
def test_a_row_that_names_no_entry_is_named(copied: StoreParts, table: str, column: str) -> None:
    loosen(copied, table)
    name = UUID(int=998)
    copied.run(f"INSERT INTO {table} SELECT * FROM {table} ORDER BY key LIMIT 1")
    last = f"rowid = (SELECT max(rowid) FROM {table})"
    copied.run(f"UPDATE {table} SET key = 998, id = ?, {column} = NULL WHERE {last}", [name.bytes])
    kind = "call" if table == "invocations" else "message"
    assert (table, column, f"{kind} {name}") in places(copied)


def test_a_call_without_a_key_stops_nothing(copied: StoreParts) -> None:
    loosen(copied, "invocations")
    copied.run(f"UPDATE invocations SET key = NULL WHERE id = x'{SHORT.bytes.hex()}'")
    copied.run("UPDATE messages SET role = 'user' WHERE id = ?", [RICH.bytes])
    subjects = {one.subject for one in copied.damage()}
    assert {f"call {SHORT}", f"message {RICH}"} <= subjects


def test_an_unknown_encoding_of_a_body_is_named(copied: StoreParts) -> None:
    loosen(copied, "bodies")
    where = "key = (SELECT min(key) FROM bodies WHERE encoding = 'raw')"
    ((digest,),) = copied.run(f"SELECT digest FROM bodies WHERE {where}")
    copied.run(f"UPDATE bodies SET encoding = 'gzip' WHERE {where}")
    assert {one.subject for one in copied.damage()} == {f"body sha256:{digest.hex()}"}


def test_a_tombstone_of_a_body_that_is_here_says_so(copied: StoreParts) -> None:
    ((digest,),) = copied.run("SELECT digest FROM bodies WHERE data IS NOT NULL LIMIT 1")
    copied.run(f"{BURIED} VALUES ('body', ?, 1, 'forged', 'r', 'a', 7)", [digest])
    said = f"body sha256:{digest.hex()} has a tombstone, but is still stored (forged)"
    assert said in {one.message for one in copied.verify()}


@pytest.mark.parametrize(("n", "said"), [(5, "is in the ledger twice"), (-1, "was added")])
def test_an_added_entry_is_named(copied: StoreParts, n: int, said: str) -> None:
    loosen(copied, "ledger_entries")
    copied.run(
        "INSERT INTO ledger_entries SELECT journal_key, ?, kind, subject_id, fact, hash"
        " FROM ledger_entries WHERE n = 5",
        [n],
    )
    messages = [one.message for one in copied.damage()]
    assert any(one.startswith(f"entry {n} of journal ") and one.endswith(said) for one in messages)
    assert not any("removed" in one for one in messages)
