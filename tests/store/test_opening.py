"""Creating and opening: one clear error for each thing that can be in the way, and nothing left."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import times
from tests.support.evidence import check_database, check_evidence
from tests.support.processes import NOBODY, run_python
from tests.support.recording import content_of, fail_tool, run_command, run_tool, stream_of

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records import (
    DamageError,
    InvalidRecordError,
    Message,
    SchemaMismatchError,
    StoreExistsError,
    StoreNotFoundError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store import (
    InvocationFilter,
    Store,
    create_store,
    open_store,
    store_revision,
    upgrade_store,
)
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.info import FORMAT
from tooltrail.store.roots import default_spool

BIG = b"a line of a long output\n" * 50_000


def look_into(database: str | Path) -> None:
    """Open a store that is there, and ask what it is."""
    with open_store(database, create=False) as store:
        _ = store.info


LOOKS: list[Callable[[str | Path], object]] = [look_into, store_revision, upgrade_store]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a closed store in one file, with something in most tables."""
    folder = tmp_path_factory.mktemp("recorded")
    with create_store(folder / "trail.db", artifacts=str(folder / "artifacts")) as store:
        session = store.open_session(title="a title", agent="an agent")
        for number in range(3):
            session.message(Message.of("user", f"message {number}"))
            run_command(session, b"line %d\n" % number * 50, b"warning\n", exit_status=number)
            run_tool(session, "some text " * 100, b"\0\xff")
            fail_tool(session)
        run_command(session, BIG)
    return folder


def copied(recorded: Path, target: Path) -> Path:
    shutil.copytree(recorded, target)
    return target / "trail.db"


def read_everything(database: Path) -> None:
    """Whatever a person could ask for."""
    with open_store(database) as store:
        reader = store.reader
        reader.counts()
        for session in reader.sessions():
            _, _, details = reader.conversation(session.id)
            for detail in details:
                reader.invocation(detail.summary.id)  # an altered index may lead to another one
                for stream in detail.streams:
                    content_of(reader, stream)
        reader.invocations(InvocationFilter(tools=("Bash",), outcomes=("ok",)), limit=20)
        reader.artifacts()
        check_database(store.database)
        run_command(store.open_session(), b"more\n")


@pytest.mark.both_engines
def test_a_new_store_is_empty_and_knows_itself(store: Store, database: str, tmp_path: Path) -> None:
    assert store.reader.sessions() == []
    assert store.reader.invocations().items == ()
    assert store_revision(database) == HEAD_REVISION
    assert store.info.format == FORMAT
    assert store.spool == tmp_path / "spool"
    check_evidence(store)
    with open_store(database) as again:
        assert again.info == store.info
        assert again.archive.sink.url == f"file://{tmp_path / 'artifacts'}"


@pytest.mark.both_engines
@pytest.mark.parametrize("look", LOOKS)
def test_a_database_of_something_else_is_no_store(
    database: str, look: Callable[[str | Path], object]
) -> None:
    if "://" not in database:
        with sqlite3.connect(database) as other:
            other.execute("CREATE TABLE mine (x)")
        other.close()
    with pytest.raises(StoreNotFoundError):
        look(database)


@pytest.mark.both_engines
def test_a_store_is_not_created_twice(store: Store, database: str, tmp_path: Path) -> None:
    run_command(store.open_session(), b"precious\n")
    with pytest.raises(StoreExistsError, match="already"):
        create_store(database, artifacts=str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists()
    check_evidence(store)
    assert store.reader.counts().invocations == {"ok": 1}


@pytest.mark.both_engines
def test_a_store_without_its_own_row_is_damaged(store: Store, database: str) -> None:
    with store.database.write() as connection:
        if connection.is_sqlite:
            connection.run("DROP TRIGGER store_info_no_delete")
        else:
            connection.run("ALTER TABLE store_info DISABLE TRIGGER USER")
        connection.run("DELETE FROM store_info")
    with pytest.raises(DamageError, match="lacks its row in store_info"):
        look_into(database)


@pytest.mark.both_engines
@pytest.mark.parametrize("revision", ["9999", "0000"])
def test_a_store_of_another_revision_is_refused_and_says_which(
    store: Store, database: str, revision: str
) -> None:
    set_revision(store, revision)

    with pytest.raises(SchemaMismatchError, match=f"revision {revision}") as caught:
        look_into(database)
    assert (caught.value.found, caught.value.expected) == (revision, HEAD_REVISION)
    assert store_revision(database) == revision
    with pytest.raises(SchemaMismatchError, match="does not know") as unknown:
        upgrade_store(database)
    assert (unknown.value.found, unknown.value.expected) == (revision, HEAD_REVISION)
    assert store_revision(database) == revision

    set_revision(store, HEAD_REVISION)
    look_into(database)


def set_revision(store: Store, revision: str) -> None:
    with store.database.write() as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (revision,))


