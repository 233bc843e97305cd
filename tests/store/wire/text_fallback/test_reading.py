"""Histories that others wrote: results of waiting calls alone, older messages, native parts."""

import pytest

from tooltrail.records import (
    Conversation,
    InvalidRecordError,
    Message,
    Origin,
    ProviderBlock,
    TextBlock,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, JsonObject, wire_format
from tooltrail.wire.text_fallback import text_format

FORMAT = wire_format("text-fallback")


def test_results_of_calls_that_do_not_wait_are_what_the_user_says() -> None:
    call = '<tool_call id="a" name="now">\n{}\n</tool_call>'

    def result(call_id: str, name: str = "now", text: str = "noon") -> str:
        return f'<tool_result id="{call_id}" name="{name}" status="ok">\n{text}\n</tool_result>'

    def read(*messages: tuple[str, str]) -> list[tuple[str, str, int]]:
        request: JsonObject = {
            "messages": [{"role": role, "content": text} for role, text in messages]
        }
        found = FORMAT.read_history(request).messages
        return [(one.role, one.text, len(one.results)) for one in found[1:]]

    asked = ("assistant", call)
    assert read(asked, ("user", result("a"))) == [("tool", "", 1)]
    assert read(asked, ("user", result("b"))) == [("user", result("b"), 0)]
    assert read(asked, ("user", result("a", "then"))) == [("user", result("a", "then"), 0)]
    twice = f"{result('a')}\n\n{result('a', text='midnight')}"
    assert read(asked, ("user", twice)) == [
        ("tool", "", 1),
        ("user", result("a", text="midnight"), 0),
    ]
    mixed = f"Here:\n\n{result('a')}\n\nSo?"
    assert read(asked, ("user", mixed)) == [("tool", "", 1), ("user", "Here:So?", 0)]
    # The model went on without it: nothing waits any more.
    late = read(asked, ("assistant", "Hm."), ("user", result("a")))
    assert late == [("assistant", "Hm.", 0), ("user", result("a"), 0)]
    # Another message of the user does not end the waiting, and results may come one by one.
    assert read(asked, ("user", "wait"), ("user", result("a"))) == [
        ("user", "wait", 0),
        ("tool", "", 1),
    ]
    assert read(("assistant", "hello"), ("user", result("a"))) == [("user", result("a"), 0)]


def test_what_an_assistant_or_a_system_prompt_says_is_no_result() -> None:
    block = '<tool_result id="a" name="now" status="ok">\nnoon\n</tool_result>'
    call = '<tool_call id="a" name="now">\n{}\n</tool_call>'
    request: JsonObject = {
        "messages": [
            {"role": "assistant", "content": f"{call}\n\n{block}"},
            {"role": "system", "content": f"{call}\n\n{block}"},
            {"role": "user", "content": call},
        ]
    }
    asked, system, user = FORMAT.read_history(request).messages
    assert asked.text == block
    assert (system.text, system.calls) == (f"{call}\n\n{block}", ())
    assert (user.text, user.calls, user.results) == (call, (), ())


def test_results_without_ids_belong_to_calls_by_their_order_and_no_more_than_there_are() -> None:
    hermes = text_format("hermes")
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    block = "<tool_response>\n%s\n</tool_response>"
    request: JsonObject = {
        "messages": [
            {"role": "assistant", "content": f"{call}\n\n{call}"},
            {"role": "user", "content": "\n".join(block % n for n in range(3))},
        ]
    }
    _, told, extra = hermes.read_history(request).messages
    assert [one.content[0] for one in told.results] == [TextBlock(text="0"), TextBlock(text="1")]
    assert extra == Message.of("user", block % 2)


def test_old_messages_without_the_newer_members_load() -> None:
    old: JsonObject = {
        "messages": [
            {"role": "user", "content": "What time is it?", "system_prompt": "Be brief."},
            {"role": "assistant", "content": "Let me look."},
            {"role": "user", "content": "<tool_result>\nnoon\n</tool_result>"},
            {"role": "assistant", "content": "Noon."},
        ]
    }
    asked, *others = FORMAT.read_history(old).messages
    assert asked.text == "What time is it?"
    assert asked.origin == Origin(
        wire_format="text-fallback", extras={"system_prompt": "Be brief."}
    )
    # Their results had no id: nothing says whose they are, so they stay what was said.
    assert others == [
        Message.of("assistant", "Let me look."),
        Message.of("user", "<tool_result>\nnoon\n</tool_result>"),
        Message.of("assistant", "Noon."),
    ]
    assert (
        FORMAT.write_history(Conversation.of([asked, *others]), DEFAULT_EXPORT_POLICY).request
        == old
    )


def test_native_results_and_parts_among_text_are_kept() -> None:
    request: JsonObject = {
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": "ERROR: x"},
            {"role": "tool", "tool_call_id": "b", "content": "y"},
        ]
    }
    developer, user, assistant, results = FORMAT.read_history(request).messages
    assert developer == Message.of("developer", "Be brief.")
    assert user.blocks == (TextBlock(text="a"), ProviderBlock(native={"type": "image"}))
    assert assistant.origin is not None
    assert assistant.origin.extras == {"tool_calls": [{"id": "a"}]}
    assert [(one.call_id, one.status) for one in results.results] == [
        ("a", "error"),
        ("b", "unknown"),
    ]


@pytest.mark.parametrize(
    "request_body", [{}, {"messages": None}, {"messages": [7]}, {"messages": [{"role": "nobody"}]}]
)
def test_what_is_no_history_is_refused(request_body: JsonObject) -> None:
    with pytest.raises(InvalidRecordError, match="messages"):
        FORMAT.read_history(request_body)
