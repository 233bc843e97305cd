"""How people point at things: whole ids, parts of them, places, the last one; and when they err."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert
from tests.support.chance import BEGINNING, insert_facts, random_facts
from tests.support.effort import times
from tests.support.recording import run_command, run_tool

from tooltrail.records import AmbiguousNameError, NotFoundError
from tooltrail.store import Store, create_store
from tooltrail.store.tables import SessionRow

ONE = UUID("01890000-aaaa-7000-8000-0000deadbeef")
TWIN = UUID("01890000-bbbb-7000-8000-0000deadbeef")
OTHER = UUID("01890001-cccc-7000-8000-0000feedf00d")


@pytest.fixture(scope="module")
def named_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with create_store(tmp_path_factory.mktemp("named") / "trail.db") as store:
        with_ids(store, ONE, TWIN, OTHER)
        yield store


def with_ids(store: Store, *ids: UUID) -> None:
    """Invocations of these ids in one session."""
    made = random_facts(len(ids), seed=1, sessions=1)
    insert_facts(store, [replace(fact, id=i) for fact, i in zip(made, ids, strict=True)])


def found(store: Store, name: str | UUID) -> UUID:
    return store.reader.invocation(name).summary.id


def test_an_id_is_found_in_every_spelling(store: Store) -> None:
    with_ids(store, ONE, OTHER)
    names: list[str | UUID] = [ONE, str(ONE), ONE.hex, str(ONE).upper(), ONE.hex.upper()]
    assert [found(store, name) for name in names] == [ONE] * 5


def test_a_part_that_fits_one_is_enough(store: Store) -> None:
    with_ids(store, ONE, OTHER)
    for name in ("0000deadbeef", "beef", "BEEF", "01890000", "01890000-aaaa", "8000-0000deadbeef"):
        assert found(store, name) == ONE
    assert found(store, "f00d") == OTHER
    assert found(store, "01890001") == OTHER


def test_a_part_that_fits_several_names_them_newest_first(store: Store) -> None:
    with_ids(store, ONE, TWIN, OTHER)
    with pytest.raises(AmbiguousNameError) as by_end:
        found(store, "deadbeef")
    assert by_end.value.candidates == (str(TWIN), str(ONE))
    assert by_end.value.name == "deadbeef"
    with pytest.raises(AmbiguousNameError) as by_beginning:
        found(store, "0189")
    assert by_beginning.value.candidates == (str(OTHER), str(TWIN), str(ONE))


def test_a_beginning_of_one_that_is_the_end_of_another_is_ambiguous(store: Store) -> None:
    with_ids(store, UUID("beef0000" + "1" * 24), UUID("1" * 28 + "beef"))
    with pytest.raises(AmbiguousNameError):
        found(store, "beef")


def test_many_candidates_are_not_all_listed(store: Store) -> None:
    with_ids(store, *(UUID(int=(n << 64) + 0xDEADBEEF) for n in range(20)))
    with pytest.raises(AmbiguousNameError) as caught:
        found(store, "deadbeef")
    assert len(caught.value.candidates) == 5


def test_a_name_that_nothing_has_is_not_found(store: Store) -> None:
    for name in (
        *("", "-", "bee", "0189", "beef0", "adbe", "nothex", "be_f", "%beef", "____"),
        *("0" * 33, "ef" * 16, "bee\0f", "\ud800", "٣٣٣٣"),
        *("@last", "@last:", "@last:Bash", "@last:\0\ud800", "@LAST"),
        *("#0", "@last#0", "01890000#", "beef#beef"),
    ):
        for ask in (store.reader.invocation, store.reader.session):
            with pytest.raises(NotFoundError) as caught:
                ask(name)
            assert not isinstance(caught.value, AmbiguousNameError)


def test_a_place_names_an_invocation(store: Store) -> None:
    session = store.open_session()
    session.add_message("user", "first")
    done = run_command(session, b"x").invocation_id
    later = store.open_session()
    other = run_tool(later, "y").invocation_id

    for name in (str(session.id), session.id.hex[-12:]):
        assert found(store, f"{name}#1") == done
    assert found(store, "@last#0") == other
    wrong = ["0", "2", "-1", "+1", "1.0", "", "x", "٣", "1" * 18, "1" * 19, "9" * 5_000]
    for place in wrong:
        with pytest.raises(NotFoundError, match=f"session {session.id} has no invocation at #"):
            found(store, f"{session.id}#{place}")
    with pytest.raises(NotFoundError, match="no session is named"):
        found(store, "0123456789#1")


def test_the_last_one_is_the_one_that_was_started_last(store: Store) -> None:
    for missing in (store.reader.invocation, store.reader.session):
        with pytest.raises(NotFoundError, match="yet"):
            missing("@last")
    session = store.open_session()
    first = run_command(session, b"x").invocation_id
    second = run_tool(session, "y").invocation_id
    newest = store.open_session()

    assert found(store, "@last") == second
    assert found(store, "@last:") == second
    assert found(store, "@last:Bash") == first
    assert found(store, "@last:Read") == second
    assert store.reader.session("@last").id == newest.id
    with pytest.raises(NotFoundError, match="no invocation of Grep yet"):
        found(store, "@last:Grep")


def test_a_session_is_found_by_a_part_too(store: Store) -> None:
    with store.database.write() as connection:
        for key, record_id in enumerate((ONE, TWIN, OTHER), start=1):
            connection.execute(
                insert(SessionRow).values(
                    key=key,
                    id=record_id,
                    environment="{}",
                    opened_at=BEGINNING,
                )
            )
    assert store.reader.session("f00d").id == OTHER
    assert store.reader.session(TWIN).id == TWIN
    with pytest.raises(AmbiguousNameError):
        store.reader.session("deadbeef")
    _, messages, invocations = store.reader.conversation(OTHER)
    assert (messages, invocations) == ([], [])


@given(st.text(max_size=12) | st.from_regex(r"[0-9a-f-]{0,34}(#[0-9]{0,3})?", fullmatch=True))
@settings(max_examples=times(37), deadline=None)
def test_no_name_is_more_than_not_found(named_store: Store, name: str) -> None:
    try:
        detail = named_store.reader.invocation(name)
    except NotFoundError:
        return
    digits = name.lower().replace("-", "")
    assert detail.summary.id.hex.startswith(digits) or detail.summary.id.hex.endswith(digits)
