"""Results in formats that have no flag for errors."""

from tooltrail.records import ContentBlock, ResultBlock, TextBlock
from tooltrail.wire._writing import ERROR_PREFIX


def result_of_text(
    call_id: str | None, tool_name: str | None, content: tuple[ContentBlock, ...]
) -> ResultBlock:
    """A result whose text alone can say that the call failed.

    The prefix stays in the text, which is what the model saw. Without it nothing is known of how
    the call came out.
    """
    first = content[0] if content else None
    is_error = isinstance(first, TextBlock) and first.text.startswith(ERROR_PREFIX)
    return ResultBlock(
        call_id=call_id,
        tool_name=tool_name,
        status="error" if is_error else "unknown",
        content=content,
    )
