"""The text formats of model families: how calls and results are told in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tooltrail.records import NotFoundError, ResultStatus
from tooltrail.wire.text_fallback.markup import escape_attribute, escape_body


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call as a text format tells it.

    Attributes:
        tool_name: of the tool.
        call_id: of the call; None when it has none.
        arguments: the text of them.
    """

    tool_name: str
    call_id: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class ToldResult:
    """A result as a text format tells it.

    Attributes:
        tool_name: of the call.
        call_id: of the call; None when it has none.
        status: how it came out.
        text: what the model is shown.
    """

    tool_name: str
    call_id: str | None
    status: ResultStatus
    text: str


@dataclass(frozen=True, slots=True)
class TextFamily:
    """How one family of models is told calls and results.

    Attributes:
        name: of the format.
        write_calls: all calls of one batch as one text.
        write_results: all results of one batch as one text.
        tells_status: whether results say how they came out; else the text of a
            failure has a prefix.
    """

    name: str
    write_calls: Callable[[Sequence[ToldCall]], str]
    write_results: Callable[[Sequence[ToldResult]], str]
    tells_status: bool = False


_CALL, _RESULT = "tool_call", "tool_result"


def _write_calls(calls: Sequence[ToldCall]) -> str:
    return "\n\n".join(
        _tagged(_CALL, {"id": call.call_id, "name": call.tool_name}, call.arguments)
        for call in calls
    )


def _write_results(results: Sequence[ToldResult]) -> str:
    return "\n\n".join(
        _tagged(
            _RESULT,
            {"id": result.call_id, "name": result.tool_name, "status": result.status},
            result.text,
        )
        for result in results
    )


def _tagged(tag: str, attributes: Mapping[str, str | None], text: str) -> str:
    spelled = "".join(
        f' {name}="{escape_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{spelled}>\n{escape_body(text, tag)}\n</{tag}>"


FAMILIES: Mapping[str, TextFamily] = MappingProxyType(
    {"tool_result": TextFamily("tool_result", _write_calls, _write_results, tells_status=True)}
)
"""The families by name."""


def text_family(name: str) -> TextFamily:
    """The family of this name.

    Raises:
        NotFoundError: there is none.
    """
    if name not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise NotFoundError(f"there is no text format {name!r}; there are {known}")
    return FAMILIES[name]
