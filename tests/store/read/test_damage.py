"""One damaged row or text never hides another, and is named."""

import pytest
from tests.support.call_facts import message, offered, opened
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.journal.clock import new_id
from tooltrail.records import DamageError, ToolDefinition, digest_of
from tooltrail.records.errors import NotFoundError
from tooltrail.store.filters import InvocationFilter

SESSION = new_id()


def three(store: StoreParts) -> list[Call]:
    made = [call(SESSION, n, receipt=b"receipt %d" % n, stdout=b"out %d" % n) for n in (1, 2, 3)]
    store.ingest(*entries_of(made))
    return made


def assert_second_is_damaged(store: StoreParts, made: list[Call], said: str) -> None:
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
        ("state = 'gone'", "state holds no state"),
        ("id = x'00'", "id holds no id"),
        ("session_key = session_key, output_size = 1.5", "output_size holds no integer"),
    ],
)
def test_a_value_of_another_kind_is_named(parts: StoreParts, change: str, said: str) -> None:
    store = parts
    made = three(store)
    store.alter(f"UPDATE invocations SET {change} WHERE seq = 2")
    damaged = [one for one in store.reader.invocations().items if one.damage is not None]
    assert len(damaged) == 1
    assert said in str(damaged[0].damage)
    assert_second_is_damaged(store, made, said)


def test_a_column_that_no_list_shows_is_named_in_the_detail(parts: StoreParts) -> None:
    made = three(parts)
    parts.alter("UPDATE invocations SET policy = x'00' WHERE seq = 2")
    assert [one.damage for one in parts.reader.invocations().items] == [None] * 3
    assert_second_is_damaged(parts, made, "policy holds no digest")


def test_pages_go_on_behind_a_time_that_is_no_time(parts: StoreParts) -> None:
    three(parts)
    parts.alter("UPDATE invocations SET started_at = 'never' WHERE seq = 2")
    seen, cursor = list[int](), None
    while True:
        page = parts.reader.invocations(limit=1, cursor=cursor)
        seen += [one.seq for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == [1, 2, 3]


@pytest.mark.both_engines
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
    parts: StoreParts, sql: str, said: str
) -> None:
    made = three(parts)
    assert made[1].ended is not None
    parts.alter(sql.format(two="invocation_key = 2"))
    assert_second_is_damaged(parts, made, said)


@pytest.mark.both_engines
def test_invocations_of_a_lost_session_are_listed(parts: StoreParts) -> None:
    three(parts)
    parts.alter("DELETE FROM sessions")
    items = parts.reader.invocations().items
    assert [one.seq for one in items] == [3, 2, 1]
    assert all("session_id holds no id" in str(one.damage) for one in items)
    with pytest.raises(NotFoundError, match="no session is named"):
        parts.reader.session(str(items[0].id))


@pytest.mark.both_engines
def test_a_time_beyond_all_calendars_is_named(parts: StoreParts) -> None:
    made = three(parts)
    value = "9223372036854775807" if parts.is_sqlite else "'infinity'"
    parts.alter(f"UPDATE invocations SET finished_at = {value} WHERE seq = 2")
    assert_second_is_damaged(parts, made, "finished_at holds no time")


@pytest.mark.parametrize(
    "sql", ["UPDATE bodies SET data = NULL WHERE size = 5", "DELETE FROM bodies WHERE size = 5"]
)
def test_a_lost_stream_is_damage_when_it_is_opened(parts: StoreParts, sql: str) -> None:
    made = three(parts)
    parts.alter(sql)
    stream = parts.reader.invocation(made[0].started.id).streams[0]
    with pytest.raises(DamageError):
        parts.reader.open_stream(stream)


@pytest.mark.both_engines
def test_an_environment_a_message_and_a_tool_that_are_lost_are_named(parts: StoreParts) -> None:
    definitions = [ToolDefinition(name=name).to_json() for name in ("kept", "lost")]
    said = [message(SESSION, text, at=n) for n, text in enumerate((b"kept", b"lost"))]
    opening = opened(SESSION, environment=b"{}")
    parts.ingest(opening, *said, offered(SESSION, *definitions, at=3))
    for lost in (b"{}", b"lost", definitions[1]):
        parts.alter(f"DELETE FROM bodies WHERE digest = {parts.literal(digest_of(lost))}")
    (session,) = parts.reader.sessions()
    assert "environment names a body that is missing" in str(session.damage)
    messages = parts.reader.conversation(SESSION)[1]
    assert [(one.text, one.damage is None) for one in messages] == [
        ("kept", True),
        ("", False),
        ("", False),
    ]
    tools = parts.reader.tools()
    assert [(one.name, one.damage is None) for one in tools] == [("kept", True), ("lost", False)]
    assert [one.name for one in parts.reader.offered_tools(SESSION)] == ["kept", "lost"]


@pytest.mark.both_engines
def test_a_lost_environment_of_a_call_hides_none_of_its_surfaces(parts: StoreParts) -> None:
    made, lost = three(parts), digest_of(b"lost")
    intact = parts.reader.invocation(f"{SESSION}#2")
    parts.alter(f"UPDATE invocations SET environment = {parts.literal(lost)} WHERE seq = 2")
    found = parts.reader.invocation(f"{SESSION}#2")
    said = f"the environment of call {made[1].started.id} is damaged: body {lost} is missing"
    assert (found.summary.damage, found.damage, found.environment) == (said, None, "{}")
    assert found.replaced(summary=intact.summary, environment=intact.environment) == intact
    assert [one.damage for one in parts.reader.conversation(SESSION)[2]] == [None] * 3


def test_a_session_with_damage_hides_no_other(parts: StoreParts) -> None:
    store = parts
    other = new_id()
    store.ingest(*call(SESSION, 1, receipt=b"r").entries(), *call(other, 2, receipt=b"r").entries())
    store.alter("UPDATE sessions SET opened_at = 'x', title = CAST(x'ff' AS TEXT) WHERE key = 1")
    views = store.reader.sessions()
    assert {one.id: one.damage is None for one in views} == {SESSION: False, other: True}
