"""The file of a record that was set aside: read back as it was written, or refused."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.asides import CALL, begin_aside, output_of, streams_of
from tests.support.processes import run_python

from tooltrail.records import DEFAULT_POLICY, InvalidRecordError, ToolCall
from tooltrail.store import WantedStore, look_up_store_id, now, open_aside, wanted_store
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.asides import AsideRecord, distinct_spools, iter_asides
from tooltrail.store.store import Store

SURROGATES = st.text(st.characters(blacklist_categories=()), max_size=20)


def a_record(arguments: str = "{}", session: str | None = None) -> AsideRecord:
    return AsideRecord(
        id=uuid4(),
        store=WantedStore(database="/a/b.db", id=uuid4()),
        session=session,
        family="command",
        call=ToolCall(tool_name="exec", arguments_raw=arguments, title=arguments),
        environment={"cwd": arguments, "pid": 7},
        policy={"families": {"command": {"preview_chars": 9}}},
        started_at=now(),
    )


@given(SURROGATES, st.none() | SURROGATES)
def test_what_is_written_reads_back_equal(text: str, session: str | None) -> None:
    record = a_record(text, session)
    assert AsideRecord.from_json(record.to_json()) == record
    ended = record.model_copy(
        update={
            "finished_at": record.started_at + timedelta(seconds=3),
            "complete_output": {"summary_text": text},
        }
    )
    assert AsideRecord.from_json(ended.to_json()) == ended


@given(st.data())
def test_any_other_byte_is_refused(data: st.DataObject) -> None:
    written = bytearray(a_record().to_json())
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 127))
    with pytest.raises(InvalidRecordError):
        AsideRecord.from_json(bytes(written))


@given(st.integers(0, 500))
def test_any_cut_is_refused(size: int) -> None:
    with pytest.raises(InvalidRecordError):
        AsideRecord.from_json(a_record().to_json()[:size])


def test_what_cannot_be_read_is_no_record(sqlite_store: Store) -> None:
    aside = begin_aside(sqlite_store.spool, wanted_store("/a.db", None))
    (folder,) = iter_asides(sqlite_store.spool)
    (aside.folder / "record.json").unlink()
    assert folder.read() is None


def test_the_first_spool_that_takes_it_is_chosen_and_nothing_is_left_in_the_others(
    tmp_path: Path,
) -> None:
    tmp_path.joinpath("file").write_text("")
    spools = [tmp_path / "file" / "spool", tmp_path / "second", tmp_path / "third"]
    aside = open_aside(
        spools,
        CALL,
        wanted=wanted_store(str(tmp_path / "no.db"), None),
        session=None,
        family="command",
        policy=DEFAULT_POLICY,
    )
    assert aside.folder.parent == tmp_path / "second"
    assert not (tmp_path / "third").exists()
    aside.finish(output_of(streams_of(aside)))
    assert [path.name for path in aside.folder.iterdir()] == ["record.json"]
    assert not aside.folder.with_name(f"{aside.folder.name}.owner").is_symlink()


@pytest.mark.parametrize(
    ("database", "place"),
    [
        ("postgresql://bob:secret@db/records", "postgresql://db:5432/records"),
        ("postgresql://db:5432/records?password=secret", "postgresql://db:5432/records"),
        ("postgres://eve@db:6000/records?sslmode=require", "postgresql://db:6000/records"),
        ("postgresql:///records?host=/run/pg", "postgresql://:5432/records?host=%2Frun%2Fpg"),
    ],
)
def test_the_place_of_a_database_is_the_same_for_all_and_holds_no_secret(
    database: str, place: str
) -> None:
    assert parse_target(database).place == place
    assert wanted_store(database, None).database == place


def test_the_place_of_a_file_is_the_same_by_any_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    by_link = parse_target(tmp_path / "link" / "trail.db")
    assert by_link.place == parse_target(f"sqlite:///{tmp_path}/folder/trail.db").place


def test_the_id_of_a_store_is_found_without_opening_it(sqlite_store: Store, tmp_path: Path) -> None:
    assert look_up_store_id(str(sqlite_store.database.target)) == sqlite_store.info.id
    (tmp_path / "other.db").write_text("no database")
    for database in (tmp_path / "none.db", tmp_path / "other.db", "postgresql://db/records"):
        assert look_up_store_id(str(database)) is None


def test_spools_are_the_same_however_they_are_spelled(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert distinct_spools(tmp_path, tmp_path / "link", tmp_path / "b") == [
        tmp_path,
        tmp_path / "b",
    ]


FAILING = """
from tests.support.asides import in_a_fork
def fail():
    raise RuntimeError("in the child")
try:
    with in_a_fork(fail):
        pass
except (AssertionError, RuntimeError):
    print("went on")
"""


def test_a_fork_whose_task_fails_says_so_and_does_not_go_on_as_its_parent() -> None:
    said, complained = run_python(FAILING)
    assert said == "went on\n"
    assert "RuntimeError: in the child" in complained
