"""A fact comes back from its JSON, and what is no fact of this version is refused."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import canonical_json
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.fact_spelling import NewerFactError, body_digests, fact_json, read_fact
from tooltrail.records.facts import (
    FACTS,
    AgentLeg,
    ArtifactFact,
    CallEnded,
    CallStarted,
    Fact,
    OmissionFact,
    RedactionFact,
    SessionClosed,
    Shown,
    SourceFact,
    StreamFact,
    ToolsOffered,
)
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
MEMBERS: dict[str, Any] = {"session": UUID(int=7), "at": AT}
CLOSED = SessionClosed(**MEMBERS)

TEXT = st.text(st.characters(), max_size=20)
"""Any text, with lone surrogates, too."""

DIGESTS = st.binary(max_size=4).map(digest_of)
COUNTS = st.integers(-(1 << 80), 1 << 80)
TIMES = st.timedeltas(timedelta(days=-700_000), timedelta(days=2_900_000)).map(lambda ago: AT + ago)


def instances(shape: type[Frozen]) -> st.SearchStrategy[Any]:
    """Any instance of a class of facts, each optional member there or not."""
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name, kind in shape.member_types.items():
        place = optional if hasattr(shape, name) else required
        place[name] = VALUES[kind]
    return st.fixed_dictionaries(required, optional=optional).map(lambda members: shape(**members))


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    str | None: st.none() | TEXT,
    int: COUNTS,
    int | None: st.none() | COUNTS,
    bool | None: st.none() | st.booleans(),
    UUID: st.uuids(),
    UUID | None: st.none() | st.uuids(),
    datetime: TIMES,
    Digest: DIGESTS,
    Digest | None: st.none() | DIGESTS,
    InvocationState: st.sampled_from(get_args(InvocationState)),
    tuple[Digest, ...]: st.lists(DIGESTS, max_size=3).map(tuple),
    tuple[str, ...]: st.lists(TEXT, max_size=3).map(tuple),
}
VALUES[tuple[StreamFact, ...]] = st.lists(instances(StreamFact), max_size=3).map(tuple)
VALUES[tuple[OmissionFact, ...]] = st.lists(instances(OmissionFact), max_size=3).map(tuple)
VALUES[tuple[ArtifactFact, ...]] = st.lists(instances(ArtifactFact), max_size=3).map(tuple)
VALUES[Shown | None] = st.none() | instances(Shown)
VALUES[tuple[RedactionFact, ...]] = st.lists(instances(RedactionFact), max_size=3).map(tuple)
VALUES[SourceFact | None] = st.none() | instances(SourceFact)

ANY_FACT: st.SearchStrategy[Fact] = st.one_of([instances(one) for one in FACTS.values()])


def altered(fact: Fact, **members: object) -> bytes:
    """The JSON of a fact with some members replaced."""
    found = cast("dict[str, object]", json.loads(fact_json(fact)))
    return json.dumps(found | members).encode()


@given(ANY_FACT)
def test_a_fact_comes_back_from_its_json_which_is_canonical(fact: Fact) -> None:
    data = fact_json(fact)
    assert read_fact(data) == fact
    assert canonical_json.encode(canonical_json.decode(data)) == data


def test_members_with_their_default_are_left_out() -> None:
    assert fact_json(CLOSED) == (
        b'{"at":"2026-01-02T03:04:05.000678Z","kind":"session.closed",'
        b'"session":"00000000-0000-0000-0000-000000000007","v":1}'
    )


def test_a_time_is_kept_in_utc_and_must_have_a_zone() -> None:
    there = AT.astimezone(timezone(timedelta(hours=-7)))
    fact = SessionClosed(session=UUID(int=7), at=there)
    assert fact_json(fact) == fact_json(CLOSED)
    assert read_fact(fact_json(fact)) == CLOSED
    with pytest.raises(InvalidRecordError, match=r"^at cannot be recorded: .* must have a zone"):
        fact_json(SessionClosed(session=UUID(int=7), at=AT.replace(tzinfo=None)))


@each_case(
    "members",
    [
        {"v": 2},
        {"v": "1"},
        {"v": True},
        {"v": None},
        {"kind": "session.renamed"},
        {"kind": None},
        {"kind": ["session.closed"]},
        {"mood": "good"},
    ],
)
def test_a_fact_that_a_newer_program_wrote_has_its_own_error(members: dict[str, object]) -> None:
    with pytest.raises(NewerFactError):
        read_fact(altered(CLOSED, **members))


def test_a_newer_member_inside_a_member_is_one_too() -> None:
    ended = CallEnded(
        session=UUID(int=1), id=UUID(int=2), at=AT, state="success", output=digest_of(b"")
    )
    stream = {
        "role": "stdout",
        "digest": digest_of(b""),
        "size": 0,
        "line_count": 0,
        "produced_size": 0,
        "produced_line_count": 0,
    }
    assert read_fact(altered(ended, streams=[stream]))
    with pytest.raises(NewerFactError):
        read_fact(altered(ended, streams=[stream | {"mood": "good"}]))
    with pytest.raises(InvalidRecordError, match="incomplete"):
        read_fact(altered(ended, streams=[{"role": "stdout"}]))


@each_case(
    "members",
    [
        {"session": "7"},
        {"session": None},
        {"session": 7},
        {"at": "yesterday"},
        {"at": "2026-01-02T03:04:05"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"at": "9999-12-31T23:59:59-14:00"},
        {"at": 3},
        {"reason": None},
        {"reason": 3},
        {"reason": ["a"]},
    ],
)
def test_a_bad_member_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        read_fact(altered(CLOSED, **members))
    assert not isinstance(caught.value, NewerFactError)


@each_case(
    ("name", "value"),
    [
        ("state", "fine"),
        ("state", None),
        ("output", "sha256:12"),
        ("output", 1),
        ("duration_ms", 1.5),
        ("duration_ms", True),
        ("timed_out", 1),
        ("streams", ""),
        ("streams", {}),
        ("streams", None),
        ("streams", [None]),
        ("streams", [["stdout"]]),
        ("shown", "text"),
        ("shown", {}),
    ],
)
def test_a_bad_member_of_an_ended_call_is_refused(name: str, value: object) -> None:
    ended = CallEnded(
        session=UUID(int=1), id=UUID(int=2), at=AT, state="success", output=digest_of(b"")
    )
    with pytest.raises(InvalidRecordError) as caught:
        read_fact(altered(ended, **{name: value}))
    assert not isinstance(caught.value, NewerFactError)


@each_case("data", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"v":1,"v":1}'])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        read_fact(data)


def test_a_missing_member_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="incomplete"):
        read_fact(b'{"kind":"session.closed","v":1}')


@each_case(
    "members",
    [
        {"reason": b"bytes"},
        {"reason": 3},
        {"reason": ["a"]},
        {"session": "7"},
        {"at": "2026-01-02"},
        {"at": AT.timestamp()},
        {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))},
    ],
)
def test_what_could_not_be_read_again_is_not_written(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecordError):
        fact_json(SessionClosed(**{**MEMBERS, **members}))


@pytest.mark.parametrize("duration", [1.5, float("nan"), True, "1"])
def test_a_number_of_another_type_is_not_written(duration: Any) -> None:
    with pytest.raises(InvalidRecordError):
        fact_json(
            CallEnded(
                session=UUID(int=1),
                id=UUID(int=2),
                at=AT,
                state="success",
                output=digest_of(b""),
                duration_ms=duration,
            )
        )


def test_the_bodies_of_a_fact_are_those_that_travel_with_it() -> None:
    one, two, three, four, five = (digest_of(bytes([number])) for number in range(5))
    session, id_ = UUID(int=1), UUID(int=2)
    assert body_digests(CLOSED) == []
    offered = ToolsOffered(session=session, id=id_, at=AT, tools=(two, one, two))
    assert body_digests(offered) == [two, one, two]
    started = CallStarted(
        session=session,
        id=id_,
        at=AT,
        tool_name="Bash",
        family="command",
        arguments=one,
        policy=two,
    )
    assert body_digests(started) == [one, two]
    leg = AgentLeg(session=session, id=id_, at=AT, document=two, agent=one)
    assert body_digests(leg) == [two, one]
    streams = tuple(
        StreamFact(
            role="stdout",
            digest=digest,
            size=1,
            line_count=0,
            produced_size=1,
            produced_line_count=0,
            spooled=spooled,
        )
        for digest, spooled in ((two, None), (three, "x/stdout"))
    )
    shown = Shown(canonical=four, receipt=five, renderer="seen", renderer_version=0)
    ended = CallEnded(
        session=session, id=id_, at=AT, state="success", output=one, streams=streams, shown=shown
    )
    assert body_digests(ended) == [one, two, four, five]
