"""A stored receipt beside what today's renderers give: every kind of drift, and nothing written."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from sqlalchemy import insert
from tests.support.effort import times
from tests.support.outputs import returned
from tests.support.recording import command_output, fail_tool, run_command, run_tool
from tests.support.rewording import reworded, without
from tests.support.rows import all_rows

from tooltrail.records import (
    CanonicalResult,
    CommandBudget,
    DamageError,
    DigestMismatchError,
    Family,
    FamilyRegistry,
    NotFoundError,
    ToolCall,
    ToolPolicy,
    UnavailableError,
    canonical_json,
    default_families,
    default_policy,
    digest_of,
    load_policy,
)
from tooltrail.store import (
    InvocationDetail,
    Rerendering,
    Store,
    Wording,
    iter_rerenderings,
    open_store,
    rerender,
)
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import SqliteTarget
from tooltrail.store.tables import PolicyRow

BIG = b"".join(b"%08d\n" % n for n in range(50_000))
TODAY = default_families()
THEN = reworded("command", "exit status 0\n", version=4)
STORED = Wording("exit status 0\n", "command", 4)
"""What the families of `THEN` give for every command."""


class WiderBudget(CommandBudget):
    """The numbers of a later release, which has one more."""

    extra_chars: int = 5


class NarrowerBudget(CommandBudget):
    """The numbers of a later release, which allows less."""

    command_chars: Annotated[int, Field(ge=16, le=100)] = 100


class OtherModel(BaseModel):
    """A canonical result as a later release might want it."""

    lines: list[str]


@pytest.fixture
def old(sqlite_store: Store) -> Iterator[Store]:
    """A fresh store, opened by a program with the families of `THEN`."""
    with open_store(str(sqlite_store.database.target), families=THEN) as store:
        yield store


def with_foreign(name: str = "foreign") -> FamilyRegistry:
    """The families of today and one more, with numbers of its own."""
    families = default_families()
    command = families.named("command")
    families.register(
        Family(
            name=name,
            result_types=command.result_types,
            projector=command.projector,
            renderer=command.renderer,
            budget=WiderBudget(extra_chars=7),
        )
    )
    return families


def run_kept(store: Store) -> UUID:
    return run_command(store.open_session(), b"kept\n").invocation_id


def with_policy(store: Store, detail: InvocationDetail, document: str) -> InvocationDetail:
    """An invocation whose receipt was made by a policy of another program."""
    digest = digest_of(document.encode())
    row = {"digest": digest, "document": document, "created_at": datetime.now(UTC)}
    with store.database.write() as connection:
        connection.execute(insert(PolicyRow).values(row))
    assert detail.receipt is not None
    return replace(detail, receipt=replace(detail.receipt, policy_digest=digest))


def database_file(store: Store) -> Path:
    target = store.database.target
    assert isinstance(target, SqliteTarget)
    return target.path


def alter(store: Store, trigger: str, statement: str) -> None:
    """Change an evidence table of SQLite behind the program's back, whatever forbids it."""
    with closing(sqlite3.connect(database_file(store))) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)


def test_what_today_s_renderers_made_is_the_same(store: Store) -> None:
    session = store.open_session()
    names = (
        run_command(session, b"kept\n").invocation_id,
        run_command(session, BIG, b"\xff\xfe", exit_status=3).invocation_id,
        run_tool(session, "text", b"\0", tool="lookup").invocation_id,
        fail_tool(session).invocation_id,
        fail_tool(session, "cancelled", tool="Bash").invocation_id,
    )
    found = [rerender(store.reader, name, store.families) for name in names]
    assert [(f.state, f.drifted, f.reason) for f in found] == [("same", False, "")] * 5
    assert all(f.stored == f.today for f in found)
    assert [f.today.renderer_name for f in found if f.today] == [
        *("command", "command", "generic", "error", "error")
    ]


def test_other_text_of_another_version_is_drift(store: Store, database: str) -> None:
    with open_store(database, families=THEN) as old:
        name = run_kept(old)
    now = reworded("command", "Exited with 0\n", version=5)
    found = rerender(store.reader, name, now)
    reason = "it was worded by renderer command 4, today's is command 5"
    today = Wording("Exited with 0\n", "command", 5)
    assert found == Rerendering(name, "drifted", reason, STORED, today)
    assert found.drifted
    same = Rerendering(name, "same", "", STORED, STORED)
    assert rerender(store.reader, str(name), THEN) == same
    assert rerender(store.reader, store.reader.invocation(name), THEN) == same


