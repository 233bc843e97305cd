"""Streams of OpenAI Responses: every trap, cut at every place, and chunks of any size."""

import json
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tooltrail.records import ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import JsonObject, Response
from tooltrail.wire.openai_responses import FORMAT


def started(**members: object) -> JsonObject:
    read: JsonObject = json.loads(json.dumps({"id": "resp_1", "model": "gpt-5", **members}))
    return read


def event(kind: str, **members: object) -> JsonObject:
    read: JsonObject = json.loads(json.dumps({"type": f"response.{kind}", **members}))
    return read


def call(number: int = 1, **members: object) -> JsonObject:
    read: JsonObject = json.loads(
        json.dumps(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": "f",
                "arguments": f'{{"n":{number}}}',
                "status": "completed",
                **members,
            }
        )
    )
    return read


def added(index: object, item: Mapping[str, object], **members: object) -> JsonObject:
    begun = {**item, "status": "in_progress", **members}
    return event("output_item.added", output_index=index, item=begun)


def done(index: object, item: Mapping[str, object]) -> JsonObject:
    return event("output_item.done", output_index=index, item=item)


def delta(kind: str, index: object, item_id: object, text: str, **members: object) -> JsonObject:
    return event(f"{kind}.delta", output_index=index, item_id=item_id, delta=text, **members)


def arguments(index: object, item_id: object, *pieces: str) -> Iterator[JsonObject]:
    for piece in pieces:
        yield delta("function_call_arguments", index, item_id, piece)


def completed(*items: JsonObject, **members: object) -> JsonObject:
    return event("completed", response=started(status="completed", output=[*items], **members))


CREATED = event("created", response=started(status="in_progress", output=[]))
MESSAGE: JsonObject = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
REASONING: JsonObject = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "early",
}
GOOD = [
    CREATED,
    added(0, REASONING),
    done(0, {**REASONING, "encrypted_content": "final"}),
    added(1, call(1), arguments=""),
    *arguments(1, "fc_1", '{"n"', ":1}"),
    event("function_call_arguments.done", output_index=1, item_id="fc_1", arguments='{"n":1}'),
    done(1, call(1)),
    added(2, {**MESSAGE, "content": []}),
    delta("output_text", 2, "msg_1", "Hel", content_index=0),
    delta("output_text", 2, "msg_1", "lo.", content_index=0),
    done(2, MESSAGE),
    added(3, call(2), arguments=""),
    *arguments(3, "fc_2", '{"n":2}'),
    done(3, call(2)),
    completed({**REASONING, "encrypted_content": "final"}, call(1), MESSAGE, call(2)),
]


def assembled(events: Iterable[JsonObject], *, is_done: bool = False) -> Response:
    assembler = FORMAT.new_assembler()
    for one in events:
        assembler.feed(one)
    return assembler.finish(is_done=is_done)


def test_a_stream_is_the_same_answer_as_one_that_is_not_streamed() -> None:
    whole = started(
        status="completed",
        output=[{**REASONING, "encrypted_content": "final"}, call(1), MESSAGE, call(2)],
    )
    response = assembled(GOOD)
    assert response == FORMAT.read_response(whole)
    assert [one.is_executable for one in response.calls] == [True, True]
    assert response.unread == ()


