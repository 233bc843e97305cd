"""Runs of real LangChain tools and of its fake chat models."""

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableParallel
from langchain_core.tools import BaseTool, ToolException, tool
from tests.support.read_back import receipts, recorded, said, states, streams

from tooltrail.adapters.langchain import RecordingHandler
from tooltrail.records import Message
from tooltrail.store import Session, Store, open_store
from tooltrail.transcripts import load_transcript
from tooltrail.transcripts.conversations import conversation_of

PIXEL = "iVBORw0KGgo="


@tool
def text(word: str) -> str:
    """Repeats a word."""
    return f"{word}\n{word}"


@tool
def values() -> dict[str, object]:
    """Returns values."""
    return {"numbers": [1, 2.5]}


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Finds documents."""
    return f"1 hit for {query}", [Document(page_content="all of it", metadata={"page": 7})]


@tool
def picture() -> list[dict[str, object]]:
    """Draws a picture."""
    url = f"data:image/png;base64,{PIXEL}"
    return [{"type": "text", "text": "a dot"}, {"type": "image_url", "image_url": {"url": url}}]


@tool
def refusing() -> str:
    """Fails in the way of LangChain."""
    raise ToolException("no such city")


refusing.handle_tool_error = True


@tool
def breaking() -> str:
    """Raises an exception."""
    raise RuntimeError("broken")


TOOLS: dict[str, BaseTool] = {one.name: one for one in (text, values, search, picture, refusing)}


def call(name: str, call_id: str | None, **arguments: object) -> ToolCall:
    return ToolCall(name=name, args=arguments, id=call_id, type="tool_call")


def converse(
    history: list[BaseMessage], answers: Sequence[BaseMessage], handler: RecordingHandler
) -> list[BaseMessage]:
    """The agent loop: asks the model, and runs its calls, until the model calls no tool."""
    config: RunnableConfig = {"callbacks": [handler]}
    model = FakeMessagesListChatModel(responses=[*answers])
    while True:
        answer = model.invoke(history, config)
        history = [*history, answer]
        if not answer.tool_calls:
            return history
        history += [TOOLS[one["name"]].invoke(one, config) for one in answer.tool_calls]


def test_a_conversation_is_recorded_as_the_tools_returned_it_and_as_the_model_was_shown_it(
    sqlite_store: Store,
) -> None:
    asked = [
        call("text", "a", word="hi"),
        call("values", "b"),
        call("search", "c", query="x"),
        call("picture", "d"),
        call("refusing", "e"),
    ]
    begin = [SystemMessage("Be brief."), HumanMessage("Go.")]
    with sqlite_store.open_session() as session:
        answers = [AIMessage("", tool_calls=asked), AIMessage("Done.")]
        history = converse([*begin], answers, RecordingHandler(session))

    found = recorded(sqlite_store, session)
    shown = {one.tool_call_id: one for one in history if isinstance(one, ToolMessage)}
    assert isinstance(shown["d"].content, list)
    assert receipts(found) == {**{key: one.content for key, one in shown.items()}, "d": "a dot"}
    assert states(found) == dict.fromkeys("abcd", "success") | {"e": "error"}
    assert streams(sqlite_store, found["a"]) == {"content.0": b"hi\nhi"}
    assert streams(sqlite_store, found["b"]) == {"content.0": b'{"numbers": [1, 2.5]}'}
    (document,) = json.loads(streams(sqlite_store, found["c"])["structured"])
    assert document["page_content"] == "all of it"
    assert document["metadata"] == {"page": 7}
    assert streams(sqlite_store, found["d"])["content.1"].startswith(b"\x89PNG")
    assert json.loads(found["e"].canonical_json or "")["error"]["message"] == "no such city"
    assert found["a"].arguments == b'{"word":"hi"}'
    assert said(sqlite_store, session) == [
        ("system", "Be brief."),
        ("user", "Go."),
        ("assistant", ""),
        ("assistant", "Done."),
    ]
    conversation = conversation_of(load_transcript(sqlite_store.reader, str(session.id)))
    assert [one.call_id for one in conversation.messages[2].calls] == [*"abcde"]
    assert [one.call_id for one in conversation.messages[3].results] == [*"abcde"]


def test_results_that_are_hard_to_spell_are_recorded_too(sqlite_store: Store) -> None:
    @tool
    def odd(number: int) -> object:
        """Returns one of some odd results."""
        message = ToolMessage("failed", tool_call_id="c", status="error", artifact={"whole": [1]})
        return ["\ud800 lone", [{"type": "image", "unknown": 1}], message, object()][number]

    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        asked = [call("odd", name, number=number) for number, name in enumerate("abcd")]
        shown = [odd.invoke(one, config) for one in asked]
    found = recorded(sqlite_store, session)
    assert states(found) == {"a": "success", "b": "success", "c": "error", "d": "success"}
    assert streams(sqlite_store, found["a"]) == {"content.0": b"\xed\xa0\x80 lone"}
    assert receipts(found)["a"] == "\\ud800 lone"
    assert json.loads(streams(sqlite_store, found["b"])["content.0"]) == shown[1].content
    assert streams(sqlite_store, found["c"]) == {"structured": b'{"whole":[1]}'}
    assert receipts(found)["c"] == "failed"
    assert receipts(found)["d"] == shown[3].content


def test_an_argument_that_contains_itself_is_recorded_as_langchain_spells_it(
    sqlite_store: Store,
) -> None:
    @tool
    def anything(value: Any) -> str:
        """Takes anything."""
        return "got"

    around: list[Any] = []
    around.append(around)
    with sqlite_store.open_session() as session:
        anything.invoke(
            call("anything", "a", value=around), {"callbacks": [RecordingHandler(session)]}
        )
    (one,) = recorded(sqlite_store, session).values()
    assert receipts({"a": one}) == {"a": "got"}
    assert one.arguments == b"{'value': [[...]]}"


def test_an_image_beside_an_artifact_is_in_the_message(sqlite_store: Store) -> None:
    @tool(response_format="content_and_artifact")
    def chart() -> tuple[list[dict[str, object]], dict[str, object]]:
        """Draws a chart."""
        return picture.func(), {"rows": [1]}  # type: ignore[attr-defined]

    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        asked = AIMessage("", tool_calls=[call("chart", "a")])
        model = FakeMessagesListChatModel(responses=[asked, AIMessage("Done.")])
        history = [HumanMessage("Go."), model.invoke([HumanMessage("Go.")], config)]
        model.invoke([*history, chart.invoke(asked.tool_calls[0], config)], config)
        found = recorded(sqlite_store, session)
    assert receipts(found) == {"a": "a dot"}
    assert streams(sqlite_store, found["a"]) == {"structured": b'{"rows":[1]}'}
    (shown,) = _results(sqlite_store, session)
    assert PIXEL in shown


def _results(store: Store, session: Session) -> list[str]:
    """The documents of the messages that are results."""
    messages = store.reader.conversation(session.id)[1]
    return [(one.document or b"").decode() for one in messages if one.role == "tool"]


def test_what_the_model_is_shown_of_an_exception_is_recorded_for_a_repeated_call_id_too(
    sqlite_store: Store,
) -> None:
    with sqlite_store.open_session() as session:
        handler = RecordingHandler(session)
        config: RunnableConfig = {"callbacks": [handler]}
        again = AIMessage("", tool_calls=[call("breaking", "a")])
        asked = AIMessage("", tool_calls=[call("text", "a", word="hi")])
        history = [*converse([HumanMessage("Go.")], [asked, AIMessage("Done.")], handler), again]
        with pytest.raises(RuntimeError):
            breaking.invoke(again.tool_calls[0], config)
        history.append(ToolMessage("It broke.", tool_call_id="a", status="error"))
        FakeMessagesListChatModel(responses=[AIMessage("Sorry.")]).invoke(history, config)
    (shown,) = _results(sqlite_store, session)
    assert "It broke." in shown


def test_many_conversations_at_once_are_told_apart(sqlite_store: Store) -> None:
    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        histories: list[list[BaseMessage]] = [[HumanMessage(f"{n}?")] for n in range(50)]
        for word in ("More.", "Enough."):
            for history in histories:
                answer = FakeMessagesListChatModel(responses=[AIMessage("Yes.")])
                history += [answer.invoke(history, config), HumanMessage(word)]
    asked = [text for role, text in said(sqlite_store, session) if role == "user"]
    assert asked == [*(f"{number}?" for number in range(50)), *["More."] * 50]


def test_an_answer_that_breaks_off_is_recorded_as_far_as_it_came(sqlite_store: Store) -> None:
    class Breaking(GenericFakeChatModel):
        def _stream(self, *arguments: Any, **named: Any) -> Iterator[ChatGenerationChunk]:
            for number, chunk in enumerate(super()._stream(*arguments, **named)):
                if number == 3:
                    raise RuntimeError("broken")
                yield chunk

    class Refusing(GenericFakeChatModel):
        def _generate(self, *_: Any, **__: Any) -> Any:
            error = RuntimeError("refused")
            error.response = None  # type: ignore[attr-defined]  # as errors of HTTP clients have
            raise error

    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        with pytest.raises(RuntimeError, match="broken"):
            list(Breaking(messages=iter([AIMessage("one two three")])).stream("Count.", config))
        with pytest.raises(RuntimeError, match="refused"):
            Refusing(messages=iter([])).invoke("Go on.", config)
    assert said(sqlite_store, session) == [
        ("user", "Count."),
        ("assistant", "one two"),
        ("user", "Go on."),
    ]
    messages = sqlite_store.reader.conversation(session.id)[1]
    read = [Message.from_json(one.document or b"") for one in messages]
    assert [one.is_complete for one in read] == [True, False, True]


class Odd:
    """An artifact whose comparison raises, as that of an array does."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_copies_are_not_recorded_again_and_messages_changed_in_place_are(
    sqlite_store: Store,
) -> None:
    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        shown = ToolMessage("made", tool_call_id="other", artifact=Odd())
        history: list[BaseMessage] = [HumanMessage("0?"), shown]
        for number in range(1, 4):
            answer = FakeMessagesListChatModel(responses=[AIMessage("Yes.")])
            history.append(answer.invoke([copy(one) for one in history], config))
            history.append(HumanMessage(f"{number}?"))
        history[0].content = "[trimmed]"
        FakeMessagesListChatModel(responses=[AIMessage("Yes.")]).invoke(history, config)
    users = [text for role, text in said(sqlite_store, session) if role == "user"]
    assert users == ["0?", "1?", "2?", "[trimmed]", "1?", "2?", "3?"]


