"""An export as text without a word in its report is exact, as far as a text can say it.

A text of several blocks comes back as one, which the report says; what no report names is in
`test_exact_exports` of all formats.
"""

from dataclasses import replace

from hypothesis import given
from tests.store.wire.test_exact_exports import NORMAL
from tests.support.slightly_odd import slightly_odd

from tooltrail.records import Conversation, Message, TextBlock
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format

# The attribute `status` says how a call came out.
TOLD = replace(NORMAL["openai"], has_flag=True)


@given(slightly_odd("text-fallback"))
def test_what_the_report_does_not_name_comes_back(conversation: Conversation) -> None:
    known = wire_format("text-fallback")
    export = known.write_history(conversation, DEFAULT_EXPORT_POLICY)
    if not export.report:
        again = known.read_history(export.request)
        assert TOLD.of(again) == TOLD.of(conversation)


def test_that_two_texts_are_one_is_told() -> None:
    blocks = (TextBlock(text="a"), TextBlock(text="b"))
    messages = [Message(role="user", blocks=blocks), Message(role="assistant", blocks=blocks)]
    export = wire_format("text-fallback").write_history(
        Conversation.of(messages), DEFAULT_EXPORT_POLICY
    )
    assert export.request["messages"] == [
        {"role": "user", "content": "a\nb"},
        {"role": "assistant", "content": "a\nb"},
    ]
    assert [(one.kind, one.where) for one in export.report] == [
        ("messages_merged", "messages[0]"),
        ("messages_merged", "messages[1]"),
    ]
