"""One artifact's row, found without the database toolkit, or left to whoever has it."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.support.recording import run_command
from tests.support.template_stores import make_store

from tooltrail.store import (
    ArtifactPlace,
    ArtifactView,
    Store,
    look_up_artifact,
    look_up_store_id,
)
from tooltrail.store._engines.sqlite import sqlite3

BIG = b"a line of the output\n" * 2_000


@pytest.fixture
def known(sqlite_store: Store) -> ArtifactView:
    with sqlite_store.open_session() as session:
        run_command(session, BIG)
    (artifact,) = sqlite_store.reader.artifacts()
    return artifact


def change(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_an_artifact_is_found_by_its_path_and_by_the_beginning_of_it(
    known: ArtifactView, tmp_path: Path
) -> None:
    database = str(tmp_path / "trail.db")
    mark = f"store-{look_up_store_id(database)}"
    wanted = ArtifactPlace(str(tmp_path / "artifacts"), mark, known.path, len(BIG))
    assert (tmp_path / "artifacts" / mark).is_file()
    for beginning in (known.path, known.path[:14], known.path[:-5]):
        assert look_up_artifact(database, beginning) == wanted
    assert look_up_artifact(f"sqlite:///{database}", known.path) == wanted


def test_the_row_is_that_of_the_store(known: ArtifactView, sqlite_store: Store) -> None:
    found = look_up_artifact(str(sqlite_store.database.target), known.path)
    assert found is not None
    assert found.size == known.size
    assert sqlite_store.archive.sink.url == f"file://{found.root}"


def test_a_name_from_the_current_folder_and_of_the_home_folder(
    known: ArtifactView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("trail.db", "~/trail.db", "sqlite:///trail.db"):
        found = look_up_artifact(name, known.path)
        assert found is not None, name
        assert found.root == str(tmp_path / "artifacts")


def test_a_root_elsewhere_is_named_as_the_store_remembers_it(tmp_path: Path) -> None:
    root = f"file://{tmp_path}/elsewhere"
    with make_store(tmp_path / "trail.db", artifacts=root) as store:
        with store.open_session() as session:
            run_command(session, BIG)
        (artifact,) = store.reader.artifacts()
    found = look_up_artifact(str(tmp_path / "trail.db"), artifact.path)
    assert found is not None
    assert found.root == root


def test_what_the_store_does_not_know_is_not_found(known: ArtifactView, tmp_path: Path) -> None:
    other = known.path[:-5] + ("0" if known.path[-5] != "0" else "1") + ".zst"
    for beginning in (other, "sha256/zz", known.path + "x", "x"):
        assert look_up_artifact(str(tmp_path / "trail.db"), beginning) is None


def test_several_artifacts_are_left_to_others(sqlite_store: Store, tmp_path: Path) -> None:
    with sqlite_store.open_session() as session:
        for n in range(2):
            run_command(session, BIG + b"%d" % n)
    assert look_up_artifact(str(tmp_path / "trail.db"), "sha256/") is None


@pytest.mark.parametrize(
    "name",
    [
        "postgresql://someone@nowhere/trail",
        "sqlite:///trail.db?mode=ro",
        "sqlite://",
        ":memory:",
        "nowhere/trail.db",
        "trail\0.db",
        "~nobody-of-this-name/trail.db",
        "",
    ],
)
def test_a_database_that_is_no_plain_file_is_left_to_others(
    known: ArtifactView, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert look_up_artifact(name, known.path) is None
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tooltrail_version SET version_num = '0000'",
        "DELETE FROM tooltrail_version",
        "DROP TABLE artifacts",
        "DROP TABLE store_info",
    ],
)
def test_a_store_of_another_kind_is_left_to_others(
    known: ArtifactView, sqlite_store: Store, tmp_path: Path, statement: str
) -> None:
    sqlite_store.close()
    change(tmp_path / "trail.db", "PRAGMA foreign_keys = OFF", statement)
    assert look_up_artifact(str(tmp_path / "trail.db"), known.path) is None


@pytest.mark.parametrize("assignment", ["format = 2", "artifact_root = x'00'"])
def test_a_store_with_another_layout_is_left_to_others(
    known: ArtifactView, sqlite_store: Store, tmp_path: Path, assignment: str
) -> None:
    sqlite_store.close()
    triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    with closing(sqlite3.connect(tmp_path / "trail.db")) as connection, connection:
        for (name,) in connection.execute(triggers).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"UPDATE store_info SET {assignment}")
    assert look_up_artifact(str(tmp_path / "trail.db"), known.path) is None


def test_a_file_that_is_no_database_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "trail.db").write_bytes(b"no database at all" * 100)
    assert look_up_artifact(str(tmp_path / "trail.db"), "sha256/") is None


def test_looking_changes_nothing(known: ArtifactView, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.glob("trail.db*")}
    assert look_up_artifact(str(tmp_path / "trail.db"), known.path) is not None
    after = {path.name: path.read_bytes() for path in tmp_path.glob("trail.db*")}
    # The -shm file holds the locks of readers.
    assert {k: v for k, v in after.items() if not k.endswith("-shm")} == {
        k: v for k, v in before.items() if not k.endswith("-shm")
    }
