"""Artifacts of spooled streams are in the sink, or are listed as waiting until the sink is back."""

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from tests.support import schema
from tests.support.call_facts import as_shown, ended, next_id, started
from tests.support.recording import run_command
from tests.support.store_parts import StoreParts, ended_spooled, spool

from tooltrail.artifacts import artifact_path
from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import UnavailableError
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import ArtifactFact, CallEnded
from tooltrail.store import open_store
from tooltrail.store.ingest import ingester
from tooltrail.store.keep.condition import read_condition

LONG = b"".join(b"%d some line of a log\n" % n for n in range(20_000))
ENVELOPE = {"tool_name": "bash", "status": "success", "summary_text": "", "error": None}


def stored(store: StoreParts, digest: Digest) -> bytes:
    with store.archive.open(artifact_path(digest)) as file:
        return file.read()


def referenced(store: StoreParts) -> set[Digest]:
    """Every digest that a canonical result or a stream without bytes in the database names."""
    found = {digest for (digest,) in store.rows(schema.invocation_artifacts, "digest")}
    for digest, offset in store.rows(schema.streams, "digest", "receipt_offset"):
        if offset is None and store.body(digest) is None:
            found.add(digest)
    return found


def assert_nothing_dangles(store: StoreParts) -> None:
    known = {digest for (digest,) in store.rows(schema.artifacts, "digest")}
    waiting = dict(store.rows(schema.pending_artifacts, "digest", "spooled"))
    for digest in referenced(store):
        if digest in known:
            assert digest_of(stored(store, digest)) == digest
        elif waiting[digest] is None:
            assert store.body(digest) is not None
        else:
            assert (store.spool / waiting[digest]).is_file()


def folders(store: StoreParts) -> set[str]:
    return {one.name for one in store.spool.iterdir()} - {"journal", "owners", "damaged"}


def shown_and_spooled(store: StoreParts, session: UUID, call: UUID) -> Entry:
    """The end of a call that has its result as shown and its output in the spool."""
    canonical = encode({**ENVELOPE, "result": None})
    return ended(
        session,
        call,
        spool(store, call, LONG),
        spooled=f"{call}/stdout.zst",
        shown=as_shown(canonical, b"r"),
        bodies=[canonical, b"r"],
    )


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_spooled_stream_becomes_an_artifact(parts: StoreParts, is_shown: bool) -> None:
    session, call = next_id(), next_id()
    make_end = shown_and_spooled if is_shown else partial(ended_spooled, data=LONG)
    parts.ingest(started(session, call), make_end(parts, session, call))
    assert not parts.rejections()
    names = ("digest", "size", "line_count")
    assert parts.rows(schema.artifacts, *names) == [(digest_of(LONG), len(LONG), 20_000)]
    assert stored(parts, digest_of(LONG)) == LONG
    assert str(call) not in folders(parts)
    assert_nothing_dangles(parts)
    if not is_shown:
        assert parts.rows(schema.invocation_artifacts, "role", "digest") == [
            ("stdout", digest_of(LONG))
        ]
        assert parts.rows(schema.invocations, "truncated", "output_size") == [(True, len(LONG))]


def test_a_spooled_stream_is_projected_like_the_same_bytes_in_a_frame(parts: StoreParts) -> None:
    session, one, two = next_id(), next_id(), next_id()
    data = LONG[:60_000]
    parts.ingest(started(session, one), ended(session, one, data))
    parts.ingest(started(session, two), ended_spooled(parts, session, two, data))
    assert not parts.rejections()
    first, second = parts.rows(schema.surfaces, "output", "receipt", "shown")
    assert first == second
    assert_nothing_dangles(parts)


def test_a_spooled_stream_that_is_shown_whole_is_a_body_and_no_artifact(parts: StoreParts) -> None:
    session, call, data = next_id(), next_id(), b"a line\n" * 4_000
    parts.ingest(started(session, call), ended_spooled(parts, session, call, data))
    assert parts.rows(schema.artifacts, "digest") == []
    assert parts.rows(schema.pending_artifacts, "digest") == []
    offset = dict(parts.rows(schema.streams, "role", "receipt_offset"))["stdout"]
    assert offset is not None or parts.body(digest_of(data)) == data
    assert str(call) not in folders(parts)
    assert_nothing_dangles(parts)