def test_later_turns_add_only_what_is_new(sqlite_store: Store) -> None:
    answers = [AIMessage("Hello."), AIMessage("", tool_calls=[call("text", "a", word="hi")])]
    with sqlite_store.open_session() as session:
        handler = RecordingHandler(session)
        history = converse([HumanMessage("Hi.")], answers[:1], handler)
        foreign = ToolMessage("made by hand", tool_call_id="other")
        history = [SystemMessage("Shout."), *history, foreign, HumanMessage("Hi.")]
        converse(history, [*answers[1:], AIMessage("BYE.")], handler)
    assert said(sqlite_store, session) == [
        ("user", "Hi."),
        ("assistant", "Hello."),
        ("system", "Shout."),
        ("tool", ""),
        ("user", "Hi."),
        ("assistant", ""),
        ("assistant", "BYE."),
    ]


def test_a_streamed_answer_is_recorded_once_and_an_answer_made_by_hand_too(
    sqlite_store: Store,
) -> None:
    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        model = GenericFakeChatModel(messages=iter([AIMessage("one two"), AIMessage("three")]))
        first, *chunks = model.stream("Count.", config)
        history = [HumanMessage("Count."), sum(chunks, first), HumanMessage("?"), AIMessage("yes")]
        model.invoke([*history, HumanMessage("Go on.")], config)
    assert said(sqlite_store, session) == [
        ("user", "Count."),
        ("assistant", "one two"),
        ("user", "?"),
        ("assistant", "yes"),
        ("user", "Go on."),
        ("assistant", "three"),
    ]


