"""One damaged row or text never hides another, and is named."""

import pytest
from tests.support.new_store_read import Call, ReadStore, at, call, entries_of

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import DamageError, ToolDefinition, digest_of
from tooltrail.records.facts import MessageAdded, ToolsOffered
from tooltrail.store.filters import InvocationFilter

SESSION = new_id()


def three(store: ReadStore) -> list[Call]:
    made = [call(SESSION, n, receipt=b"receipt %d" % n, stdout=b"out %d" % n) for n in (1, 2, 3)]
    store.record(*entries_of(made))
    return made


def assert_second_is_damaged(store: ReadStore, made: list[Call], said: str) -> None:
    """Lists go on and name the second call, and its detail alone is refused."""
    items = store.reader.invocations(oldest_first=True).items
    assert len(items) == 3
    by_seq = {one.seq: one for one in store.reader.invocations(InvocationFilter()).items}
    assert by_seq[1].damage is None
    assert by_seq[3].damage is None
    for n in (0, 2):
        assert store.reader.invocation(made[n].started.id).arguments == made[n].arguments
    with pytest.raises(DamageError, match=said):
        store.reader.invocation(f"{SESSION}#2")
    details = store.reader.conversation(SESSION)[2]
    assert [one.damage is None for one in details] == [True, False, True]
    assert said in str(details[1].damage)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("duration_ms = 'x'", "duration_ms holds no integer"),
        ("finished_at = 'yesterday'", "finished_at holds no time"),
        ("started_at = 'never'", "started_at holds no time"),
        ("started_at = 9223372036854775807", "started_at holds no time"),
        ("tool_name = CAST(x'ff' AS TEXT)", "tool_name holds no text"),
        ("error_kind = x'00'", "error_kind holds no text"),
        ("truncated = 7", "truncated holds no flag"),
        ("id = x'00'", "id holds no id"),
        ("session_key = session_key, output_size = 1.5", "output_size holds no integer"),
    ],
)
def test_a_value_of_another_kind_is_named(
    sqlite_new_store: ReadStore, change: str, said: str
) -> None:
    store = sqlite_new_store
    made = three(store)
    store.damage(f"UPDATE invocations SET {change} WHERE seq = 2")
    damaged = [one for one in store.reader.invocations().items if one.damage is not None]
    assert len(damaged) == 1
    assert said in str(damaged[0].damage)
    assert_second_is_damaged(store, made, said)


def test_a_column_that_no_list_shows_is_named_in_the_detail(sqlite_new_store: ReadStore) -> None:
    made = three(sqlite_new_store)
    sqlite_new_store.damage("UPDATE invocations SET policy = x'00' WHERE seq = 2")
    assert [one.damage for one in sqlite_new_store.reader.invocations().items] == [None] * 3
    assert_second_is_damaged(sqlite_new_store, made, "policy holds no digest")


def test_pages_go_on_behind_a_time_that_is_no_time(sqlite_new_store: ReadStore) -> None:
    three(sqlite_new_store)
    sqlite_new_store.damage("UPDATE invocations SET started_at = 'never' WHERE seq = 2")
    seen, cursor = list[int](), None
    while True:
        page = sqlite_new_store.reader.invocations(limit=1, cursor=cursor)
        seen += [one.seq for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == [1, 2, 3]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE surfaces SET receipt = 'another' WHERE {two}", "receipt is not the text"),
        ("UPDATE surfaces SET arguments = 'another' WHERE {two}", "arguments is not the text"),
        ("UPDATE surfaces SET canonical = NULL WHERE {two}", "canonical is erased or lost"),
        ("DELETE FROM surfaces WHERE {two}", "is erased or lost"),
        ("DELETE FROM ledger_entries WHERE n = 2", "start_entry names no start"),
        ("UPDATE ledger_entries SET fact = substr(fact, 2) WHERE n = 3", "is no fact"),
        ("UPDATE invocations SET end_entry = 1 WHERE key = 2", "end_entry names no end"),
    ],
)
def test_a_text_that_is_not_the_recorded_one_is_named(
    new_store: ReadStore, sql: str, said: str
) -> None:
    made = three(new_store)
    assert made[1].ended is not None
    new_store.damage(sql.format(two="invocation_key = 2"))
    assert_second_is_damaged(new_store, made, said)


def test_invocations_of_a_lost_session_are_listed(new_store: ReadStore) -> None:
    three(new_store)
    new_store.damage("DELETE FROM sessions")
    items = new_store.reader.invocations().items
    assert [one.seq for one in items] == [3, 2, 1]
    assert all("session_id holds no id" in str(one.damage) for one in items)


def test_a_time_beyond_all_calendars_is_named(new_store: ReadStore) -> None:
    made = three(new_store)
    value = "9223372036854775807" if new_store.is_sqlite else "'infinity'"
    new_store.damage(f"UPDATE invocations SET finished_at = {value} WHERE seq = 2")
    assert_second_is_damaged(new_store, made, "finished_at holds no time")


@pytest.mark.parametrize(
    "sql", ["UPDATE bodies SET data = NULL WHERE size = 5", "DELETE FROM bodies WHERE size = 5"]
)
def test_a_lost_stream_is_damage_when_it_is_opened(new_store: ReadStore, sql: str) -> None:
    made = three(new_store)
    new_store.damage(sql)
    stream = new_store.reader.invocation(made[0].started.id).streams[0]
    with pytest.raises(DamageError):
        new_store.reader.open_stream(stream)


def test_a_message_and_a_tool_that_are_lost_are_named(new_store: ReadStore) -> None:
    definitions = [ToolDefinition(name=name).to_json() for name in ("kept", "lost")]
    for n, text in enumerate((b"kept", b"lost")):
        new_store.record(
            Entry(
                MessageAdded(
                    session=SESSION, id=new_id(), at=at(n), role="user", text=digest_of(text)
                ),
                [text],
            )
        )
    offer = ToolsOffered(
        session=SESSION,
        id=new_id(),
        at=at(3),
        tools=tuple(digest_of(one) for one in definitions),
    )
    new_store.record(Entry(offer, definitions))
    gone = [digest_of(b"lost"), digest_of(definitions[1])]
    for digest in gone:
        spelled = digest.removeprefix("sha256:")
        value = f"x'{spelled}'" if new_store.is_sqlite else f"'\\x{spelled}'"
        new_store.damage(f"DELETE FROM bodies WHERE digest = {value}")
    messages = new_store.reader.conversation(SESSION)[1]
    assert [(one.text, one.damage is None) for one in messages] == [
        ("kept", True),
        ("", False),
        ("", False),
    ]
    tools = new_store.reader.tools()
    assert [(one.name, one.damage is None) for one in tools] == [("kept", True), ("lost", False)]
    assert [one.name for one in new_store.reader.offered_tools(SESSION)] == ["kept", "lost"]


def test_a_session_with_damage_hides_no_other(sqlite_new_store: ReadStore) -> None:
    store = sqlite_new_store
    other = new_id()
    store.record(*call(SESSION, 1, receipt=b"r").entries(), *call(other, 2, receipt=b"r").entries())
    store.damage("UPDATE sessions SET opened_at = 'x', title = CAST(x'ff' AS TEXT) WHERE key = 1")
    views = store.reader.sessions()
    assert {one.id: one.damage is None for one in views} == {SESSION: False, other: True}