def test_other_text_of_the_same_version_is_drift_that_says_so(old: Store) -> None:
    name = run_kept(old)
    found = rerender(old.reader, name, reworded("command", "Exited with 0\n", version=4))
    assert found.state == "drifted"
    assert found.reason == "renderer command 4 gives other text, although its version is the same"


def test_a_missing_line_end_is_drift(old: Store) -> None:
    name = run_kept(old)
    assert rerender(old.reader, name, reworded("command", "exit status 0", version=4)).drifted


def test_the_same_text_of_another_version_is_no_drift(old: Store) -> None:
    name = run_kept(old)
    found = rerender(old.reader, name, reworded("command", "exit status 0\n", version=5))
    assert found == Rerendering(name, "same", "", STORED, Wording("exit status 0\n", "command", 5))
    assert not found.drifted


def validating(canonical: CanonicalResult, _: object) -> str:
    return "".join(OtherModel.model_validate(canonical.result).lines)


def looking(canonical: CanonicalResult, _: object) -> str:
    return str((canonical.result or {})["lines\nof text"])


@pytest.mark.parametrize(
    ("renderer", "why"),
    [(validating, "lines: Field required"), (looking, r"KeyError: 'lines\nof text'")],
)
def test_a_canonical_result_that_no_renderer_reads_any_more_is_drift(
    old: Store, renderer: Any, why: str
) -> None:
    name = run_kept(old)
    found = rerender(old.reader, name, reworded("command", renderer))
    reason = f"today's command family cannot word the canonical result: {why}"
    assert found == Rerendering(name, "drifted", reason, STORED, None)


def test_the_receipt_of_a_family_that_is_gone_cannot_be_compared(old: Store) -> None:
    name = run_kept(old)
    found = rerender(old.reader, name, without("command"))
    reason = "the family 'command' is not known to this program"
    assert found == Rerendering(name, "incomparable", reason, STORED)
    assert not found.drifted


def test_a_policy_with_fewer_numbers_than_today_s_has_today_s_defaults(old: Store) -> None:
    shown: list[Any] = []

    def remember(_: CanonicalResult, budget: WiderBudget) -> str:
        shown.append((budget.command_chars, budget.extra_chars))
        return "exit status 0\n"

    invocation = old.open_session().start(
        ToolCall(tool_name="Bash"), policy=old.policy.for_tool("Bash", command_chars=77)
    )
    invocation.finish(command_output(invocation))
    today = reworded("command", remember, version=4, budget=WiderBudget())
    same = Rerendering(invocation.id, "same", "", STORED, STORED)
    assert rerender(old.reader, invocation.id, today) == same
    assert shown == [(77, 5)]


def test_a_policy_that_today_s_bounds_refuse_is_not_readable(old: Store) -> None:
    name = run_kept(old)
    today = reworded("command", "exit status 0\n", budget=NarrowerBudget())
    found = rerender(old.reader, name, today)
    assert found.state == "incomparable"
    assert found.reason == (
        "the policy is not readable: command_chars: Input should be less than or equal to 100"
    )


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("[]", "not a policy: it is not a JSON object"),
        ('{"families":{"command":{}},"version":2}', "version: Input should be 1"),
        ('{"families":{"command":{}},"tools":{"Bash":{"budgets":{}}}}', "tools.Bash.budgets: "),
        ("{", "not canonical JSON: "),
    ],
)
def test_a_policy_of_another_kind_is_not_readable(old: Store, document: str, why: str) -> None:
    detail = old.reader.invocation(run_kept(old))
    found = rerender(old.reader, with_policy(old, detail, document), TODAY)
    assert found.state == "incomparable"
    assert found.reason.startswith(f"the policy is not readable: {why}")
    assert found.stored == STORED


def test_a_stored_policy_is_loaded_with_its_own_digest(store: Store) -> None:
    name = run_kept(store)
    digest = store.reader.invocation(name).policy_digest
    document = store.reader.policy_json(digest)
    loaded = load_policy(as_object(document), store.families)
    assert loaded == store.policy
    assert loaded.digest == digest == digest_of(document.encode())


def as_object(document: str) -> dict[str, Any]:
    value = canonical_json.decode(document)
    assert isinstance(value, dict)
    return value


def test_families_and_tools_that_came_or_went_do_not_stand_in_the_way(
    store: Store, database: str
) -> None:
    tools = {
        "Bash": ToolPolicy(budget={"preview_chars": 1_000}),
        "theirs": ToolPolicy(family="foreign", budget={"extra_chars": 9}),
        "odd \ud800": ToolPolicy(family="command"),
    }
    families = with_foreign()
    then = default_policy(families).model_copy(update={"tools": tools})
    with open_store(database, families=families) as old:
        session = old.open_session()
        name = session.start(ToolCall(tool_name="lookup"), policy=then).finish(
            returned("lookup", "kept")
        )
    for today in (TODAY, with_foreign("later"), families):
        found = rerender(store.reader, name.invocation_id, today)
        assert (found.state, found.reason) == ("same", "")


