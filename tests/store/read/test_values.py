"""The values of a column without a scan, and the nearest ones to what is mistyped."""

import pytest
from tests.support.call_facts import moment
from tests.support.recorded_calls import call, entries_of
from tests.support.store_parts import StoreParts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import NotFoundError
from tooltrail.records.facts import SessionOpened
from tooltrail.store.read.values import distinct_values, has_value, near_values

TOOLS = ("Bash", "Read", "bash", "mcp__files__read", "Ünïcode", "with space", "z\x1b[2J")
SESSION = new_id()


@pytest.fixture
def filled(parts: StoreParts) -> StoreParts:
    opened = [
        Entry(SessionOpened(session=SESSION, at=moment(1), name="nightly-build", agent="codex")),
        Entry(SessionOpened(session=new_id(), at=moment(2))),
    ]
    made = [call(SESSION, n, receipt=b"r", tool=TOOLS[n % len(TOOLS)]) for n in range(3, 24)]
    parts.ingest(*opened, *entries_of(made))
    return parts


@pytest.mark.both_engines
def test_distinct_values_are_those_of_the_column(filled: StoreParts) -> None:
    columns = {
        "tools": "tool_name FROM invocations",
        "families": "family FROM invocations",
        "error_kinds": "error_kind FROM invocations",
        "agents": "agent FROM sessions",
    }
    with filled.database.read() as connection:
        for kind, column in columns.items():
            known = {value for (value,) in connection.query(f"SELECT DISTINCT {column}")} - {None}
            found = distinct_values(connection, kind)
            assert (len(found), set(found)) == (len(known), known)
            assert all(has_value(connection, kind, value) for value in known)
            assert not has_value(connection, kind, "no such value")
        assert set(distinct_values(connection, "tools")) == set(TOOLS)


def test_the_nearest_values_ignore_case_and_cannot_steer_a_terminal(filled: StoreParts) -> None:
    with filled.database.read() as connection:
        assert near_values(connection, "tools", "READ").startswith("; nearest: `Read`")
        assert near_values(connection, "agents", "x" * 10_000_000) == "; nearest: `codex`"
        assert near_values(connection, "error_kinds", "anything") == ""
        assert "\x1b" not in near_values(connection, "tools", "z\x1b[2K")


@pytest.mark.both_engines
def test_an_unknown_name_has_the_names_that_differ_by_a_slip(filled: StoreParts) -> None:
    reader = filled.reader
    one = reader.invocations(limit=1).items[0].id.hex
    other = one[:-3] + ("0" if one[-3] != "0" else "1") + one[-2:]
    for name in (other, other[-12:], other[-8:]):
        with pytest.raises(NotFoundError, match=rf"nearest: .*`{one[-8:]}`"):
            reader.invocation(name)
    with pytest.raises(NotFoundError, match=rf"nearest: .*`{one[-8:]}`"):
        reader.invocation(one[-8:-2])
    with pytest.raises(NotFoundError, match=r"a session has this name: `tooltrail transcript`"):
        reader.invocation("nightly-build")
    seq = reader.invocation(one).summary.seq
    hint = (
        rf"an invocation of session {SESSION} has this name: `tooltrail show` prints the invocation"
    )
    for name in (one, one[-12:], f"nightly-build#{seq}", "@last:Bash"):
        with pytest.raises(NotFoundError, match=hint):
            reader.session(name)
    for name in ("nigthly-build", "Nightly-Build", "nightly_build#3"):
        with pytest.raises(NotFoundError, match="nearest: `nightly-build`"):
            reader.invocation(name) if "#" in name else reader.session(name)
    with pytest.raises(NotFoundError, match=r"no invocation of bahs; nearest: `[Bb]ash`"):
        reader.invocation("@last:bahs")


@pytest.mark.parametrize("name", ["", "#", "zzzz", "the quick brown fox", "-", "f" * 100_000])
def test_a_name_that_is_like_no_other_has_no_suggestion(filled: StoreParts, name: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        filled.reader.session(name)
    assert "nearest" not in str(caught.value)


def test_damaged_rows_suggest_nothing_and_hide_nothing(parts: StoreParts) -> None:
    made = [call(SESSION, n, receipt=b"r", tool=tool) for n, tool in enumerate(("a", "bb", "cc"))]
    parts.ingest(*entries_of(made))
    parts.run("DROP TRIGGER invocations_no_update")
    parts.run("UPDATE invocations SET tool_name = CAST(x'ff' AS TEXT) WHERE seq = 1")
    parts.run("UPDATE invocations SET id = x'00' WHERE seq = 2")
    with parts.database.read() as connection:
        assert distinct_values(connection, "tools") == ["bb", "cc"]
    with pytest.raises(NotFoundError):
        parts.reader.invocation("0123abcd")
