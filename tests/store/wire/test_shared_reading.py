"""A result in a format without a flag for errors tells by its text alone that it failed."""

from tests.support.cases import each_case

from tooltrail.records import ContentBlock, MediaBlock, ResultBlock, TextBlock
from tooltrail.wire._reading import result_of_text


@each_case(
    ("content", "status"),
    [
        ((), "unknown"),
        ((TextBlock(text=""),), "unknown"),
        ((TextBlock(text="18 C"),), "unknown"),
        ((TextBlock(text="ERROR: no such city"),), "error"),
        ((TextBlock(text="ERROR"),), "unknown"),
        ((TextBlock(text="an ERROR: "),), "unknown"),
        ((TextBlock(text="18 C"), TextBlock(text="ERROR: x")), "unknown"),
        ((MediaBlock(kind="image"), TextBlock(text="ERROR: x")), "unknown"),
    ],
)
def test_only_a_text_that_begins_with_the_prefix_is_a_failure(
    content: tuple[ContentBlock, ...], status: str
) -> None:
    result = result_of_text("call_a", "weather", content)
    assert result.status == status
    assert result == ResultBlock(
        call_id="call_a", tool_name="weather", status=result.status, content=content
    )