def test_a_store_of_a_later_format_is_refused(store: Store, database: str) -> None:
    with store.database.write() as connection:
        if connection.is_sqlite:
            connection.run("DROP TRIGGER store_info_no_update")
        else:
            connection.run("ALTER TABLE store_info DISABLE TRIGGER USER")
        connection.execute("UPDATE store_info SET format = ?", (FORMAT + 1,))
    with pytest.raises(SchemaMismatchError, match=f"format {FORMAT + 1}"):
        look_into(database)


LOCK = """
import fcntl
with open(sys.argv[1], "r+b") as file:
    try:
        # The bytes that each connection of SQLite locks with others: SHARED_FIRST in its os.h.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except BlockingIOError:
        print("locked")
"""


def test_opening_a_store_again_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    database = tmp_path / "trail.db"
    with open_store(database) as store:
        _ = store.info
        with open_store(database, spool=tmp_path / "other"):
            pass
        assert run_python(LOCK, str(database))[0] == "locked\n"


def test_a_store_moves_as_a_folder(recorded: Path, tmp_path: Path) -> None:
    moved = copied(recorded, tmp_path / "moved here")
    with open_store(moved) as store:
        assert store.archive.sink.url == f"file://{moved.parent / 'artifacts'}"
        assert store.spool == Path(f"{moved}-spool")
        detail = store.reader.invocation("@last")
        assert content_of(store.reader, stream_of(detail, "stdout")) == BIG
        check_evidence(store)


def test_two_stores_in_one_folder_share_nothing(tmp_path: Path) -> None:
    for name, output in (("one.db", BIG), ("two.db", BIG[24:])):
        with open_store(tmp_path / name) as store:
            run_command(store.open_session(), output)
            (call,) = store.reader.invocations().items
            detail = store.reader.invocation(call.id)
            assert content_of(store.reader, stream_of(detail, "stdout")) == output
            check_evidence(store)


