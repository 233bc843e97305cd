"""Conditions over columns and documents, on both engines, against a plain evaluation in Python."""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL
from tests.support.call_facts import moment
from tests.support.postgres import fresh_database
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import InvalidRecordError, canonical_json
from tooltrail.records.facts import OmissionFact, SessionOpened, Shown
from tooltrail.store.expressions import (
    COLUMNS,
    DOCUMENTS,
    PRESENT,
    Comparison,
    Every,
    Expression,
    Not,
    RanIn,
    Some,
    Value,
    operators_of,
)
from tooltrail.store.filters import InvocationFilter

SESSIONS = (new_id(), new_id())
LONG = "The long line that stands in the receipt, too: é, 日本, 😀, and more until it is worth it. "
ARGUMENTS: Sequence[bytes] = (
    b'{"command":"make test","timeout":30,"deep":{"list":[1,{"x":"make"},null]}}',
    b'{"command":["make","-j",2],"timeout":30.5,"dry-run":true}',
    b'{"command":"ls","timeout":"30","dry-run":false,"a b":{"c.d":"\xc3\xa9"}}',
    b'{"command":null,"timeout":-1e3,"deep":{"list":[]}}',
    rb'{"command":"a\u0000b","note":"\\u0000 stays \\\\","emoji":"\ud83d\ude00 make"}',
    b"*** Begin Patch\n+make\n",
    b'{"command":"make"',
    b"[1,2,3]",
    b'"make"',
    b"12",
    b"",
    b"[" * 20_000 + b"]" * 20_000,
    b'{"$tooltrail.receipt":[0,5],"command":{"$tooltrail.receipt":[0,5]}}',
    # Other spellings of the same key, text and number.
    rb'{"comm\u0061nd":"make"}',
    rb'{"command":"m\u0061ke"}',
    rb'{"command":"a\/b","note":"a\/b"}',
    b'{"command":"x","timeout":3E1}',
    b'{"command":["make"],"timeout":0.3e2}',
    b'{"command":"make","timeout":30.000}',
)
RESULTS: Sequence[Any] = (
    None,
    {"exit_status": 0, "stdout_preview": LONG * 2, "parts": [LONG, "short"]},
    {"exit_status": 1, "stdout_preview": "ok", "truncated": False},
    {"exit_status": None, "stdout_preview": None},
    {"exit_status": 2, "stdout_preview": "nul \0 and " + LONG},
    {"exit_status": 3, "stdout_preview": "\ud800" + LONG},
    [LONG, {"deep": LONG}],
)
WORDS = (
    *("make", "a/b", "", "30", "é", "line that", "日本, 😀", LONG, LONG * 2),
    *("ok", "\\0", "zzz", "%_?+'\"\\"),
)
PATHS: Sequence[tuple[str | int, ...]] = (
    *((), ("command",), ("command", 0), ("command", 2), ("timeout",), ("dry-run",)),
    *(("deep", "list"), ("deep", "list", 1, "x"), ("deep", "list", 2), ("a b", "c.d")),
    *(("note",), ("emoji",), (0,), ("0",), ("exit_status",), ("stdout_preview",), ("parts", 0)),
    *((1, "deep"), ("truncated",), ("$tooltrail.receipt",), ("no such ' thing",)),
)
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Filled:
    """A store, and what each call has, by its id."""

    parts: StoreParts
    calls: Mapping[UUID, Mapping[str, Any]]


def fill(parts: StoreParts) -> Filled:
    sessions = dict(zip(SESSIONS, (("main", "nightly"), (None, None)), strict=True))
    opened = [
        Entry(SessionOpened(session=key, at=moment(0), agent=agent, name=name))
        for key, (agent, name) in sessions.items()
    ]
    made: list[Call] = []
    known: dict[UUID, dict[str, Any]] = {}
    for n, arguments in enumerate((*ARGUMENTS, *ARGUMENTS[:5], *ARGUMENTS[:5])):
        session = [*sessions][n % 2]
        one, has = a_call(session, n, arguments)
        agent, name = sessions[session]
        known[one.started.id] = {**has, "agent": agent, "name": name, "session": session}
        made.append(one)
    parts.ingest(*opened, *entries_of(made))
    return Filled(parts, known)


