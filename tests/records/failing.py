"""Handlers that fail, and exceptions of every kind: odd classes, and trees of them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from hypothesis import strategies as st

from tooltrail.records import CompleteOutput, ToolCall, ToolError, ainvoke, invoke

SECRET = "hunter2-correct-horse"

CALL = ToolCall(tool_name="Tool", arguments_raw='{"path": "a"}')


class Records(list[CompleteOutput]):
    """Keeps what is recorded."""

    def __call__(self, output: CompleteOutput) -> CompleteOutput:
        self.append(output)
        return output

    @property
    def error(self) -> ToolError:
        """The failure that is the only record."""
        [output] = self
        assert output.error is not None
        return output.error


def run(
    handler: Callable[..., object] | Mapping[str, Callable[..., object]], call: ToolCall = CALL
) -> CompleteOutput:
    """What a handler comes to; both ways of running it agree."""
    records = Records()
    output = invoke(handler, call, records)
    again = asyncio.run(ainvoke(handler, call, records))
    assert records == [output, again]
    assert again.summary_text == output.summary_text
    return output


def error_of(output: CompleteOutput) -> ToolError:
    """The error of an output that is a failure."""
    assert output.error is not None
    return output.error


def details_of(error: ToolError) -> dict[str, Any]:
    """The details of an error that has some."""
    assert isinstance(error.details, dict)
    return error.details


def odd(name: str, **members: object) -> type[Exception]:
    """A class of exceptions that defines what no checker would let pass."""
    return type(name, (Exception,), {"__module__": "odd", **members})


def refusing(error: BaseException) -> Callable[..., Any]:
    """A method or a handler that raises."""

    def method(*_: object) -> NoReturn:
        raise error

    return method


def giving(value: object) -> Callable[..., object]:
    """A method or a handler that gives a value."""
    return lambda *_: value


async def sleep(_: object) -> None:
    """A handler that is not done before the test is over."""
    await asyncio.sleep(3600)


def awaited(handler: Callable[..., object]) -> Callable[..., object]:
    """The same handler, to be awaited."""

    async def handle(arguments: object) -> object:
        await asyncio.sleep(0)
        return handler(arguments)

    return handle


SilentError = odd("SilentError", __str__=refusing(RuntimeError("no text")))
texts = st.one_of(
    st.text(), st.text(alphabet='\x00\n\x1b\udcff\U0001f600"\\ '), st.just("x" * 3000)
)
_TYPES: list[type[BaseException]] = [
    ValueError,
    KeyError,
    OSError,
    TimeoutError,
    StopIteration,
    SystemExit,
    SilentError,
]


def _leaf(kind: type[BaseException], text: str) -> BaseException:
    return kind(text)


def _chained(error: BaseException, cause: BaseException, note: str) -> BaseException:
    error.add_note(note)
    error.__cause__ = cause
    return error


def _trees(children: st.SearchStrategy[BaseException]) -> st.SearchStrategy[BaseException]:
    members = st.lists(children, min_size=1, max_size=5)
    return st.builds(_chained, children, children, texts) | st.builds(
        BaseExceptionGroup[BaseException], texts, members
    )


exceptions = st.recursive(st.builds(_leaf, st.sampled_from(_TYPES), texts), _trees, max_leaves=20)
"""Trees of groups and causes that a tool may raise; none of them goes on past the tool."""
