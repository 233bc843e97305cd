"""Each result finds the call it belongs to, and what is left over is told."""

import pytest
from hypothesis import given
from tests.support.nasty_messages import tangled_conversations

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock, TextBlock, ToolCall
from tooltrail.wire._pairing import Paired, pair
from tooltrail.wire.exports import ExportReport


def asks(*calls: str, keys: tuple[str, ...] = ()) -> Message:
    """Calls spelled `name:id`, each half of which may be missing."""
    blocks: list[CallBlock] = []
    for position, spelled in enumerate(calls):
        name, colon, call_id = spelled.partition(":")
        call = ToolCall(tool_name=name, call_id=call_id if colon else None, position=position)
        blocks.append(CallBlock(call=call, key=keys[position] if keys else None))
    return Message(role="assistant", blocks=tuple(blocks))


def tells(*results: str, keys: tuple[str, ...] = ()) -> Message:
    """Results spelled `name:id=text`; what is missing of name and id is None."""
    blocks: list[ResultBlock] = []
    for position, spelled in enumerate(results):
        named, _, text = spelled.partition("=")
        name, colon, call_id = named.partition(":")
        blocks.append(
            ResultBlock(
                call_id=call_id if colon else None,
                tool_name=name or None,
                content=(TextBlock(text=text),),
                key=keys[position] if keys else None,
            )
        )
    return Message(role="tool", blocks=tuple(blocks))


USER = Message.of("user", "and now?")


def paired_of(*messages: Message) -> tuple[Paired, ExportReport]:
    report = ExportReport()
    return pair(Conversation.of(messages), report), report


def told(paired: Paired) -> list[list[str | None]]:
    """The text that each call got, batch by batch."""
    return [
        [None if one.result is None else _text(one.result) for one in batch.asked]
        for batch in paired.batches.values()
    ]


def _text(result: ResultBlock) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))


@pytest.mark.parametrize(
    ("messages", "expected", "kinds"),
    [
        pytest.param(
            [asks("f:a", "g:b"), tells(":a=1", ":b=2")], [["1", "2"]], [], id="by id"
        ),
        pytest.param(
            [asks("f:a", "g:b"), tells(":b=2", ":a=1")],
            [["1", "2"]],
            ["order_changed"],
            id="in another order",
        ),
        pytest.param([asks("f:a", "f:a"), tells(":a=1", ":a=2")], [["1", "2"]], [], id="one id"),
        pytest.param(
            [asks("f:a"), tells(":a=1"), asks("f:a"), tells(":a=2")],
            [["1"], ["2"]],
            [],
            id="an id again",
        ),
        pytest.param(
            [asks("f:a"), asks("f:a"), tells(":a=2"), tells(":a=1")],
            [["1"], ["2"]],
            ["result_moved"],
            id="the latest batch first",
        ),
        pytest.param([asks("f", "g"), tells("=1", "=2")], [["1", "2"]], [], id="no ids, no names"),
        pytest.param(
            [asks("f", "g", "f"), tells("g=2", "f=1", "f=3")],
            [["1", "2", "3"]],
            ["order_changed"],
            id="by name",
        ),
        pytest.param(
            [asks("f", "g"), tells("g=2", "=1")], [["1", "2"]], ["order_changed"], id="some names"
        ),
        pytest.param([asks("f:", "f:"), tells("=1", ":=2")], [["1", "2"]], [], id="empty ids"),
        pytest.param(
            [asks("f:a", "f"), tells("=2", ":a=1")],
            [["1", "2"]],
            ["order_changed"],
            id="ids of some calls",
        ),
        pytest.param(
            [asks("f:a"), tells(":a=1", ":a=2")], [["2"]], ["result_repeated"], id="the last counts"
        ),
        pytest.param(
            [asks("f:a"), USER, tells(":a=1")], [["1"]], ["result_moved"], id="late"
        ),
        pytest.param([asks("f:a"), tells(), tells(":a=1")], [["1"]], [], id="several messages"),
        pytest.param([asks("f:a", "g:b"), tells(":b=2")], [[None, "2"]], [], id="one is missing"),
        pytest.param([tells(":a=1"), asks("f:a")], [[None]], ["result_orphaned"], id="too early"),
        pytest.param([asks("f:a"), tells(":b=1")], [[None]], ["result_orphaned"], id="another id"),
        pytest.param([asks("f:a"), tells("f=1")], [[None]], ["result_orphaned"], id="id missing"),
        pytest.param([asks("f"), tells("g=1")], [[None]], ["result_orphaned"], id="another tool"),
        pytest.param(
            [asks("f"), tells("f=1", "f=2")], [["1"]], ["result_orphaned"], id="one too many"
        ),
        pytest.param(
            [asks("f:a", "f:a", keys=("1", "2")), tells(":a=two", ":a=one", keys=("2", "1"))],
            [["one", "two"]],
            ["order_changed"],
            id="keys decide",
        ),
        pytest.param(
            [asks("f:a", keys=("1",)), tells(":a=x", keys=("2",))],
            [[None]],
            ["result_orphaned"],
            id="another key",
        ),
    ],
)  # fmt: skip
def test_a_result_belongs_to_the_call_that_it_names(
    messages: list[Message], expected: list[list[str | None]], kinds: list[str]
) -> None:
    paired, report = paired_of(*messages)
    assert told(paired) == expected
    assert [change.kind for change in report] == kinds


def test_a_report_says_where_a_result_stands_and_whose_it_is() -> None:
    paired, report = paired_of(asks("f:a"), USER, tells(":x=0", ":a=1"))
    assert [(one.kind, one.where) for one in report] == [
        ("result_orphaned", "messages[2].results[0]"),
        ("result_moved", "messages[2].results[1]"),
    ]
    assert "messages[0].calls[0]" in report.changes[1].detail
    assert [_text(one) for one in paired.orphans[2]] == ["0"]


@given(tangled_conversations)
def test_no_result_is_lost_and_none_is_told_twice(conversation: Conversation) -> None:
    paired, report = paired_of(*conversation.messages)
    results = [result for message in conversation.messages for result in message.results]
    placed = [
        id(one.result) for batch in paired.batches.values() for one in batch.asked if one.result
    ]
    orphaned = [id(one) for orphans in paired.orphans.values() for one in orphans]
    assert len(set(placed + orphaned)) == len(placed) + len(orphaned)
    replaced = len(report.of_kind("result_repeated"))
    assert len(placed) + len(orphaned) + replaced == len(results)
    assert len(report.of_kind("result_orphaned")) == len(orphaned)


@pytest.mark.parametrize(
    ("calls", "results"),
    [
        (["f:same"] * 20_000, [":same=1"] * 20_000),
        (["f"] * 20_000, ["f=1"] * 20_000),
        (["f"] * 20_000, ["=1"] * 20_000),
        (["f:same"], [":same=1"] * 20_000),
    ],
    ids=["one id", "one name", "nothing", "one call"],
)
def test_many_calls_that_look_alike_take_no_longer_each(
    calls: list[str], results: list[str]
) -> None:
    # Each result looking at all calls before it would take 200 million steps.
    paired, _ = paired_of(asks(*calls), tells(*results))
    assert all(one.result is not None for one in paired.batches[0].asked)


def test_many_batches_with_one_id_take_no_longer_each() -> None:
    asked = [asks("f:same") for _ in range(10_000)]
    paired, report = paired_of(*asked, *(tells(":same=1") for _ in range(20_000)))
    assert all(batch.asked[0].result is not None for batch in paired.batches.values())
    assert len(report.of_kind("result_repeated")) == 10_000
