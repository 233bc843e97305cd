"""The three surfaces of a call come back byte for byte."""

from pathlib import Path
from uuid import UUID

import pytest
from tests.support import schema
from tests.support.call_facts import as_shown, changed, ended, next_id, started
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.artifacts import artifact_path
from tooltrail.journal import Entry
from tooltrail.records.canonical_json import encode
from tooltrail.records.command_documents import stream_members
from tooltrail.records.digests import digest_of
from tooltrail.records.fact_spelling import read_fact, read_shown
from tooltrail.records.facts import CallEnded, OmissionFact, Shown
from tooltrail.store.bodies import unpack_fact
from tooltrail.store.ingest.outcomes import text_of
from tooltrail.store.references import expand_canonical, expand_output

ENVELOPE = {"tool_name": "bash", "status": "success", "summary_text": "s", "error": None}


def restored(store: StoreParts, shown: Shown | None = None) -> dict[str, bytes]:
    """The surfaces of the only call, as a reader restores them."""
    ((output, canonical, receipt, made, is_exact),) = store.rows(
        schema.surfaces, "output", "canonical", "receipt", "shown", "is_exact"
    )
    end = read_fact(unpack_fact(store.rows(schema.ledger_entries, "fact")[-1][0]))
    assert isinstance(end, CallEnded)
    texts = {
        "output": expand_output(output, [stream_members(one) for one in end.streams]).encode(),
        "receipt": receipt.encode(),
    }
    texts["canonical"] = expand_canonical(canonical, texts["receipt"]).encode()
    if not is_exact:
        document = None if made is None else store.body(made)
        named = shown if document is None else read_shown(document)
        # Without a document the arguments alone are not exact.
        if named is not None:
            for name, digest in (("canonical", named.canonical), ("receipt", named.receipt)):
                texts[name] = store.body(digest) or texts[name]
    names = ("role", "digest", "size", "receipt_offset")
    for role, digest, size, offset in store.rows(schema.streams, *names):
        if offset is not None:
            whole = texts["receipt"][offset : offset + size]
        elif (body := store.body(digest)) is not None:
            whole = body
        else:
            with store.archive.open(artifact_path(digest)) as stored:
                whole = stored.read()
        assert digest_of(whole) == digest
        texts[role] = whole
    return texts


def ingest_shown(
    store: StoreParts, canonical: bytes, receipt: bytes, stdout: bytes = b"out\n"
) -> dict[str, bytes]:
    session, call = next_id(), next_id()
    shown = as_shown(canonical, receipt)
    end = ended(session, call, stdout, shown=shown, bodies=[canonical, receipt])
    store.ingest(started(session, call), end)
    assert not store.rejections()
    return restored(store, shown)


LONG = 'line with a tab\t, a quote" and \u00e9\U0001f422\n' * 5


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("stdout", "receipt"),
    [
        (LONG, f"$ ls\n{LONG}"),
        (LONG, "something else"),
        (LONG, LONG + LONG),
        ("short", "short"),
        ("", ""),
        ("nul \0 byte " * 10, "before nul \0 byte " * 10),
        (LONG, f"$ \0\n{LONG}"),
    ],
)
def test_what_was_shown_is_kept_byte_for_byte(parts: StoreParts, stdout: str, receipt: str) -> None:
    canonical = encode({**ENVELOPE, "result": {"stdout": stdout, "again": stdout}})
    texts = ingest_shown(parts, canonical, receipt.encode(), stdout.encode())
    assert texts["canonical"] == canonical
    assert texts["receipt"] == receipt.encode()
    assert texts["stdout"] == stdout.encode()


def test_a_stream_that_stands_in_the_receipt_is_stored_once(parts: StoreParts) -> None:
    canonical = encode({**ENVELOPE, "result": {"stdout": LONG}})
    ingest_shown(parts, canonical, f"$ ls\n{LONG}".encode(), LONG.encode())
    ((stored, receipt),) = parts.rows(schema.surfaces, "canonical", "receipt")
    assert f'{{"$tooltrail.receipt":[5,{len(LONG.encode())}]}}' in stored
    assert receipt == f"$ ls\n{LONG}"
    assert parts.body(digest_of(LONG.encode())) is None


@pytest.mark.both_engines
@pytest.mark.parametrize("receipt", [b"\xff\xfe bytes", b"\xed\xa0\x80 a lone surrogate"])
def test_a_receipt_that_no_text_column_can_hold_is_exact_as_a_body(
    parts: StoreParts, receipt: bytes
) -> None:
    canonical = encode({**ENVELOPE, "result": {"stdout": "\ud800"}})
    assert ingest_shown(parts, canonical, receipt)["receipt"] == receipt
    ((is_exact,),) = parts.rows(schema.surfaces, "is_exact")
    assert not is_exact


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "canonical",
    [
        b'{"result":{"$tooltrail.receipt":[0,3]}}',
        b'{"result":"\xed\xa0\x80"}',
        b"not JSON at all \0",
        b"",
    ],
)
def test_a_foreign_canonical_result_is_kept_byte_for_byte(
    parts: StoreParts, canonical: bytes
) -> None:
    assert ingest_shown(parts, canonical, LONG.encode())["canonical"] == canonical


