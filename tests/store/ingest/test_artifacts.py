"""Artifacts of spooled streams are in the sink, or are listed as waiting until the sink is back."""

import pytest
from tests.support.new_store_ingesting import (
    IngestedStore,
    as_shown,
    ended,
    ended_spooled,
    next_id,
    spool,
    started,
)

from tooltrail.artifacts import artifact_path
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import ArtifactFact, Shown
from tooltrail.store import schema

LONG = b"".join(b"%d some line of a log\n" % n for n in range(20_000))
ENVELOPE = {"tool_name": "bash", "status": "success", "summary_text": "", "error": None}


def stored(store: IngestedStore, digest: Digest) -> bytes:
    with store.archive.open(artifact_path(digest)) as file:
        return file.read()


def referenced(store: IngestedStore) -> set[Digest]:
    """Every digest that a canonical result or a stream without bytes in the database names."""
    found = {digest for (digest,) in store.rows(schema.invocation_artifacts, "digest")}
    for digest, offset in store.rows(schema.streams, "digest", "receipt_offset"):
        if offset is None and store.body(digest) is None:
            found.add(digest)
    return found


def assert_nothing_dangles(store: IngestedStore) -> None:
    known = {digest for (digest,) in store.rows(schema.artifacts, "digest")}
    waiting = dict(store.rows(schema.pending_artifacts, "digest", "spooled"))
    for digest in referenced(store):
        if digest in known:
            assert digest_of(stored(store, digest)) == digest
        elif waiting[digest] is None:
            assert store.body(digest) is not None
        else:
            assert (store.spool / waiting[digest]).is_file()


def folders(store: IngestedStore) -> set[str]:
    return {one.name for one in store.spool.iterdir()} - {"journal", "owners", "damaged"}


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_spooled_stream_becomes_an_artifact(ingesting: IngestedStore, is_shown: bool) -> None:
    session, call = next_id(), next_id()
    record = spool(ingesting, call, LONG)
    end = ended(session, call, record, spooled=f"{call}/stdout.zst")
    if is_shown:
        canonical = encode({**ENVELOPE, "result": None})
        end = ended(
            session,
            call,
            record,
            spooled=f"{call}/stdout.zst",
            shown=as_shown(canonical, b"r"),
            bodies=[canonical, b"r"],
        )
    ingesting.ingest(started(session, call), end)
    assert not ingesting.rejections()
    names = ("digest", "size", "line_count")
    assert ingesting.rows(schema.artifacts, *names) == [(digest_of(LONG), len(LONG), 20_000)]
    assert stored(ingesting, digest_of(LONG)) == LONG
    assert str(call) not in folders(ingesting)
    assert_nothing_dangles(ingesting)
    if not is_shown:
        assert ingesting.rows(schema.invocation_artifacts, "role", "digest") == [
            ("stdout", digest_of(LONG))
        ]
        assert ingesting.rows(schema.invocations, "truncated", "output_size") == [(True, len(LONG))]


def test_a_spooled_stream_is_projected_like_the_same_bytes_in_a_frame(
    ingesting: IngestedStore,
) -> None:
    session, one, two = next_id(), next_id(), next_id()
    data = LONG[:60_000]
    ingesting.ingest(started(session, one), ended(session, one, data))
    ingesting.ingest(started(session, two), ended_spooled(ingesting, session, two, data))
    assert not ingesting.rejections()
    first, second = ingesting.rows(schema.surfaces, "output", "receipt", "shown")
    assert first == second
    assert_nothing_dangles(ingesting)


def test_a_stream_in_a_frame_that_the_result_refers_to_is_an_artifact_too(
    ingesting: IngestedStore,
) -> None:
    session, call = next_id(), next_id()
    ingesting.ingest(started(session, call), ended(session, call, LONG[:60_000]))
    ((role, digest),) = ingesting.rows(schema.invocation_artifacts, "role", "digest")
    assert (role, stored(ingesting, digest)) == ("stdout", LONG[:60_000])


def test_a_body_that_a_shown_result_names_as_an_artifact_is_published(
    ingesting: IngestedStore,
) -> None:
    session, call, hidden = next_id(), next_id(), b"a diff that the result only refers to"
    canonical = encode({**ENVELOPE, "result": {"artifacts": []}})
    shown = Shown(
        canonical=digest_of(canonical),
        receipt=digest_of(b"r"),
        renderer="seen",
        renderer_version=0,
        artifacts=(ArtifactFact(role="diff", digest=digest_of(hidden)),),
    )
    end = ended(session, call, shown=shown, bodies=[canonical, b"r", hidden])
    ingesting.ingest(started(session, call), end)
    assert stored(ingesting, digest_of(hidden)) == hidden


def test_while_the_sink_is_away_a_stream_waits_in_the_spool(ingesting: IngestedStore) -> None:
    session, call = next_id(), next_id()
    ingesting.sink.is_away = True
    done = ingesting.ingest(started(session, call), ended_spooled(ingesting, session, call, LONG))
    assert done.pending_count == 1
    names = ("digest", "spooled", "role", "size", "line_count", "reason")
    assert ingesting.rows(schema.pending_artifacts, *names) == [
        (
            digest_of(LONG),
            f"{call}/stdout.zst",
            "stdout",
            len(LONG),
            20_000,
            "the sink is away",
        )
    ]
    assert ingesting.rows(schema.invocations, "state") == [("success",)]
    assert folders(ingesting) == {str(call)}
    assert_nothing_dangles(ingesting)