def test_a_tool_that_raises_or_is_cancelled_is_a_recorded_failure(sqlite_store: Store) -> None:
    @tool
    async def waiting() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.sleep(3600)
        return "never"

    async def main() -> None:
        task = asyncio.create_task(waiting.ainvoke(call("waiting", "b"), config))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = asyncio.Event()
    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        with pytest.raises(RuntimeError, match="broken"):
            breaking.invoke(call("breaking", "a"), config)
        asyncio.run(main())
        found = recorded(sqlite_store, session)
    assert states(found) == {"a": "error", "b": "cancelled"}
    assert "RuntimeError: broken" in receipts(found)["a"]


def test_calls_in_threads_and_tasks_are_paired_by_their_runs(sqlite_store: Store) -> None:
    async def main() -> list[ToolMessage]:
        return await text.abatch([call("text", "same", word=str(n)) for n in range(20, 40)], config)

    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        shown = text.batch([call("text", "same", word=str(n)) for n in range(20)], config)
        shown += asyncio.run(main())
        both = RunnableParallel(left=RunnableLambda(text.invoke), right=RunnableLambda(text.invoke))
        shown += both.invoke(call("text", "both", word="40"), config).values()
    _, _, found = sqlite_store.reader.conversation(session.id)
    made = [(one.summary.call_id, one.arguments, one.receipt and one.receipt.text) for one in found]
    words = [*range(40), 40, 40]
    assert sorted(made) == sorted(
        (one.tool_call_id, f'{{"word":"{word}"}}'.encode(), one.content)
        for word, one in zip(words, shown, strict=True)
    )


