"""The list of all invocations without the database toolkit: the same, or left to whoever has it."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance import insert_facts, random_facts
from tests.support.effort import times
from tests.support.recording import fail_tool, run_command, run_tool
from tests.support.template_stores import make_store

from tooltrail.records import ToolCall
from tooltrail.store import Store, look_up_newest
from tooltrail.store._engines.sqlite import sqlite3


def change(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS invocations_no_update")
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def mixed(sqlite_store: Store) -> Store:
    """Invocations that ended in every way, some of them cut, one of them open."""
    for number in range(3):
        with sqlite_store.open_session(agent="coder") as session:
            run_command(session, b"line\n" * 10_000, exit_status=number)
            run_tool(session, "text\n" * 10_000)
            fail_tool(session)
            run_command(session, call=ToolCall.of("Bash", {"command": "ls"}, call_id="call-1"))
    sqlite_store.open_session().start(ToolCall(tool_name="Bash"))
    return sqlite_store


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 5, 13, 100])
def test_every_page_is_what_the_reader_gives(
    mixed: Store, tmp_path: Path, limit: int, oldest_first: bool
) -> None:
    cursor, seen = None, 0
    while True:
        found = look_up_newest(
            str(tmp_path / "trail.db"), limit=limit, cursor=cursor, oldest_first=oldest_first
        )
        page = mixed.reader.invocations(limit=limit, cursor=cursor, oldest_first=oldest_first)
        assert found is not None
        assert found.page == page
        assert found.spool == mixed.spool
        seen += len(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
        assert found.total == 13
    assert seen == 13
    assert any(view.truncated for view in mixed.reader.invocations().items)


@settings(max_examples=times(10))
@given(seed=st.integers(0, 2**32), limit=st.integers(1, 30))
def test_any_facts_are_listed_as_the_reader_lists_them(
    tmp_path_factory: pytest.TempPathFactory, seed: int, limit: int
) -> None:
    database = tmp_path_factory.mktemp("facts") / "trail.db"
    with make_store(database) as store:
        insert_facts(store, random_facts(20, seed=seed))
        found = look_up_newest(f"sqlite:///{database}", limit=limit)
        assert found is not None
        assert found.page == store.reader.invocations(limit=limit)


def test_what_a_list_could_not_keep_is_counted_as_the_reader_counts_it(
    mixed: Store, tmp_path: Path
) -> None:
    change(
        tmp_path / "trail.db",
        "DROP TRIGGER IF EXISTS output_streams_no_update",
        "UPDATE output_streams SET produced_size = size + 7",
    )
    found = look_up_newest(str(tmp_path / "trail.db"), limit=20)
    assert found is not None
    assert found.page == mixed.reader.invocations(limit=20)
    assert {7, 14} & {view.lost_size for view in found.page.items}


@pytest.mark.parametrize(
    "change_made",
    [
        "UPDATE tooltrail_version SET version_num = '0001'",
        "UPDATE store_info SET format = 2",
        "UPDATE invocations SET id = 'text' WHERE key = 3",
        "UPDATE invocations SET id = x'01' WHERE key = 3",
        "UPDATE invocations SET started_at = 'yesterday' WHERE key = 3",
        "UPDATE invocations SET tool_name = x'ff' WHERE key = 3",
        "UPDATE invocations SET tool_name = CAST(x'ff' AS TEXT) WHERE key = 3",
        "DROP TABLE store_info",
    ],
)
def test_what_is_unusual_is_left_to_others(mixed: Store, tmp_path: Path, change_made: str) -> None:
    mixed.close()
    with closing(sqlite3.connect(tmp_path / "trail.db")) as connection, connection:
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP {kind} {name}")
        connection.execute(change_made)
    assert look_up_newest(str(tmp_path / "trail.db"), limit=20) is None


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 19, "", "²"])
def test_a_cursor_that_no_page_gave_is_left_to_others(
    mixed: Store, tmp_path: Path, cursor: str
) -> None:
    assert look_up_newest(str(tmp_path / "trail.db"), limit=5, cursor=cursor) is None
    assert mixed.spool.is_dir()


@pytest.mark.parametrize(
    "database",
    ["missing.db", "postgresql://nobody@localhost/x", "sqlite:///a%20b", "~nobody-at-all/x"],
)
def test_a_store_that_is_no_such_file_is_left_to_others(database: str) -> None:
    assert look_up_newest(database, limit=5) is None


def test_a_list_of_nothing_is_left_to_others(mixed: Store, tmp_path: Path) -> None:
    assert look_up_newest(str(tmp_path / "trail.db"), limit=0) is None
    assert mixed.spool.is_dir()