def test_an_artifact_root_can_be_given_again(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = copied(recorded, tmp_path / "store")
    (tmp_path / "store" / "artifacts").rename(tmp_path / "big disk")

    with open_store(database) as store, pytest.raises(UnavailableError, match="artifacts"):
        content_of(store.reader, stream_of(store.reader.invocation("@last"), "stdout"))
    monkeypatch.chdir(tmp_path)
    for named in (str(tmp_path / "big disk"), f"file://{tmp_path / 'big disk'}", "big disk"):
        with open_store(database, artifacts=named) as store:
            check_evidence(store)


def test_artifacts_named_inside_the_folder_of_the_database_are_remembered_by_their_place_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    named = {
        "one/objects": "objects",
        str(tmp_path / "two" / "a" / "b"): "a/b",
        "other": str(tmp_path / "other"),
        "~/objects": str(tmp_path / "home" / "objects"),
        f"file://{tmp_path}/url": f"file://{tmp_path}/url",
        "memory://objects": "memory://objects",
    }
    for number, (artifacts, remembered) in enumerate(named.items()):
        folder = {"one/objects": "one"}.get(artifacts, "two" if "two" in artifacts else str(number))
        with create_store(Path(folder, "trail.db"), artifacts=artifacts) as store:
            assert store.info.artifact_root == remembered


def test_a_program_may_change_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with open_store("trail.db", artifacts=Path("objects"), spool="here") as store:
        monkeypatch.chdir("other")
        run_command(store.open_session(), BIG)
        check_evidence(store)
    assert not any((tmp_path / "other").iterdir())
    assert {"objects", "here", "trail.db"} <= {one.name for one in tmp_path.iterdir()}


def test_what_can_be_no_store_is_refused_before_the_first_record(tmp_path: Path) -> None:
    for database in ("", ".", tmp_path):
        with pytest.raises(InvalidRecordError, match="is a folder; a database is a file"):
            open_store(database)
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(InvalidRecordError, match="is not a regular file"):
        open_store(tmp_path / "pipe.db")
    misspelled: Any = "Store"  # would be acknowledged as less
    with pytest.raises(InvalidRecordError, match="acknowledge is process, journal or store"):
        open_store(tmp_path / "trail.db", acknowledge=misspelled)


def test_a_postgresql_store_needs_an_artifact_root(postgres_url: str) -> None:
    with pytest.raises(InvalidRecordError, match="needs an artifact root"):
        create_store(postgres_url)
    with pytest.raises(StoreNotFoundError):
        look_into(postgres_url)


def test_a_postgresql_store_that_exists_needs_no_artifact_root(
    postgres_url: str, tmp_path: Path
) -> None:
    create_store(postgres_url, artifacts=str(tmp_path / "objects")).close()
    with pytest.raises(StoreExistsError):
        create_store(postgres_url)


def test_a_postgresql_store_remembers_a_relative_root_as_an_absolute_one(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create_store(postgres_url, artifacts="objects").close()
    monkeypatch.chdir("/")
    with open_store(postgres_url) as store:
        assert store.archive.sink.url == f"file://{tmp_path}/objects"


def test_an_artifact_root_that_no_text_column_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecordError, match="valid text"):
        create_store(tmp_path / "trail.db", artifacts="/tmp/\udcff")
    with pytest.raises(StoreNotFoundError):
        look_into(tmp_path / "trail.db")


def test_the_spool_is_beside_the_file_or_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_spool(parse_target(tmp_path / "trail.db")) == tmp_path / "trail.db-spool"
    one, other = parse_target("postgresql://host/db"), parse_target("postgresql://host/other")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    spool = default_spool(one)
    assert spool.parent == tmp_path / "state" / "tooltrail"
    assert spool == default_spool(parse_target("postgresql://user:word@host:5432/db"))
    assert spool != default_spool(other)
    schema_b, *schema_a = (
        default_spool(parse_target(f"postgresql://host/db?options={options}"))
        for options in (
            "-csearch_path%3Db",
            "-csearch_path%3Da",
            "-c%20search_path=a,public",
            "--search-path%3Da",
            "-cSEARCH_PATH=a",
        )
    )
    assert len({spool, schema_b, *schema_a}) == 3
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_spool(one).parent == tmp_path / "home" / ".local" / "state" / "tooltrail"


@pytest.mark.parametrize("name", ["a b", "100%", "what?", "#1", "é😀", "q'uote", "\udcff\udcfe"])
def test_a_store_may_be_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    database = tmp_path / name / f"{name}.db"
    with create_store(database) as store:
        run_command(store.open_session(), BIG)
    assert database.is_file()
    with open_store(str(database)) as store:
        check_evidence(store)


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="Not a directory"):
        create_store(tmp_path / "file" / "trail.db")


def test_a_name_that_the_system_refuses_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="cannot be opened: File name too long"):
        look_into("x" * 5000)


@given(
    flips=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=times(15), deadline=None)
def test_altered_bytes_are_never_more_than_an_error_of_ours(
    recorded: Path, tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[float, int, bool]]
) -> None:
    database = copied(recorded, tmp_path_factory.mktemp("flipped") / "copy")
    data = bytearray(database.read_bytes())
    for place, mask, is_early in flips:
        data[int(place * (8192 if is_early else len(data)))] ^= mask
    database.write_bytes(data)
    try:
        read_everything(database)
    except TooltrailError:
        pass  # many a flip hits nothing that is read, and no other error may come of the rest
    finally:
        shutil.rmtree(database.parent.parent)