def test_a_tool_that_no_model_called_has_no_call_id_and_its_own_value(sqlite_store: Store) -> None:
    with sqlite_store.open_session() as session:
        config: RunnableConfig = {"callbacks": [RecordingHandler(session)]}
        assert values.invoke({}, config) == {"numbers": [1, 2.5]}
    (one,) = recorded(sqlite_store, session).values()
    assert one.summary.call_id is None
    assert json.loads(streams(sqlite_store, one)["structured"]) == {"numbers": [1, 2.5]}


def test_an_agent_inside_of_a_tool_is_recorded_in_a_child_session(sqlite_store: Store) -> None:
    @tool
    def nested(task: str) -> Any:
        """Asks another agent."""
        inner = [AIMessage("", tool_calls=[call("text", "in", word="hi")]), AIMessage("Read.")]
        return converse([HumanMessage(task)], inner, RecordingHandler(child))[-1].content

    with (
        sqlite_store.open_session() as session,
        sqlite_store.open_session(parent=session.id) as child,
    ):
        nested.invoke(
            call("nested", "out", task="Read."), {"callbacks": [RecordingHandler(session)]}
        )
    assert receipts(recorded(sqlite_store, session)) == {"out": "Read."}
    assert receipts(recorded(sqlite_store, child)) == {"in": "hi\nhi"}
    assert said(sqlite_store, session) == []
    assert said(sqlite_store, child)[0] == ("user", "Read.")


def test_a_spool_that_cannot_be_written_does_not_stop_the_tool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with open_store(tmp_path / "trail.db", spool=tmp_path / "file" / "spool") as store:
        handler = RecordingHandler(store.join_session("any"))
        with caplog.at_level(logging.WARNING):
            shown = text.invoke(call("text", "a", word="hi"), {"callbacks": [handler]})
    assert shown.content == "hi\nhi"
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == [
        "Error in RecordingHandler.on_tool_start callback",
        "Error in RecordingHandler.on_tool_end callback",
    ]


def test_a_call_whose_start_could_not_be_written_has_an_unknown_duration(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()

    @tool
    def repair() -> str:
        """Make the spool writable."""
        blocked.unlink()
        return "done"

    with open_store(tmp_path / "trail.db", spool=blocked / "spool") as store:
        session = store.join_session("any")
        repair.invoke(call("repair", "a"), {"callbacks": [RecordingHandler(session)]})
        (one,) = recorded(store, session).values()
    assert receipts({"a": one}) == {"a": "done"}
    assert one.summary.duration_ms is None
