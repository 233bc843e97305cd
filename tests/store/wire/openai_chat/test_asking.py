"""What a Chat Completions request asks for besides its messages."""

from typing import Any

import pytest
from tests.support.wire.choices import written_choice
from tests.support.wire.schemas import problems

from tooltrail.records import ToolDefinition
from tooltrail.wire import ToolChoice
from tooltrail.wire.openai_chat import FORMAT

DATE = {"syntax": "regex", "definition": "[0-9]{4}"}


@pytest.mark.parametrize(
    "grammar", [{"type": "grammar", **DATE}, {"type": "grammar", "grammar": DATE}]
)
def test_a_grammar_is_one_level_deeper_however_it_was_spelled(grammar: Any) -> None:
    tool = ToolDefinition(name="date", kind="custom", grammar=grammar)
    export = FORMAT.write_tools([tool])
    expected: dict[str, Any] = {
        "type": "custom",
        "custom": {"name": "date", "format": {"type": "grammar", "grammar": DATE}},
    }
    assert export.request == {"tools": [expected]}
    assert problems("openai.tool", expected) == []
    assert not export.report


@pytest.mark.parametrize("parallel", [False, True])
def test_a_choice_of_none_keeps_whether_calls_may_be_parallel(parallel: bool) -> None:
    choice = ToolChoice("none", parallel=parallel)
    export = written_choice(FORMAT, choice)
    assert export.request == {"tool_choice": "none", "parallel_tool_calls": parallel}