@pytest.mark.both_engines
def test_arguments_with_a_nul_are_exact_as_a_body(parts: StoreParts) -> None:
    session, call, arguments = next_id(), next_id(), b'{"a":"\0"}'
    parts.ingest(started(session, call, arguments=arguments))
    assert parts.rows(schema.surfaces, "arguments", "is_exact") == [('{"a":"\\0"}', False)]
    assert parts.body(digest_of(arguments)) == arguments


@pytest.mark.parametrize("is_started_before", [False, True])
def test_arguments_that_are_not_exact_leave_the_result_readable(
    parts: StoreParts, is_started_before: bool
) -> None:
    session, call = next_id(), next_id()
    parts.append(started(session, call, arguments=b"\xff"))
    if is_started_before:
        parts.ingest()
    parts.ingest(ended(session, call, LONG.encode()))
    ((is_exact, canonical),) = parts.rows(schema.surfaces, "is_exact", "canonical")
    assert not is_exact, parts.rejections()
    assert "$tooltrail.receipt" in canonical
    assert restored(parts)["stdout"] == LONG.encode()


@pytest.mark.parametrize(
    "stdout", [b"", b"plain\n", LONG.encode(), b"\xff\x00 binary", b"nul \0 in text", b"x" * 15_000]
)
def test_a_result_that_nobody_was_shown_is_projected_and_rendered(
    parts: StoreParts, stdout: bytes
) -> None:
    session, call = next_id(), next_id()
    end = ended(session, call, stdout)
    parts.ingest(started(session, call), end)
    assert not parts.rejections()
    texts = restored(parts)
    assert texts["output"] == end.bodies[0]
    assert texts["stdout"] == stdout
    assert texts["canonical"].startswith(b'{"error":null,"result":{')
    assert parts.rows(schema.surfaces, "renderer") == [("command",)]


def all_rows(store: StoreParts) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a store, without the times and the place of this run."""
    of_this_run = {"ingested_at", "created_at", "host", "spool", "rejected_at", "noticed_at"}
    return {
        table.name: store.rows(
            table, *(one.name for one in table.columns if one.name not in of_this_run)
        )
        for table in schema.metadata.sorted_tables
        if table is not schema.store_info
    }


def calls_of(session: UUID) -> list[Entry]:
    entries = list[Entry]()
    for stdout in (b"", LONG.encode(), b"\0\xff", b"y" * 15_000, b"some\n" * 2_000):
        call = next_id()
        entries += [started(session, call), ended(session, call, stdout)]
    return entries


@pytest.mark.both_engines
def test_the_same_journal_gives_the_same_rows_in_two_stores(database: str, tmp_path: Path) -> None:
    entries = calls_of(next_id())
    with store_parts(database, tmp_path) as store:
        store.ingest(*entries)
        first = all_rows(store)
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "spool").symlink_to(tmp_path / "spool")
        with store_parts(str(folder / "other.db"), folder) as other:
            # One by one, where the first store took a batch.
            for _ in range(3):
                other.ingest()
            assert all_rows(other) == first
    assert len(first["invocations"]) == 5
    assert first["omissions"]


@pytest.mark.both_engines
def test_omissions_are_counted(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    omission = OmissionFact(
        stage="render", field="stdout", unit="bytes", before=10, after=3, reason="budget \0"
    )
    canonical, receipt = encode({**ENVELOPE, "result": None}), b"cut"
    shown = as_shown(canonical, receipt, omissions=(omission,))
    parts.ingest(
        started(session, call), ended(session, call, shown=shown, bodies=[canonical, receipt])
    )
    names = ("n", "stage", "field", "unit", "before_count", "after_count", "reason")
    assert parts.rows(schema.omissions, *names) == [
        (0, "render", "stdout", "bytes", 10, 3, "budget \\0")
    ]
    assert parts.rows(schema.invocations, "truncated") == [(True,)]


def test_a_stream_whose_size_is_not_that_of_its_body_is_rejected(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    canonical, receipt = encode({**ENVELOPE, "result": None}), b"r"
    end = ended(session, call, shown=as_shown(canonical, receipt), bodies=[canonical, receipt])
    assert isinstance(end.fact, CallEnded)
    wrong = end.fact.streams[0].replaced(size=9)
    parts.ingest(started(session, call), changed(end, streams=(wrong,)))
    assert parts.rejections() == ["stream stdout has 4 bytes, not 9"]


def test_a_lone_surrogate_is_shown_as_its_escape() -> None:
    assert text_of("echo \ud83d".encode("utf-8", "surrogatepass")) == (r"echo \ud83d", False)