def test_what_came_of_items_that_were_never_done_is_there() -> None:
    shell: JsonObject = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "call_s",
        "action": {"commands": []},
    }
    patch = {
        "type": "apply_patch_call",
        "id": "apc_1",
        "call_id": "call_p",
        "operation": {"type": "update_file", "path": "a", "diff": ""},
    }
    custom = {"type": "custom_tool_call", "id": "c", "call_id": "call_c", "name": "s", "input": ""}
    response = assembled(
        [
            CREATED,
            added(0, REASONING),
            delta("reasoning_summary_text", 0, "rs_1", "I ", summary_index=0),
            delta("reasoning_summary_text", 0, "rs_1", "think", summary_index=0),
            delta("reasoning_summary_text", 0, "rs_1", "more", summary_index=1),
            added(1, {**MESSAGE, "content": []}),
            delta("output_text", 1, "msg_1", "Hel", content_index=0),
            delta("refusal", 1, "msg_1", "no", content_index=1),
            added(2, call(1), arguments=""),
            *arguments(2, "fc_1", '{"n"', ":1}"),
            added(3, shell),
            # Commands have no id of their item, only its place.
            delta("shell_call_command", 3, None, "ls", command_index=0),
            delta("shell_call_command", 3, None, "pw", command_index=1),
            delta("shell_call_command", 3, None, "d", command_index=1),
            added(4, patch),
            delta("apply_patch_call_operation_diff", 4, "apc_1", "@@"),
            added(5, custom),
            delta("custom_tool_call_input", 5, "c", "SEL"),
            delta("custom_tool_call_input", 5, "c", "ECT"),
            added(6, {"type": "mcp_call", "id": "m", "name": "q", "arguments": ""}),
            delta("mcp_call_arguments", 6, "m", "{}"),
        ]
    )
    blocks = response.message.blocks
    assert isinstance(blocks[0], ReasoningBlock)
    assert blocks[0].text == "I think\n\nmore"
    assert [one.text for one in blocks if isinstance(one, TextBlock)] == ["Hel", "no"]
    assert [one.arguments_raw for one in response.calls] == [
        '{"n":1}',
        '{"commands":["ls","pwd"]}',
        '{"type":"update_file","path":"a","diff":"@@"}',
        "SELECT",
    ]
    assert {one.flags for one in response.calls} == {("incomplete",)}
    assert [one.arguments_raw for one in response.message.provider_calls] == ["{}"]


@pytest.mark.parametrize("items", [(), (call(1), call(2))])
def test_the_end_of_a_stream_has_the_items_that_were_never_done(
    items: tuple[JsonObject, ...],
) -> None:
    begun = [CREATED, added(0, call(1), arguments=""), done(1, call(2))]
    response = assembled([*begun, completed(*items)])
    assert [one.is_executable for one in response.calls] == [bool(items)] * 2
    assert response.unread == (() if items else ("the stream ended before one of its items did",))


def test_items_that_are_all_at_one_place_are_told_by_their_ids() -> None:
    both = [added(0, call(n), arguments="") for n in (1, 2)]
    pieces = [*arguments(0, "fc_2", '{"n":'), *arguments(0, "fc_1", '{"n":1}')]
    ends = [done(0, call(1)), done(0, call(2)), completed()]
    response = assembled([CREATED, *both, *pieces, *ends])
    assert [one.call_id for one in response.calls] == ["call_1", "call_2"]
    assert all(one.is_executable for one in response.calls)
    cut = assembled([CREATED, *both, *pieces])
    assert [one.arguments_raw for one in cut.calls] == ['{"n":1}', '{"n":']


def test_items_that_all_have_one_id_are_told_by_their_places() -> None:
    items = [call(n, id="fake") for n in (1, 2)]
    both = [added(n, item, arguments="") for n, item in enumerate(items)]
    ends = [done(n, item) for n, item in enumerate(items)]
    response = assembled([CREATED, *both, *ends, completed(*items)])
    assert [one.call_id for one in response.calls] == ["call_1", "call_2"]
    assert all(one.is_executable for one in response.calls)


def test_an_item_whose_id_changes_is_told_by_its_place() -> None:
    begun = added(0, call(1), id="fc_x", arguments="")
    pieces = arguments(0, "fc_y", '{"n":1}')
    response = assembled([CREATED, begun, *pieces, done(0, call(1)), completed(call(1, id="z"))])
    assert [one.call_id for one in response.calls] == ["call_1"]
    assert response.calls[0].is_executable


def test_places_that_begin_with_one_give_each_item_once() -> None:
    items = [done(n, call(n)) for n in (1, 2)]
    response = assembled([CREATED, *items, completed(call(1), call(2))])
    assert [one.call_id for one in response.calls] == ["call_1", "call_2"]


