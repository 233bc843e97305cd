"""A handler may do anything: there is one record of it, and only what must go on goes on."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue
from tests.records.failing import (
    CALL,
    SECRET,
    Records,
    awaited,
    details_of,
    error_of,
    exceptions,
    giving,
    refusing,
    run,
    sleep,
)
from tests.records.support import surfaces
from tests.support.cases import each_case
from tests.support.outputs import returned

from tooltrail.records import CompleteOutput, ToolCall, ainvoke, invoke


def test_a_handler_gets_the_arguments_of_the_call() -> None:
    seen: list[object] = []
    run(seen.append, ToolCall(tool_name="Tool", arguments_raw='{"a": [1, null]}'))
    run(seen.append, ToolCall(tool_name="Tool", arguments_raw=" \n"))
    # What a model wrote is never turned into a value that JSON does not have.
    marked = '{"a": {"$tooltrail.float": "Infinity"}, "$$tooltrail.b": 1}'
    run(seen.append, ToolCall(tool_name="Tool", arguments_raw=marked))
    written = {"a": {"$tooltrail.float": "Infinity"}, "$$tooltrail.b": 1}
    assert seen[::2] == seen[1::2] == [{"a": [1, None]}, {}, written]


def test_a_call_that_its_provider_runs_never_reaches_the_handler() -> None:
    call = ToolCall(tool_name="web_search", by_provider=True)
    error = error_of(run(refusing(AssertionError("it was called")), call))
    assert error.kind == "permission_denied"


@each_case(
    ("raw", "reason"),
    [
        ('{"a": ' + SECRET, "Expecting value: line 1 column 7 (char 6)"),
        ('["a"]', "the arguments must be a JSON object"),
        ('{"a": 1, "a": 2}', "a key stands twice in an object"),
        ('{"a": 9e99999}', "a number is not a finite double"),
        ("[" * 100_000, "nested too deep"),
        ("\ud800", "Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_arguments_that_are_no_object_never_reach_the_handler(raw: str, reason: str) -> None:
    call = ToolCall(tool_name="Tool", arguments_raw=raw)
    error = error_of(run(refusing(AssertionError("it was called")), call))
    assert error.kind == "invalid_tool_input"
    assert details_of(error)["parse_error"] == reason
    assert SECRET not in str(error)


def test_what_a_handler_changes_in_its_arguments_changes_no_other_run_of_the_call() -> None:
    def handler(arguments: dict[str, str]) -> str:
        return arguments.pop("path")

    call = ToolCall.of("Tool", {"path": "a"})
    assert run(handler, call) == returned("Tool", "a")
    assert call.arguments == {"path": "a"}


def test_a_call_that_was_cut_off_never_reaches_the_handler() -> None:
    call = ToolCall(tool_name="Tool", arguments_raw='{"path": "/tmp"}', flags=("incomplete",))
    error = error_of(run(refusing(AssertionError("it was called")), call))
    assert error.kind == "truncated_tool_call"
    assert details_of(error)["received_char_count"] == len(call.arguments_raw)


def test_the_handler_of_a_custom_tool_gets_text() -> None:
    seen: list[object] = []
    for text in ("SELECT 1", "", "{"):
        run(seen.append, ToolCall(tool_name="sql", arguments_raw=text, kind="custom"))
    assert seen[::2] == seen[1::2] == ["SELECT 1", "", "{"]


def never(_: object) -> object:
    raise AssertionError("it was called")


def test_a_table_runs_the_handler_of_the_tool_that_is_called() -> None:
    handlers = {"Tool": giving("this one"), "Other": never}
    assert run(handlers) == returned("Tool", "this one")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Tol", "did you mean Tool?"), ("ü", "call one of the tools that are offered")],
)
def test_a_tool_that_is_not_in_the_table_is_a_recorded_failure(name: str, hint: str) -> None:
    for table in (
        {"Tool": never, "Other": never},
        defaultdict(lambda: never, {"Tool": never, "Other": never}),
    ):
        error = error_of(run(table, ToolCall(tool_name=name, arguments_raw="not JSON")))
        assert (error.kind, error.recovery_hint) == ("unknown_tool", hint)
        assert details_of(error)["known"] == ["Other", "Tool"]
        assert sorted(table) == ["Other", "Tool"]


def test_a_call_that_is_not_to_run_is_refused_before_the_table_is_read() -> None:
    cut_off = ToolCall(tool_name="To", arguments_raw="{", flags=("incomplete",))
    assert error_of(run({}, cut_off)).kind == "truncated_tool_call"
    assert error_of(run({}, ToolCall(tool_name="s", by_provider=True))).kind == "permission_denied"


def test_invalid_arguments_never_reach_the_handlers_of_a_table() -> None:
    output = run({"Tool": never}, ToolCall(tool_name="Tool", arguments_raw="[1]"))
    assert error_of(output).kind == "invalid_tool_input"
    parsed = invoke({"Tool": never}, CALL, Records(), parse=Other.model_validate)
    assert error_of(parsed).kind == "invalid_tool_input"


def test_a_table_may_hold_handlers_that_are_awaited() -> None:
    handlers = {"Tool": awaited(giving("awaited")), "Other": giving("at once")}
    records = Records()
    for name in handlers:
        asyncio.run(ainvoke(handlers, ToolCall(tool_name=name), records))
    assert records == [returned("Tool", "awaited"), returned("Other", "at once")]
    assert "call the tool with ainvoke" in error_of(invoke(handlers, CALL, records)).message


class Other(BaseModel):
    other: str


class Arguments(BaseModel):
    path: str
    count: int = 1


def test_a_parser_makes_the_argument_of_the_handler() -> None:
    def read(arguments: Arguments) -> str:
        return arguments.path * arguments.count

    call = ToolCall.of("Tool", {"path": "a", "count": "3"})
    output = invoke(read, call, Records(), parse=Arguments.model_validate)
    assert output == returned("Tool", "aaa")


class SchemaError(Exception):
    message = "'path' is a required property"
    validator = "required"
    validator_value = ("path",)
    absolute_path = ()


def careless(arguments: Any) -> object:
    """A parser with a fault of its own."""
    return arguments.path


@each_case(
    ("parse", "details"),
    [
        (
            Arguments.model_validate,
            {"problems": [{"path": "path", "message": "Input should be a valid string"}]},
        ),
        (
            refusing(SchemaError()),
            {"problems": [{"path": "(input)", "message": "'path' is a required property"}]},
        ),
        (refusing(ValueError(SECRET)), {"exception": "ValueError"}),
        (refusing(KeyError("path")), {"exception": "KeyError"}),
        (careless, None),
        (refusing(SystemExit(1)), None),
    ],
)
def test_what_a_parser_refuses_is_invalid_input_and_its_faults_are_the_tool_s(
    parse: Callable[[JsonValue], Any], details: dict[str, JsonValue] | None
) -> None:
    call = ToolCall.of("Tool", {"path": 7})
    never = refusing(AssertionError("it was called"))
    error = error_of(invoke(never, call, Records(), parse=parse))
    if details is None:
        assert error.kind == "tool_execution_failed"
        assert "it was called" not in error.message
    else:
        assert error.kind == "invalid_tool_input"
        assert error.details == {"tool_name": "Tool", **details}


@each_case(
    "raised",
    [
        ValueError("no such column"),
        SystemExit(0),
        RecursionError(),
        MemoryError(),
        StopAsyncIteration(),
        BaseExceptionGroup("both", [ValueError(), SystemExit()]),
    ],
)
def test_no_exception_of_a_tool_ends_the_agent(raised: BaseException) -> None:
    records = Records()
    awaited_output = asyncio.run(ainvoke(awaited(refusing(raised)), CALL, records))
    assert records == [awaited_output]
    for output in (awaited_output, run(refusing(raised))):
        assert output.final_state == "error"
        assert error_of(output).kind == "tool_execution_failed"


def test_a_handler_that_is_no_function_is_a_failure() -> None:
    not_callable: Any = 7
    assert error_of(run(not_callable)).message == "TypeError: 'int' object is not callable"


class Stop(BaseException):
    """Control flow of a framework."""


@each_case(
    ("raised", "kind"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (GeneratorExit(), "interrupted"),
        (Stop(), "interrupted"),
        (asyncio.CancelledError(), "cancelled"),
        (BaseExceptionGroup("both", [ValueError(), KeyboardInterrupt()]), "interrupted"),
    ],
)
def test_what_must_not_be_swallowed_is_recorded_and_goes_on(
    raised: BaseException, kind: str
) -> None:
    records = Records()
    with pytest.raises(type(raised)) as caught:
        invoke(refusing(raised), CALL, records)
    assert caught.value is raised
    assert records.error.kind == kind


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), Stop(), asyncio.CancelledError()])
def test_an_awaited_handler_does_not_swallow_it_either(raised: BaseException) -> None:
    records = Records()
    with pytest.raises(type(raised)):
        asyncio.run(ainvoke(awaited(refusing(raised)), CALL, records))
    assert len(records) == 1


def test_a_coroutine_that_is_closed_is_recorded_as_interrupted() -> None:
    class Never:
        def __await__(self) -> Generator[None, None, None]:
            yield

    records = Records()
    coroutine = ainvoke(giving(Never()), CALL, records)
    coroutine.send(None)
    assert records == []
    coroutine.close()
    assert records.error.kind == "interrupted"


class AsyncTool:
    async def __call__(self, arguments: dict[str, Any]) -> object:
        raise AssertionError("it was called")

    async def handle(self, arguments: dict[str, Any]) -> object:
        raise AssertionError("it was called")


def undeclared(arguments: dict[str, Any]) -> object:
    """Not a coroutine function, but what it gives is to be awaited."""
    return sleep(arguments)


@each_case(
    "handler", [sleep, AsyncTool(), AsyncTool().handle, functools.partial(sleep), undeclared]
)
def test_a_handler_that_gives_something_to_be_awaited_is_a_failure(
    handler: Callable[[dict[str, Any]], object],
) -> None:
    records = Records()
    output = invoke(handler, CALL, records)
    assert records == [output]
    assert error_of(output).kind == "tool_execution_failed"
    assert error_of(output).message == (
        "the tool returned a value that cannot be recorded:"
        " it is a coroutine; call the tool with ainvoke"
    )
    assert error_of(output).details == {"returned": "coroutine"}


def test_what_is_to_be_awaited_twice_is_a_failure_too() -> None:
    output = asyncio.run(ainvoke(awaited(sleep), CALL, Records()))
    assert error_of(output).details == {"returned": "coroutine"}


def test_a_future_is_to_be_awaited_too() -> None:
    async def main() -> None:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        error = error_of(invoke(giving(future), CALL, Records()))
        assert error.details == {"returned": "_asyncio.Future"}
        assert not future.cancelled()
        future.set_result("done")
        assert await ainvoke(giving(future), CALL, Records()) == returned("Tool", "done")

    asyncio.run(main())


class FullDiskError(Exception):
    """A recorder that cannot record."""


@pytest.mark.parametrize("handler", [giving("done"), refusing(ValueError())])
def test_what_recording_raises_reaches_the_caller_and_is_no_failure_of_the_tool(
    handler: Callable[[dict[str, Any]], object],
) -> None:
    calls = Records()

    def record(output: CompleteOutput) -> None:
        calls(output)
        raise FullDiskError

    with pytest.raises(FullDiskError):
        invoke(handler, CALL, record)
    with pytest.raises(FullDiskError):
        asyncio.run(ainvoke(handler, CALL, record))
    assert len(calls) == 2


def test_a_cancellation_that_cannot_be_recorded_goes_on_with_a_note() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        invoke(refusing(KeyboardInterrupt()), CALL, refusing(OSError("disk")))
    assert caught.value.__notes__ == ["not recorded: OSError: disk"]


values: st.SearchStrategy[object] = st.one_of(
    st.text(),
    st.binary(),
    st.none(),
    st.floats(),
    st.dictionaries(st.text(), st.integers() | st.binary(), max_size=3),
    st.sets(st.integers()),
    st.builds(object),
)


@given(raw=st.text() | st.just("{}"), value=values, raised=st.none() | exceptions)
def test_whatever_is_called_with_whatever_there_is_one_valid_output(
    raw: str, value: object, raised: BaseException | None
) -> None:
    call = ToolCall(tool_name="Tool", arguments_raw=raw)
    records = Records()
    output = invoke(giving(value) if raised is None else refusing(raised), call, records)
    assert records == [output]
    assert CompleteOutput.model_validate(dict(output)) == output
    if raised is not None:
        assert output.status == "error"
        projection, _, _ = surfaces(output, "generic")
        assert len(projection.canonical.to_json().decode()) <= 5_000
