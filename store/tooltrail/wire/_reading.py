"""What readers of several formats share: calls cut off, data for one provider, results."""

from typing import TypeVar

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire._writing import ERROR_PREFIX
from tooltrail.wire.media_uris import is_file_name

BlockT = TypeVar("BlockT", bound=MessageBlock)


def cut_off(block: BlockT) -> BlockT:
    """The block, flagged `incomplete` if it is a call."""
    if not isinstance(block, CallBlock) or "incomplete" in block.call.flags:
        return block
    flags = (*block.call.flags, "incomplete")
    call = block.call.model_copy(update={"flags": flags})
    return block.model_copy(update={"call": call})


def cut_message(message: Message) -> Message:
    """The message of the assistant as one that did not come to its end, any other as it is."""
    if message.role != "assistant":
        return message
    blocks = tuple(map(cut_off, message.blocks))
    return message.model_copy(update={"blocks": blocks, "is_complete": False})


def is_for_provider(block: MessageBlock) -> bool:
    """Whether a block says something that its provider alone can be told."""
    if isinstance(block, CallBlock):
        return bool(block.call.extras)
    if isinstance(block, MediaBlock) and is_file_name(block.uri):
        return True
    return isinstance(block, ProviderBlock) or bool(block.extras)


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