def test_items_without_a_place_keep_the_order_they_came_in_and_say_so() -> None:
    begun = [added(None, call(n), id=None, arguments="") for n in (1, 2)]
    pieces = [delta("function_call_arguments", None, None, '{"n"')]
    cut = assembled([begun[0], *pieces])
    assert cut.calls[0].arguments_raw == '{"n"'
    assert cut.calls[0].flags == ("index_missing", "incomplete")
    ends = [done(None, call(n)) for n in (1, 2)]
    response = assembled([CREATED, *ends, completed()])
    assert [one.call_id for one in response.calls] == ["call_1", "call_2"]
    assert {one.flags for one in response.calls} == {("index_missing",)}


def test_an_argument_that_stands_in_the_first_event_is_not_lost() -> None:
    cut = assembled([CREATED, added(0, call(1))])
    assert cut.calls[0].arguments_raw == '{"n":1}'
    assert not cut.calls[0].is_executable


@pytest.mark.parametrize("is_done", [False, True])
def test_done_ends_a_stream_that_says_nothing_else(is_done: bool) -> None:
    response = assembled([CREATED, done(0, call(1))], is_done=is_done)
    assert response.calls[0].is_executable is is_done
    assert response.message.is_complete is is_done
    told = "the stream ended without an event that says so"
    assert response.unread == (() if is_done else (told,))
    open_one = assembled([CREATED, added(0, call(1))], is_done=is_done)
    assert not open_one.calls[0].is_executable


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (
            event("failed", response={"status": "failed", "error": {"code": "x", "message": "oh"}}),
            "x",
            "oh",
        ),
        (
            {"type": "error", "code": "server_error", "message": "oh", "param": None},
            "server_error",
            "oh",
        ),
        ({"type": "error", "error": {"type": "overloaded", "message": "oh"}}, "overloaded", "oh"),
        ({"error": {"code": 500, "message": "oh"}}, "500", "oh"),
    ],
)
def test_an_error_in_the_middle_is_a_failure(failure: JsonObject, kind: str, message: str) -> None:
    response = assembled([CREATED, done(0, call(1)), failure])
    assert response.failure is not None
    assert (response.failure.kind, response.failure.message) == (kind, message)
    assert [one.flags for one in response.calls] == [("incomplete",)]
    assert not response.message.is_complete


def test_the_first_error_counts() -> None:
    response = assembled([{"type": "error", "message": n} for n in ("first", "second")])
    assert response.failure is not None
    assert response.failure.message == "first"


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"x": 1}, "an event has no type"),
        ({"type": "response.output_item.done"}, "an event that ends an item has none"),
        (
            {"type": "response.output_item.added", "item": 1},
            "an event that begins an item has none",
        ),
    ],
)
def test_an_odd_event_is_told(odd: JsonObject, told: str) -> None:
    assert assembled([CREATED, odd, done(0, call(1)), completed()]).unread == (told,)


def test_events_that_belong_to_nothing_change_nothing() -> None:
    strays = [
        delta("function_call_arguments", 7, "fc_9", "x"),
        delta("output_text", None, None, "y"),
        event("function_call_arguments.done", output_index=7, arguments="{}"),
        event("steer.pending"),
        event("completed", response=None),
    ]
    with_strays = [*strays[:3], *GOOD[:-1], *strays[3:], GOOD[-1]]
    # Also behind the end of its own item.
    with_strays.insert(-1, delta("function_call_arguments", 3, "fc_2", "!"))
    assert assembled(with_strays) == assembled(GOOD)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_hosted_item_of_a_stream_is_verbatim(is_cut: bool) -> None:
    item: JsonObject = {"type": "mcp_list_tools", "id": "m", "tools": [], "server_label": "s"}
    begun = event("output_item.added", output_index=0, item=item)
    whole = [] if is_cut else [done(0, item), completed()]
    response = assembled([CREATED, begun, *whole])
    assert response.message.blocks == (ProviderBlock(native=item),)