def test_the_numbers_for_a_tool_still_count(store: Store) -> None:
    shown: list[int] = []

    def remember(_: CanonicalResult, budget: CommandBudget) -> str:
        shown.append(budget.preview_chars)
        return "words"

    policy = store.policy.for_tool("Bash", preview_chars=1_234)
    invocation = store.open_session().start(ToolCall(tool_name="Bash"), policy=policy)
    invocation.finish(command_output(invocation))
    assert rerender(store.reader, invocation.id, reworded("command", remember)).drifted
    assert shown == [1_234]


numbers = st.integers(1_000, 30_000)
tool_policies = st.builds(
    ToolPolicy,
    family=st.none() | st.sampled_from(["command", "foreign", "generic"]),
    budget=st.dictionaries(st.sampled_from(["preview_chars", "max_items"]), numbers, max_size=2),
)


@settings(
    max_examples=times(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    inline_bytes=st.integers(0, 1 << 20),
    preview_chars=numbers,
    tools=st.dictionaries(st.text(st.characters(), min_size=1), tool_policies, max_size=4),
)
def test_any_policy_gives_the_same_receipt_again(
    sqlite_store: Store, inline_bytes: int, preview_chars: int, tools: dict[str, ToolPolicy]
) -> None:
    families = with_foreign()
    document = {
        "inline_bytes": inline_bytes,
        "families": {"generic": {"preview_chars": preview_chars, "receipt_chars": 512_000}},
    }
    policy = load_policy(document, families).model_copy(update={"tools": tools})
    database = str(sqlite_store.database.target)
    with open_store(database, families=families) as old, old.open_session() as session:
        invocation = session.start(ToolCall(tool_name="lookup"), family="generic", policy=policy)
        invocation.finish(returned("lookup", "line\n" * 5_000))
    found = rerender(sqlite_store.reader, invocation.id, TODAY)
    assert (found.state, found.reason) == ("same", "")


def test_an_open_invocation_has_nothing_to_compare(store: Store) -> None:
    name = store.open_session().start(ToolCall(tool_name="Bash")).id
    reason = "the invocation has not ended, so there is no receipt"
    assert rerender(store.reader, "@last", TODAY) == Rerendering(name, "open", reason)
    with pytest.raises(NotFoundError):
        rerender(store.reader, "@last:lookup", TODAY)


@pytest.mark.parametrize("table", ["receipts", "canonical_results"])
def test_a_lost_surface_is_damage(sqlite_store: Store, table: str) -> None:
    name = run_kept(sqlite_store)
    alter(sqlite_store, f"{table}_no_delete", f"DELETE FROM {table}")
    with pytest.raises(DamageError, match=f"a surface of invocation {name} is missing") as caught:
        rerender(sqlite_store.reader, name, TODAY)
    assert caught.value.path == str(name)


def test_an_altered_policy_is_damage(sqlite_store: Store) -> None:
    name = run_kept(sqlite_store)
    digest = sqlite_store.reader.invocation(name).policy_digest
    alter(
        sqlite_store,
        "policies_no_update",
        "UPDATE policies SET document = replace(document, '16384', '16385')",
    )
    with pytest.raises(DigestMismatchError, match="it has another digest") as caught:
        rerender(sqlite_store.reader, name, TODAY)
    assert caught.value.path == digest


def test_a_policy_that_the_store_does_not_have_is_damage(store: Store) -> None:
    digest = digest_of(b"none")
    with pytest.raises(DamageError, match="is missing") as caught:
        store.reader.policy_json(digest)
    assert caught.value.path == digest


def test_the_complete_output_is_not_asked_for(sqlite_store: Store) -> None:
    name = run_command(sqlite_store.open_session(), BIG).invocation_id
    (artifact,) = sqlite_store.reader.artifacts()
    Path(sqlite_store.archive.sink.url.removeprefix("file://"), artifact.path).unlink()
    assert rerender(sqlite_store.reader, name, TODAY).state == "same"


def test_comparing_changes_no_row(store: Store) -> None:
    session = store.open_session()
    run_command(session, BIG, b"warning\n")
    run_tool(session, "text", tool="lookup")
    fail_tool(session)
    with store.database.read() as connection:
        before = all_rows(connection)
    drifts = list(iter_rerenderings(store.reader, reworded("command", "other words")))
    rerender(store.reader, "@last", TODAY)
    with store.database.read() as connection:
        after = all_rows(connection)
    assert [found.drifted for found in drifts] == [True, False, False]
    assert after == before
    assert len(before["receipts"]) == 3


def test_all_that_ended_are_compared_page_by_page_the_oldest_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store._reading.listing.PAGE", 2)
    first, second = store.open_session(), store.open_session()
    names: list[UUID] = []
    for number in range(5):
        session = second if number == 3 else first
        names.append(run_tool(session, f"text {number}", tool="lookup").invocation_id)
        session.start(ToolCall(tool_name="Bash"))
    reader = store.reader
    assert [f.invocation_id for f in iter_rerenderings(reader, TODAY)] == names
    of_second = iter_rerenderings(reader, TODAY, session=second.id)
    assert [f.invocation_id for f in of_second] == [names[3]]
    assert list(iter_rerenderings(reader, TODAY, session=store.open_session().id)) == []


def three_invocations(store: Store) -> list[UUID]:
    session = store.open_session()
    return [run_tool(session, f"text {number}", tool="lookup").invocation_id for number in range(3)]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("invocations", "started_at", "'yesterday'"),
        ("invocations", "finished_at", "'soon'"),
        ("invocations", "session_key", "99"),
        ("invocations", "tool_name", "CAST(x'ff' AS TEXT)"),
        ("canonical_results", "document", "x'ff'"),
        ("complete_outputs", "document", "document || ' '"),
        ("receipts", "body_digest", "'sha256:'"),
        ("receipts", "policy_digest", "'sha256:'"),
    ],
)
def test_a_damaged_record_does_not_end_the_comparison(
    sqlite_store: Store, table: str, column: str, value: str
) -> None:
    names = three_invocations(sqlite_store)
    key = "key" if table == "invocations" else "invocation_key"
    change = f"UPDATE {table} SET {column} = {value} WHERE {key} = 2"
    alter(sqlite_store, f"{table}_no_update", change)
    found = list(iter_rerenderings(sqlite_store.reader, TODAY))
    assert [(f.invocation_id, f.state) for f in found] == [
        (names[0], "same"),
        (names[1], "damaged"),
        (names[2], "same"),
    ]
    assert found[1].reason