def test_a_body_that_a_shown_result_names_as_an_artifact_is_published(parts: StoreParts) -> None:
    session, call, hidden = next_id(), next_id(), b"a diff that the result only refers to"
    canonical = encode({**ENVELOPE, "result": {"artifacts": []}})
    diff = ArtifactFact(role="diff", digest=digest_of(hidden))
    shown = as_shown(canonical, b"r", artifacts=(diff,))
    end = ended(session, call, shown=shown, bodies=[canonical, b"r", hidden])
    parts.ingest(started(session, call), end)
    assert stored(parts, digest_of(hidden)) == hidden


def test_while_the_sink_is_away_a_stream_waits_in_the_spool(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    parts.sink.is_away = True
    done = parts.ingest(started(session, call), ended_spooled(parts, session, call, LONG))
    assert done.pending_count == 1
    names = ("digest", "spooled", "role", "size", "line_count", "reason")
    assert parts.rows(schema.pending_artifacts, *names) == [
        (digest_of(LONG), f"{call}/stdout.zst", "stdout", len(LONG), 20_000, "the sink is away")
    ]
    assert parts.rows(schema.invocations, "state") == [("success",)]
    assert folders(parts) == {str(call)}
    assert_nothing_dangles(parts)


def test_a_reader_asks_a_sink_that_is_away_only_once(
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingester, "BATCH_FRAMES", 2)  # a batch for each call
    session, one, two = next_id(), next_id(), next_id()
    parts.sink.is_away = True
    parts.append(
        started(session, one),
        ended_spooled(parts, session, one, LONG),
        started(session, two),
        ended_spooled(parts, session, two, LONG + b"more"),
    )
    ingesting = parts.ingester()
    assert ingesting.ingest().pending_count == 2
    assert parts.sink.refused_count == 1
    parts.sink.is_away = False
    three = next_id()
    parts.append(started(session, three), ended_spooled(parts, session, three, LONG + b"last"))
    assert ingesting.ingest().pending_count == 0


@pytest.mark.both_engines
def test_what_waits_is_published_when_the_sink_is_back(parts: StoreParts) -> None:
    session, one, two = next_id(), next_id(), next_id()
    parts.sink.is_away = True
    parts.ingest(
        started(session, one),
        ended_spooled(parts, session, one, LONG),
        started(session, two),
        ended_spooled(parts, session, two, LONG + b"more"),
    )
    parts.sink.reason = "the sink has no room"
    assert parts.ingest().published_count == 0
    assert folders(parts) == {str(one), str(two)}
    reasons = parts.rows(schema.pending_artifacts, "reason")
    assert reasons == [("the sink has no room",)] * 2
    parts.sink.is_away = False
    assert parts.ingest().published_count == 2
    assert not parts.count(schema.pending_artifacts)
    assert not folders(parts)
    assert stored(parts, digest_of(LONG)) == LONG
    assert len(referenced(parts)) == 2
    assert_nothing_dangles(parts)
    assert parts.ingest().published_count == 0


@pytest.mark.both_engines
def test_content_in_memory_waits_as_a_body(parts: StoreParts) -> None:
    session, call, data = next_id(), next_id(), LONG[:60_000]
    parts.sink.is_away = True
    parts.ingest(started(session, call), ended(session, call, data))
    assert parts.rows(schema.pending_artifacts, "digest", "spooled") == [(digest_of(data), None)]
    assert parts.body(digest_of(data)) == data
    assert_nothing_dangles(parts)
    parts.sink.is_away = False
    assert parts.ingest().published_count == 1
    assert stored(parts, digest_of(data)) == data
    assert not parts.count(schema.pending_artifacts)


@pytest.mark.both_engines
def test_the_same_content_of_two_calls_waits_once_and_leaves_no_folder(parts: StoreParts) -> None:
    session, calls = next_id(), [next_id() for _ in range(3)]
    parts.sink.is_away = True
    for call in calls:
        parts.ingest(started(session, call), ended_spooled(parts, session, call, LONG))
    assert parts.count(schema.pending_artifacts) == 1
    assert_nothing_dangles(parts)
    parts.sink.is_away = False
    parts.ingest()
    assert not folders(parts)
    assert stored(parts, digest_of(LONG)) == LONG


def test_a_call_whose_spooled_stream_is_gone_is_rejected(parts: StoreParts) -> None:
    session, one, two = next_id(), next_id(), next_id()
    end = ended_spooled(parts, session, one, LONG)
    (parts.spool / str(one) / "stdout.zst").unlink()
    other = ended_spooled(parts, session, two, LONG)
    parts.ingest(started(session, one), end, started(session, two), other)
    (reason,) = parts.rejections()
    assert reason.startswith("stream stdout: ")
    assert reason.endswith("stdout.zst is missing")
    assert parts.rows(schema.invocations, "id", "state") == [(one, "started"), (two, "success")]


@pytest.mark.parametrize("is_away", [False, True])
def test_a_shown_call_whose_spooled_stream_is_gone_is_rejected(
    parts: StoreParts, is_away: bool
) -> None:
    session, call, after = next_id(), next_id(), next_id()
    end = shown_and_spooled(parts, session, call)
    (parts.spool / str(call) / "stdout.zst").unlink()
    parts.sink.is_away = is_away
    parts.ingest(started(session, call), end, started(session, after), ended(session, after))
    assert len(parts.rejections()) == 1
    assert parts.rows(schema.invocations, "state") == [("started",), ("success",)]


def published_earlier(parts: StoreParts, end: Entry) -> Entry:
    """An end whose stream was published, as a newer copy of the database knew."""
    session, call = next_id(), next_id()
    parts.ingest(started(session, call), ended_spooled(parts, session, call, LONG))
    assert isinstance(end.fact, CallEnded)
    shutil.rmtree(parts.spool / str(end.fact.id))
    return end


@pytest.mark.both_engines
@pytest.mark.parametrize("is_shown", [False, True])
def test_a_stream_that_was_published_earlier_needs_no_file(
    parts: StoreParts, is_shown: bool
) -> None:
    session, call = next_id(), next_id()
    make_end = shown_and_spooled if is_shown else partial(ended_spooled, data=LONG)
    end = published_earlier(parts, make_end(parts, session, call))
    artifacts = parts.rows(schema.artifacts, "digest", "size", "stored_size", "line_count")
    parts.alter("DELETE FROM artifacts")
    parts.ingest(started(session, call), end)
    assert not parts.rejections()
    assert parts.rows(schema.invocations, "state") == [("success",)] * 2
    found = parts.rows(schema.artifacts, "digest", "size", "stored_size", "line_count")
    assert found == artifacts
    if not is_shown:
        one, two = parts.rows(schema.surfaces, "canonical", "receipt")
        assert one == two


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_damaged_artifact_replaces_no_file(parts: StoreParts, is_shown: bool) -> None:
    session, call, after = next_id(), next_id(), next_id()
    make_end = shown_and_spooled if is_shown else partial(ended_spooled, data=LONG)
    end = published_earlier(parts, make_end(parts, session, call))
    (file,) = parts.spool.with_name("artifacts").rglob("*.zst")
    file.chmod(0o600)
    with file.open("r+b") as stored:
        stored.seek(100)
        stored.write(b"XXXX")
    parts.ingest(started(session, call), end, started(session, after), ended(session, after))
    (reason,) = parts.rejections()
    assert "artifact sha256/" in reason
    assert reason.endswith("stdout.zst is missing")
    assert parts.rows(schema.invocations, "state") == [("success",), ("started",), ("success",)]


def test_an_artifact_waits_while_its_object_and_its_file_are_damaged(parts: StoreParts) -> None:
    session, call, again = next_id(), next_id(), next_id()
    parts.ingest(started(session, call), shown_and_spooled(parts, session, call))
    (object_file,) = parts.spool.with_name("artifacts").rglob("*.zst")
    end = shown_and_spooled(parts, session, again)
    file = parts.spool / str(again) / "stdout.zst"
    whole = file.read_bytes()
    for one, data in ((object_file, b"XXXX"), (file, b"YYYY")):
        one.chmod(0o600)
        with one.open("r+b") as stored:
            stored.seek(100)
            stored.write(data)
    parts.alter("DELETE FROM artifacts")
    parts.ingest(started(session, again), end)
    ((reason,),) = parts.rows(schema.pending_artifacts, "reason")
    assert "is damaged, and so is the file that could replace it" in reason
    file.write_bytes(whole)
    parts.ingest()
    assert not parts.count(schema.pending_artifacts)
    assert parts.count(schema.artifacts) == 1


@pytest.mark.parametrize("is_shown", [False, True])
def test_while_the_sink_is_away_a_stream_without_a_file_is_not_called_missing(
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    session, call = next_id(), next_id()
    make_end = shown_and_spooled if is_shown else partial(ended_spooled, data=LONG)
    end = published_earlier(parts, make_end(parts, session, call))

    def refuse(path: str) -> None:
        raise UnavailableError(f"the sink is away: {path}")

    with monkeypatch.context() as patched:
        patched.setattr(parts.sink, "open", refuse, raising=False)
        with suppress(UnavailableError):
            parts.ingest(started(session, call), end)
        assert not parts.rejections()
    parts.ingest()
    assert not parts.rejections()
    assert not parts.count(schema.pending_artifacts)
    assert parts.rows(schema.invocations, "state") == [("success",)] * 2


def test_a_spooled_stream_that_no_record_can_hold_blocks_nothing(parts: StoreParts) -> None:
    session, call, after = next_id(), next_id(), next_id()
    end = shown_and_spooled(parts, session, call)
    assert isinstance(end.fact, CallEnded)
    stream, *others = end.fact.streams
    streams = (stream.replaced(role=""), *others)
    nameless = end._replace(fact=end.fact.replaced(streams=streams))
    parts.ingest(started(session, call), nameless, started(session, after), ended(session, after))
    assert len(parts.rejections()) == 1
    assert parts.rows(schema.invocations, "state") == [("started",), ("success",)]


def test_a_spooled_stream_with_other_bytes_is_rejected_and_its_file_stays(
    parts: StoreParts,
) -> None:
    session, call = next_id(), next_id()
    end = ended_spooled(parts, session, call, LONG)
    file = parts.spool / str(call) / "stdout.zst"
    file.unlink()
    spool(parts, call, LONG[:-1] + b"!")
    parts.ingest(started(session, call), end)
    assert "which are not the" in parts.rejections()[0]
    parts.ingest()
    assert file.is_file()


def test_a_path_that_leaves_the_spool_is_rejected(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    record = spool(parts, call, LONG)
    end = ended(session, call, record, spooled="../outside/stdout.zst")
    parts.ingest(started(session, call), end)
    assert "not a relative, normalised path" in parts.rejections()[0]


def test_the_end_of_a_call_that_comes_twice_does_not_miss_its_spool(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    end = ended_spooled(parts, session, call, LONG)
    parts.ingest(started(session, call), end)
    parts.ingest(end)
    assert not parts.rejections()
    assert parts.count(schema.ledger_entries) == 3


def test_a_folder_that_a_killed_ingester_left_is_removed(parts: StoreParts) -> None:
    session, call, running = next_id(), next_id(), next_id()
    parts.ingest(started(session, call), ended(session, call), started(session, running))
    spool(parts, call, LONG)
    spool(parts, running, LONG)
    spool(parts, unknown := next_id(), LONG)
    # The first record of an ended call died long ago; the fact of the other one may still come.
    before, now = (parts.spool / f"{call}.{record}" for record in (next_id(), new_id()))
    before.mkdir()
    now.mkdir()
    parts.ingest()
    assert folders(parts) == {str(running), str(unknown), now.name}


def test_a_link_in_the_artifact_root_rejects_no_fact(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "trail.db-artifacts"
    elsewhere.mkdir()
    root.mkdir()
    (root / "sha256").symlink_to(elsewhere)
    with open_store(tmp_path / "trail.db") as store, store.open_session() as session:
        finished = run_command(session, LONG)
        assert store.ingest().rejected_count == 0
        (waiting,) = read_condition(store).pending
        assert (waiting.digest, waiting.size) == (digest_of(LONG), len(LONG))
        assert "a symbolic link leads" in waiting.reason
        assert not list(elsewhere.iterdir())
        (root / "sha256").unlink()
        store.ingest()  # unless the thread of the store has published it already
        assert read_condition(store).pending == ()
        assert store.reader.invocation(finished.invocation_id).artifacts
