"""Short ways to write messages, for tests of the input of a Responses request."""

from tests.support.wire.checks import history_problems
from tests.support.wire.schemas import problems

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Export, ExportPolicy, JsonObject
from tooltrail.wire.openai_responses import FORMAT

OWN = Origin(wire_format="openai-responses", provider="openai")
FOREIGN = Origin(wire_format="anthropic")
PNG = MediaBlock(kind="image", media_type="image/png", data="aGk=")
TEXT = TextBlock(text="ok")


def written(*messages: Message, policy: ExportPolicy | None = None) -> Export:
    export = FORMAT.write_history(Conversation.of(messages), policy or ExportPolicy())
    assert history_problems("openai-responses", export.request) == []
    for one in items_of(export):
        assert problems("openai-responses.item", one) == []
    return export


def items_of(export: Export) -> list[JsonObject]:
    items = export.request["input"]
    assert isinstance(items, list)
    return [one for one in items if isinstance(one, dict)]


def kinds(export: Export) -> list[str]:
    return [change.kind for change in export.report]


def asked(*calls: ToolCall, origin: Origin | None = None) -> Message:
    return Message(
        role="assistant", blocks=tuple(CallBlock(call=one) for one in calls), origin=origin
    )


def call(number: int = 1, **members: object) -> ToolCall:
    whole = {"tool_name": "f", "call_id": f"call_{number}", "position": number - 1, **members}
    return ToolCall.model_validate(whole)


def result(*content: ContentBlock, number: int = 1, **members: object) -> ResultBlock:
    whole = {"call_id": f"call_{number}", "content": content, **members}
    return ResultBlock.model_validate(whole)


def answered(*results: ResultBlock) -> Message:
    return Message(role="tool", blocks=results)


def output_of(*content: ContentBlock, **members: object) -> tuple[object, list[str]]:
    one = result(*content).model_copy(update=members)
    export = written(asked(call()), answered(one))
    return items_of(export)[1]["output"], kinds(export)