def test_a_damaged_record_has_the_reason(sqlite_store: Store) -> None:
    name = three_invocations(sqlite_store)[1]
    change = "UPDATE canonical_results SET document = document || ' ' WHERE invocation_key = 2"
    alter(sqlite_store, "canonical_results_no_update", change)
    reason = f"a document of invocation {name} is damaged: it has another digest"
    found = list(iter_rerenderings(sqlite_store.reader, TODAY))
    assert found[1] == Rerendering(name, "damaged", reason)


def test_a_row_without_a_readable_id_is_damaged_and_described(sqlite_store: Store) -> None:
    names = three_invocations(sqlite_store)
    change = "UPDATE invocations SET id = x'07' WHERE key = 2"
    alter(sqlite_store, "invocations_no_update", change)
    found = list(iter_rerenderings(sqlite_store.reader, TODAY))
    assert [f.invocation_id for f in found] == [names[0], None, names[2]]
    assert found[1] == Rerendering(None, "damaged", "row 2 of invocations has no readable id")


def test_a_store_that_is_away_is_no_damage(sqlite_store: Store) -> None:
    three_invocations(sqlite_store)
    found = iter_rerenderings(sqlite_store.reader, TODAY)
    assert next(found).state == "same"
    path = database_file(sqlite_store)
    sqlite_store.database.close()
    path.rename(path.with_name("away.db"))
    with pytest.raises(UnavailableError):
        next(found)


def test_a_policy_that_is_no_text_is_damage(sqlite_store: Store) -> None:
    name = run_kept(sqlite_store)
    digest = sqlite_store.policy.digest
    change = "UPDATE policies SET document = CAST(document AS BLOB)"
    alter(sqlite_store, "policies_no_update", change)
    with pytest.raises(DamageError, match="is damaged: it is not text") as caught:
        rerender(sqlite_store.reader, name, TODAY)
    assert caught.value.path == digest


def test_a_body_that_is_no_bytes_is_damage(sqlite_store: Store) -> None:
    name = run_kept(sqlite_store)
    (stdout, *_) = sqlite_store.reader.invocation(name).streams
    alter(sqlite_store, "bodies_no_update", "UPDATE bodies SET data = CAST(data AS TEXT)")
    with pytest.raises(DamageError, match="a row holds what was never stored"):
        sqlite_store.reader.open_stream(stdout)