AS_NOBODY = """
from tooltrail.records import UnavailableError
from tooltrail.store import open_store
try:
    with open_store(sys.argv[1]) as store:
        store.reader.counts()
        store.open_session()
except UnavailableError as error:
    print("unavailable:", error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def unseal(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_read_only_file_can_be_read_and_not_written(recorded: Path, open_folder: Path) -> None:
    database = copied(recorded, open_folder / "copy")
    unseal(database.parent)
    database.parent.chmod(0o777)
    database.chmod(0o444)
    said, _ = run_python(AS_NOBODY, str(database), user=NOBODY)
    assert said.startswith("unavailable: ")


SECRET = "a-very-secret-word"


def test_a_server_that_cannot_be_reached_is_unavailable_and_the_password_stays_secret(
    tmp_path: Path,
) -> None:

    def create_elsewhere(url: str | Path) -> Store:
        return create_store(url, artifacts=str(tmp_path / "artifacts"))

    for url in (
        f"postgresql://user:{SECRET}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=user&password={SECRET}",
        f"postgres://user:{SECRET}@/db?host={tmp_path}",
    ):
        for attempt in (*LOOKS, create_elsewhere):
            with pytest.raises(UnavailableError) as caught:
                attempt(url)
            error: BaseException | None = caught.value
            while error is not None:
                assert SECRET not in f"{error} {error!r}"
                error = error.__cause__ or error.__context__


def test_a_database_that_is_not_there_is_unavailable(postgres_url: str) -> None:
    with pytest.raises(UnavailableError, match="does not exist"):
        look_into(postgres_url.replace("/tooltrail_", "/nothing_"))


def test_an_option_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    misspelled: dict[str, Any] = {"strikt": True}
    with pytest.raises(TypeError, match="strikt"):
        create_store(tmp_path / "trail.db", **misspelled)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="strikt"):
        open_store(tmp_path / "trail.db", **misspelled)
    with open_store(tmp_path / "trail.db") as store, pytest.raises(TypeError, match="strikt"):
        store.open_session(**misspelled)


def test_a_session_that_was_only_joined_is_found_by_its_name(store: Store) -> None:
    run_command(store.join_session("nightly build"), b"done\n")
    (session,) = store.reader.sessions()
    assert store.reader.session("nightly build") == session


def test_a_record_is_not_acknowledged_by_the_store_while_its_output_waits(tmp_path: Path) -> None:
    with create_store(tmp_path / "trail.db", acknowledge="store") as store:
        session = store.open_session()
        assert run_command(session, BIG).acknowledged == "store"
        (tmp_path / "trail.db-artifacts").rename(tmp_path / "away")
        assert run_command(session, BIG[24:]).acknowledged == "journal"
        assert run_command(session, b"short\n").acknowledged == "store"


def test_damage_names_the_file_of_the_database(tmp_path: Path) -> None:
    (tmp_path / "letter").write_bytes(b"a letter " * 200)
    with pytest.raises(DamageError, match="not an SQLite database") as caught:
        look_into(tmp_path / "letter")
    assert caught.value.path == str(tmp_path / "letter")


def test_a_store_that_was_moved_away_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    folder = tmp_path / "before"
    with open_store(folder / "trail.db") as store:
        store.open_session(title="kept")
        assert len(store.reader.sessions()) == 1
        folder.rename(tmp_path / "after")
        assert len(store.reader.sessions()) == 1
    assert not folder.exists()


@pytest.mark.parametrize("name", ["spool", "artifacts"])
@pytest.mark.parametrize("path", ["a\0b", "\ud800", "~\0"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str, path: str) -> None:
    arguments: dict[str, Any] = {name: path}
    with pytest.raises(InvalidRecordError, match="no file can have the name"):
        open_store(tmp_path / "trail.db", **arguments)


@pytest.mark.parametrize("value", [5, 0])  # a value that is false is no missing one
@pytest.mark.parametrize(
    "name", ["database", "spool", "artifacts", "families", "policy", "strict", "create"]
)
def test_an_argument_of_a_wrong_type_is_named(tmp_path: Path, name: str, value: int) -> None:
    arguments: dict[str, Any] = {"database": tmp_path / "trail.db", name: value}
    with pytest.raises(InvalidRecordError, match=f"^{name} must be of type .*, not int"):
        open_store(**arguments).open_session()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("begin", [open_store, create_store])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-5, "free_bytes is a number of bytes, not -5"),
        (True, "free_bytes must be of type int, not bool"),
        (1.5, "free_bytes must be of type int, not float"),
    ],
)
def test_a_size_that_no_disk_has_is_refused(
    tmp_path: Path, begin: Callable[..., Store], value: object, problem: str
) -> None:
    with pytest.raises(InvalidRecordError, match=problem):
        begin(tmp_path / "trail.db", free_bytes=value)
    assert not list(tmp_path.iterdir())