def test_what_waits_is_published_when_the_sink_is_back(ingesting: IngestedStore) -> None:
    session, one, two = next_id(), next_id(), next_id()
    ingesting.sink.is_away = True
    ingesting.ingest(
        started(session, one),
        ended_spooled(ingesting, session, one, LONG),
        started(session, two),
        ended_spooled(ingesting, session, two, LONG + b"more"),
    )
    assert ingesting.ingest().published_count == 0
    assert folders(ingesting) == {str(one), str(two)}
    ingesting.sink.is_away = False
    assert ingesting.ingest().published_count == 2
    assert not ingesting.count(schema.pending_artifacts)
    assert not folders(ingesting)
    assert stored(ingesting, digest_of(LONG)) == LONG
    assert len(referenced(ingesting)) == 2
    assert_nothing_dangles(ingesting)
    assert ingesting.ingest().published_count == 0


def test_content_in_memory_waits_as_a_body(ingesting: IngestedStore) -> None:
    session, call, data = next_id(), next_id(), LONG[:60_000]
    ingesting.sink.is_away = True
    ingesting.ingest(started(session, call), ended(session, call, data))
    assert ingesting.rows(schema.pending_artifacts, "digest", "spooled") == [
        (digest_of(data), None)
    ]
    assert ingesting.body(digest_of(data)) == data
    assert_nothing_dangles(ingesting)
    ingesting.sink.is_away = False
    assert ingesting.ingest().published_count == 1
    assert stored(ingesting, digest_of(data)) == data
    assert not ingesting.count(schema.pending_artifacts)


def test_the_same_content_of_two_calls_waits_once_and_leaves_no_folder(
    ingesting: IngestedStore,
) -> None:
    session, calls = next_id(), [next_id() for _ in range(3)]
    ingesting.sink.is_away = True
    for call in calls:
        ingesting.ingest(started(session, call), ended_spooled(ingesting, session, call, LONG))
    assert ingesting.count(schema.pending_artifacts) == 1
    assert_nothing_dangles(ingesting)
    ingesting.sink.is_away = False
    ingesting.ingest()
    assert not folders(ingesting)
    assert stored(ingesting, digest_of(LONG)) == LONG


def test_a_call_whose_spooled_stream_is_gone_is_rejected(ingesting: IngestedStore) -> None:
    session, one, two = next_id(), next_id(), next_id()
    end = ended_spooled(ingesting, session, one, LONG)
    (ingesting.spool / str(one) / "stdout.zst").unlink()
    other = ended_spooled(ingesting, session, two, LONG)
    ingesting.ingest(started(session, one), end, started(session, two), other)
    (reason,) = ingesting.rejections()
    assert reason.startswith("stream stdout: ")
    assert reason.endswith("stdout.zst is missing")
    assert ingesting.rows(schema.invocations, "id", "state") == [
        (one, "started"),
        (two, "success"),
    ]


@pytest.mark.parametrize("is_away", [False, True])
def test_a_shown_call_whose_spooled_stream_is_gone_is_rejected(
    ingesting: IngestedStore, is_away: bool
) -> None:
    session, call = next_id(), next_id()
    record = spool(ingesting, call, LONG)
    (ingesting.spool / str(call) / "stdout.zst").unlink()
    canonical = encode({**ENVELOPE, "result": None})
    end = ended(
        session,
        call,
        record,
        spooled=f"{call}/stdout.zst",
        shown=as_shown(canonical, b"r"),
        bodies=[canonical, b"r"],
    )
    ingesting.sink.is_away = is_away
    after = next_id()
    ingesting.ingest(started(session, call), end, started(session, after), ended(session, after))
    assert len(ingesting.rejections()) == 1
    assert ingesting.rows(schema.invocations, "state") == [("started",), ("success",)]


def test_a_spooled_stream_with_other_bytes_is_rejected_and_its_file_stays(
    ingesting: IngestedStore,
) -> None:
    session, call = next_id(), next_id()
    end = ended_spooled(ingesting, session, call, LONG)
    file = ingesting.spool / str(call) / "stdout.zst"
    file.unlink()
    spool(ingesting, call, LONG[:-1] + b"!")
    ingesting.ingest(started(session, call), end)
    assert "which are not the" in ingesting.rejections()[0]
    ingesting.ingest()
    assert file.is_file()


def test_a_path_that_leaves_the_spool_is_rejected(ingesting: IngestedStore) -> None:
    session, call = next_id(), next_id()
    record = spool(ingesting, call, LONG)
    end = ended(session, call, record, spooled="../outside/stdout.zst")
    ingesting.ingest(started(session, call), end)
    assert "not a relative, normalised path" in ingesting.rejections()[0]


def test_the_end_of_a_call_that_comes_twice_does_not_miss_its_spool(
    ingesting: IngestedStore,
) -> None:
    session, call = next_id(), next_id()
    end = ended_spooled(ingesting, session, call, LONG)
    ingesting.ingest(started(session, call), end)
    ingesting.ingest(end)
    assert not ingesting.rejections()
    assert ingesting.count(schema.ledger_entries) == 3


def test_a_folder_that_a_killed_ingester_left_is_removed(ingesting: IngestedStore) -> None:
    session, call, running = next_id(), next_id(), next_id()
    ingesting.ingest(started(session, call), ended(session, call), started(session, running))
    spool(ingesting, call, LONG)
    spool(ingesting, running, LONG)
    spool(ingesting, unknown := next_id(), LONG)
    ingesting.ingest()
    assert folders(ingesting) == {str(running), str(unknown)}