def a_call(session: UUID, n: int, arguments: bytes) -> tuple[Call, dict[str, Any]]:
    result = RESULTS[n % len(RESULTS)]
    receipt = (
        b"# "
        + json.dumps(result, ensure_ascii=False).encode("utf-8", "replace")
        + LONG.encode() * 2
    )
    if n % len(RESULTS) == 4:
        receipt = b"nul \0 and " + LONG.encode()
    error = {"kind": "odd", "message": LONG} if n % 3 == 0 else None
    canonical = canonical_json.encode(
        {
            "tool_name": "t",
            "status": "success",
            "summary_text": "",
            "result": result,
            "error": error,
        }
    )
    end = {
        "exit_status": (0, 1, None, 137)[n % 4],
        "signal": (9, None, 15)[n % 3],
        "duration_ms": n * 700,
    }
    tool = ("bash", "Ünï 'x'", "cat")[n % 3]
    more = {"call_id": "c1"} if n % 2 else {}
    size = n * 10 + (n % 5 == 1) * len(receipt)
    made = call(
        session,
        n,
        tool=tool,
        arguments=arguments,
        receipt=receipt,
        canonical=canonical,
        stdout=b"x" * size,
        end=end,
        start=more,
        state=None if n % 9 == 8 else "success",
    )
    if made.end is None:
        return made, {
            **dict.fromkeys([*COLUMNS, *DOCUMENTS]),
            "seq": n // 2 + 1,
            "arguments": read(arguments),
            "state": "started",
            "outcome": "unfinished",
            "timed_out": False,
            "tool": tool,
            "family": "command",
            "started": made.started.at,
            "call_id": more.get("call_id"),
        }
    cut: tuple[OmissionFact, ...] = ()
    if n % 5 == 0:
        cut = (
            OmissionFact("projection", "stdout", "bytes", n + 7, 0, "budget"),
            OmissionFact("rendering", "stdout", "bytes", n + 5, 1, "budget"),
            OmissionFact("rendering", "stdout", "lines", 900, 1, "budget"),
        )
        assert made.ended is not None
        shown: Shown = made.shown.replaced(omissions=cut, renderer="command")
        made.end = made.end._replace(fact=made.ended.replaced(shown=shown))
    assert made.ended is not None
    outcome = "signal" if end["signal"] else "exit" if end["exit_status"] else "ok"
    return made, {
        "arguments": read(arguments),
        "result": json.loads(canonical)["result"],
        "error": error,
        "receipt": receipt.decode(),
        "tool": tool,
        "family": "command",
        "state": "success",
        "outcome": outcome,
        "seq": n // 2 + 1,
        "timed_out": False,
        "truncated": bool(cut),
        "exit_status": end["exit_status"],
        "signal": end["signal"],
        "duration": end["duration_ms"],
        "started": made.started.at,
        "finished": made.ended.at,
        "size": size,
        "lost": 0,
        # Another program made the receipts without omissions.
        "cut": 2 * n + 11 if cut else max(size - len(receipt), 0) or None,
        "call_id": more.get("call_id"),
        "error_kind": None,
        "title": None,
    }


def read(arguments: bytes) -> Any:
    """The arguments as a value; a text if no database parses them."""
    if arguments.count(b"[") > 5_000:
        return arguments.decode()
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments.decode()


def holds(expression: Expression, has: Mapping[str, Any]) -> bool:
    match expression:
        case Every(parts):
            return all(holds(part, has) for part in parts)
        case Some(parts):
            return any(holds(part, has) for part in parts)
        case Not(part):
            return not holds(part, has)
        case Comparison("session", sign, value):
            same = value in (has["session"], has["name"])
            return same if sign == "=" else not same
        case Comparison(name, sign, value, path):
            return compares(at(has[name], path), sign, value)
        case RanIn():
            raise AssertionError(expression)


def at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        if type(value).__name__ != ("list" if isinstance(key, int) else "dict"):
            return None
        try:
            value = value[key]
        except LookupError:
            return None
    return value


def compares(found: Any, sign: str, value: Value) -> bool:
    if found is None or sign == PRESENT:
        return found is not None
    if sign == "~":
        assert isinstance(value, str)
        return any(value in text for text in texts(found))
    alike = kind(found) == kind(value)
    if sign == "!=":
        return not alike or plain(found) != plain(value)
    return alike and COMPARED[sign](plain(found), plain(value))


