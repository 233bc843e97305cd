"""How invocations and sessions are named."""

from uuid import UUID

import pytest
from tests.support.call_facts import moment
from tests.support.recorded_calls import call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.journal.owners import Owner
from tooltrail.records import AmbiguousNameError, NotFoundError
from tooltrail.records.facts import SessionOpened

SESSION = UUID("01890000-aaaa-7000-8000-00000000beef")
TWIN = UUID("01890000-aaaa-7000-8000-0000dddddeef")


@pytest.fixture
def named(parts: StoreParts) -> StoreParts:
    made = [
        call(SESSION, 1, receipt=b"r", tool="read"),
        call(SESSION, 3, receipt=b"r"),
        call(TWIN, 2, receipt=b"r", tool="read"),
    ]
    opened = Entry(SessionOpened(session=SESSION, at=moment(9), name="nightly/build"))
    parts.ingest(opened, *entries_of(made))
    return parts


def seq_of(store: StoreParts, name: str) -> tuple[UUID, int]:
    summary = store.reader.invocation(name).summary
    return summary.session_id, summary.seq


@pytest.mark.both_engines
def test_an_invocation_is_named_by_its_place(named: StoreParts) -> None:
    for name, place in (
        ("@last", (SESSION, 2)),
        ("@last:read", (TWIN, 1)),
        (f"{SESSION}#1", (SESSION, 1)),
        ("@last#2", (SESSION, 2)),
        ("nightly/build#2", (SESSION, 2)),
        ("beef#1", (SESSION, 1)),
    ):
        assert seq_of(named, name) == place
    for name in (
        *("", "abc", "zzzz", "@last:nothing", "beef#9", "beef#x", "beef#", "#1"),
        "f" * 32,
    ):
        with pytest.raises(NotFoundError):
            named.reader.invocation(name)


@pytest.mark.both_engines
def test_an_invocation_is_named_by_any_unique_end_of_its_id(named: StoreParts) -> None:
    for one in named.reader.invocations().items:
        digits = one.id.hex
        for name in (str(one.id), digits.upper(), digits[-12:], digits[-11:]):
            assert named.reader.invocation(name).summary == one


@pytest.mark.both_engines
def test_a_session_is_named(named: StoreParts) -> None:
    for name in ("nightly/build", str(SESSION), "beef", "0beef", "@last", SESSION.hex.upper()):
        assert named.reader.session(name).id == SESSION
    # The beginning of two.
    for name in ("0189", "01890000aaaa", "01890000-aaaa-7000-8000-0000"):
        with pytest.raises(AmbiguousNameError) as caught:
            named.reader.session(name)
        assert caught.value.candidates == (str(TWIN), str(SESSION))


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, ", and more")])
def test_more_candidates_than_are_listed_are_mentioned(
    parts: StoreParts, count: int, more: str
) -> None:
    made = [call(SESSION, n, receipt=b"r", start={"call_id": "same"}) for n in range(1, count + 1)]
    parts.ingest(*entries_of(made))
    beginning = made[0].started.id.hex[:4]  # of the time, which has these digits for 49 days
    for name in ("same", beginning):
        with pytest.raises(AmbiguousNameError) as caught:
            parts.reader.invocation(name)
        listed = {*caught.value.candidates}
        assert len(listed) == 5
        assert listed <= {str(one.started.id) for one in made}
        assert str(caught.value).endswith(f"{caught.value.candidates[-1]}{more}")


def test_an_empty_store_has_no_last(parts: StoreParts) -> None:
    for ask in (parts.reader.invocation, parts.reader.session):
        with pytest.raises(NotFoundError, match=r"the store has no (invocation|session)"):
            ask("@last")


def test_two_sessions_of_one_name_are_ambiguous(named: StoreParts) -> None:
    named.ingest(Entry(SessionOpened(session=new_id(), at=moment(1), name="nightly/build")))
    with pytest.raises(AmbiguousNameError):
        named.reader.session("nightly/build")


@pytest.mark.both_engines
def test_a_call_is_named_by_the_id_of_its_provider_and_while_it_runs(parts: StoreParts) -> None:
    owner = Owner(parts.spool)
    runs = {"call_id": "twice", "owner": owner.name()}
    made = [
        call(SESSION, 1, receipt=b"r", tool="read", start={"call_id": "toolu/1"}),
        call(SESSION, 2, tool="bash", state=None, start=runs),
        call(TWIN, 3, tool="read", state=None, start=runs),
        call(TWIN, 4, tool="read", state=None),  # imported, without a result
    ]
    parts.ingest(*entries_of(made))
    assert seq_of(parts, "toolu/1") == (SESSION, 1)
    assert seq_of(parts, "@running") == (TWIN, 1)
    assert seq_of(parts, "@running:bash") == (SESSION, 2)
    with pytest.raises(AmbiguousNameError):
        parts.reader.invocation("twice")
    with pytest.raises(NotFoundError, match="the store has no running invocation of cat"):
        parts.reader.invocation("@running:cat")


@pytest.mark.both_engines
def test_an_id_of_a_provider_may_look_like_another_name(parts: StoreParts) -> None:
    first = call(SESSION, 1, receipt=b"r")
    part = first.started.id.hex[-8:]
    made = [
        first,
        call(SESSION, 2, receipt=b"r", start={"call_id": part}),
        call(SESSION, 3, receipt=b"r", start={"call_id": "call#1"}),
        call(SESSION, 4, receipt=b"r", start={"call_id": first.started.id.hex}),
        call(SESSION, 5, receipt=b"r", start={"call_id": "beef#1"}),
    ]
    parts.ingest(*entries_of(made))
    with pytest.raises(AmbiguousNameError):
        parts.reader.invocation(part)
    assert seq_of(parts, "call#1") == (SESSION, 3)
    for name in (first.started.id.hex, "beef#1"):
        assert seq_of(parts, name) == (SESSION, 1)
