"""What an answer gives: its first message, or why there is none."""

import pytest

from tooltrail.records import CallBlock, InvalidRecordError, Message, ToolCall
from tooltrail.wire import ProviderFailure, Response


def test_the_first_message_and_its_calls_are_the_answer() -> None:
    call = ToolCall(tool_name="now")
    first = Message(role="assistant", blocks=(CallBlock(call=call),))
    response = Response((first, Message.of("assistant", "b")))
    assert response.message is first
    assert response.calls == (call,)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (None, "the answer has no message"),
        (ProviderFailure("busy", None, {}), "the answer has no message: busy"),
    ],
)
def test_an_answer_without_a_message_has_no_calls_and_says_why(
    failure: ProviderFailure | None, told: str
) -> None:
    response = Response(failure=failure)
    assert response.calls == ()
    with pytest.raises(InvalidRecordError) as refused:
        assert response.message
    assert str(refused.value) == told