def kind(value: object) -> object:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def plain(value: Any) -> Any:
    """A text as databases store and compare it."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\\0").encode("utf-8", "backslashreplace")


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        members = cast("Any", value)
        for one in members.values() if isinstance(value, dict) else members:
            yield from texts(one)
    elif isinstance(value, str):
        yield plain(value).decode()


VALUES: Mapping[str, Sequence[Value]] = {
    "text": (*WORDS, "bash", "cat", "Ünï 'x'", "command", "main", "c1"),
    "state": ("success", "started", "denied"),
    "outcome": ("ok", "signal", "exit", "unfinished"),
    "session": (*SESSIONS, UUID(int=5), "nightly", "daily"),
    "integer": (0, 1, 137, 5),
    "signal": (9, 15, 3),
    "duration": (0, 1400, 1401.5, 99_000),
    "time": (moment(3), moment(7.5), moment(99)),
    "flag": (True, False),
    "size": (0, 11, 50, 51.5, 1 << 40),
}
IN_DOCUMENTS: Sequence[Value] = (*WORDS, 0, 1, 2, 30, 30.5, -1000, True, False)


def of_document(name: str, sign: str, value: Value, path: tuple[str | int, ...]) -> Comparison:
    return Comparison(name, sign, str(value) if sign == "~" else value, path)


def comparisons(name: str) -> st.SearchStrategy[Comparison]:
    signs = st.sampled_from(operators_of(name))
    if name in DOCUMENTS:
        values, paths = st.sampled_from(IN_DOCUMENTS), st.sampled_from(PATHS)
        return st.builds(of_document, st.just(name), signs, values, paths)
    return st.builds(Comparison, st.just(name), signs, st.sampled_from(VALUES[COLUMNS[name]]))


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([*COLUMNS, *DOCUMENTS]).flatmap(comparisons),
    lambda part: st.one_of(
        st.lists(part, min_size=1, max_size=3).map(lambda parts: Every(tuple(parts))),
        st.lists(part, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts))),
        part.map(Not),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    folder: Path = tmp_path_factory.mktemp("filled")
    if request.param == "sqlite":
        with store_parts(str(folder / "trail.db"), folder) as store:
            yield fill(store)
        return
    server: URL = request.getfixturevalue("postgres_server")
    with fresh_database(server) as url, store_parts(url, folder) as store:
        yield fill(store)


def found(filled: Filled, expression: Expression, **more: Any) -> list[UUID]:
    where = InvocationFilter(expression=expression, **more)
    page = filled.parts.reader.invocations(where, limit=1000)
    assert filled.parts.reader.count_invocations(where) == len(page.items)
    return [one.id for one in page.items]


def expected(filled: Filled, expression: Expression) -> list[UUID]:
    return [id_ for id_, has in reversed([*filled.calls.items()]) if holds(expression, has)]


@given(some=st.lists(EXPRESSIONS, min_size=8, max_size=8))
def test_a_condition_finds_what_a_plain_evaluation_finds(
    filled: Filled, some: Sequence[Expression]
) -> None:
    for one in some:
        assert found(filled, one) == expected(filled, one), one


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_place_of_a_document_is_found(filled: Filled, name: str) -> None:
    for path in PATHS:
        for value in ("make", "a/b", LONG, 30, -1000, True):
            for sign in operators_of(name):
                one = of_document(name, sign, value, path)
                assert found(filled, one) == expected(filled, one), one


ODD = (
    rb'{"command":"\ud800 make","x":"\ude00\ud800"}',
    b'{"command":"make","timeout":1e400000}',
    b'{"command":"make","command":"make"}',
    b'{"command":"make","deep":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"command":"\xff make"}',
    b'{"command":"\0 make"}',
)


@pytest.mark.both_engines
def test_a_call_whose_outcome_is_a_timeout_timed_out(parts: StoreParts) -> None:
    session, end = new_id(), {"error_kind": "tool_timed_out", "timed_out": None}
    calls = [call(session, 0, state="error", end=end), call(session, 1)]
    parts.ingest(*entries_of(calls))
    for value, one in zip((True, False), calls, strict=True):
        where = Comparison("timed_out", "=", value)
        assert found(Filled(parts, {}), where) == [one.started.id]


@pytest.mark.both_engines
def test_odd_arguments_do_not_hide_other_calls(parts: StoreParts) -> None:
    session = new_id()
    calls = [call(session, n, arguments=one) for n, one in enumerate((*ODD, ARGUMENTS[0]))]
    parts.ingest(*entries_of(calls))
    ids = [one.started.id for one in reversed(calls)]
    filled = Filled(parts, {})
    assert found(filled, Comparison("arguments", "~", "make")) == ids
    in_command = found(filled, Comparison("arguments", "~", "make", ("command",)))
    # An infinite number and a NUL outside of an escape are no JSON.
    assert set(ids) - set(in_command) <= {calls[1].started.id, calls[5].started.id}
    for sign in operators_of("arguments"):
        found(filled, Comparison("arguments", sign, "x", ("x",)))
        found(filled, Comparison("arguments", sign, "1", ("timeout",)))


DAMAGED = (
    """'{"result":{"x":{"$tooltrail.receipt":[99999999999,5]}}}'""",
    """'{"result":{"x":{"$tooltrail.receipt":[1,-5]}}}'""",
    """'{"result":{"x":{"$tooltrail.receipt":["a",{}]}}}'""",
    """'{"result":{"x":{"$tooltrail.receipt":5}}}'""",
    """'{"result":{"x":{"$tooltrail.receipt":[1,3]}}}'""",
    "'no JSON'",
    "NULL",
)


@pytest.mark.both_engines
@pytest.mark.parametrize("column", ["arguments", "canonical"])
def test_a_damaged_text_does_not_hide_other_calls(parts: StoreParts, column: str) -> None:
    envelope = canonical_json.encode({"result": {"x": "make é"}, "error": None})
    calls = [
        call(new_id(), n, arguments=b'{"x":"make"}', receipt="é".encode() * 9, canonical=envelope)
        for n in range(2)
    ]
    parts.ingest(*entries_of(calls))
    damaged, whole = (one.started.id for one in calls)
    more = ("x'00ff'", "7", "CAST(x'7bff7d' AS TEXT)") if parts.is_sqlite else ()
    parts.drop_guards()
    for value in (*DAMAGED, *more):
        parts.run(f"UPDATE surfaces SET {column} = {value} WHERE invocation_key = 1")
        for name in DOCUMENTS:
            for sign in operators_of(name):
                ids = found(Filled(parts, {}), Comparison(name, sign, "make", ("x",)))
                is_found = name != "error" and sign in ("~", ">=", PRESENT)
                assert whole in ids or not is_found
    parts.run('UPDATE surfaces SET canonical = \'{"result":{"x":{"$tooltrail.receipt":[2,2]}}}\'')
    in_receipt = Comparison("result", "=", "é", ("x",))
    assert found(Filled(parts, {}), in_receipt) == [whole, damaged]
    parts.run("UPDATE surfaces SET receipt = NULL WHERE invocation_key = 1")
    assert found(Filled(parts, {}), in_receipt) == [whole]
    for sign in operators_of("result"):
        assert damaged not in found(Filled(parts, {}), Comparison("result", sign, "z", ("x",)))


def test_a_text_in_a_number_column_is_not_greater_than_a_number(parts: StoreParts) -> None:
    calls = [call(new_id(), n) for n in range(2)]
    parts.ingest(*entries_of(calls))
    parts.drop_guards()
    parts.run("UPDATE surfaces SET cut_size = 7")
    parts.run("UPDATE surfaces SET cut_size = 'x' WHERE invocation_key = 1")
    for sign in (">", ">=", "!=", PRESENT):
        assert found(Filled(parts, {}), Comparison("cut", sign, 3)) == [calls[1].started.id]


def test_a_tree_that_is_too_large_or_wrong_is_refused() -> None:
    one: Expression = Comparison("tool", "=", "a")
    deep = one
    for _ in range(60):
        deep = Not(deep)
    for expression in (deep, Every((one,) * 600)):
        with pytest.raises(InvalidRecordError, match="a condition has more than"):
            InvocationFilter(expression=expression)
    for name, sign, path in (("tool", "<", ()), ("nothing", "=", ()), ("result", "=", ('a"b',))):
        with pytest.raises(InvalidRecordError):
            Comparison(name, sign, "x", path)
