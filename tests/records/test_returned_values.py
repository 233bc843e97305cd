"""What a handler returns becomes the complete output of its tool."""

import asyncio
import math

from tests.records.failing import CALL, SECRET, Records, awaited, error_of, giving, run
from tests.support.cases import each_case
from tests.support.outputs import returned

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    FamilyOutput,
    GenericOutput,
    StreamRecord,
    ainvoke,
    error_of_refusal,
)

RECORDS = "tooltrail.records"

COMMAND = CommandOutput(
    exit_status=1,
    stdout=StreamRecord.from_bytes("stdout", b""),
    stderr=StreamRecord.from_bytes("stderr", b""),
)


@each_case(
    ("value", "output"),
    [
        ("text", returned("Tool", "text")),
        ("", returned("Tool", "")),
        (b"\xff", returned("Tool", b"\xff")),
        (None, returned("Tool")),
        ({"a": [1.5, None]}, returned("Tool", structured={"a": [1.5, None]})),
        ([], returned("Tool", structured=[])),
        ((1, (2,)), returned("Tool", structured=[1, [2]])),  # as in a list
        (False, returned("Tool", structured=False)),
        (0, returned("Tool", structured=0)),
        (math.nan, returned("Tool", structured=math.nan)),
        (GenericOutput.of("a", "b"), returned("Tool", "a", "b")),
        (COMMAND, CompleteOutput.success("Tool", COMMAND)),
        (returned("Tool", "a", summary="mine"), returned("Tool", "a", summary="mine")),
        (
            error_of_refusal(refused_by="user"),
            CompleteOutput.failure("Tool", error_of_refusal(refused_by="user")),
        ),
    ],
)
def test_what_a_handler_returns_is_its_complete_output(
    value: object, output: CompleteOutput
) -> None:
    assert run(giving(value)) == output
    assert asyncio.run(ainvoke(awaited(giving(value)), CALL, Records())) == output


@each_case(
    ("value", "reason", "kind"),
    [
        (object(), "it is of type object", "object"),
        ({1, 2}, "it is of type set", "set"),
        (CALL, f"it is of type {RECORDS}.tool_calls.ToolCall", f"{RECORDS}.tool_calls.ToolCall"),
        ({"a": b"raw"}, "bytes is not a JSON type", "dict"),
        (
            returned("Another", SECRET),
            "the output of another tool",
            f"{RECORDS}.envelope.CompleteOutput",
        ),
    ],
)
def test_anything_else_that_a_handler_returns_is_a_failure(
    value: object, reason: str, kind: str
) -> None:
    error = error_of(run(giving(value)))
    assert error.kind == "tool_execution_failed"
    assert error.message.startswith(f"the tool returned a value that cannot be recorded: {reason}")
    assert error.details == {"returned": kind}


class WordlessOutput(FamilyOutput):
    def summary(self) -> str:
        raise ValueError("no summary")


def test_a_result_without_a_summary_is_a_failure() -> None:
    assert error_of(run(giving(WordlessOutput()))).kind == "tool_execution_failed"
