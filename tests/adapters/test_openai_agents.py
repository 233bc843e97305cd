"""Runs of the real OpenAI Agents SDK, with a model that answers from a script."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    ShellTool,
    Tool,
    ToolOutputImage,
    ToolOutputText,
    TResponseInputItem,
    Usage,
    function_tool,
)
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openai.types.responses.response_function_shell_tool_call import (
    Action,
    ResponseFunctionShellToolCall,
)
from pydantic import BaseModel, Field
from tests.support.read_back import receipts, recorded, said, states, streams

from tooltrail.adapters.openai_agents import RecordingHooks
from tooltrail.records import Message
from tooltrail.store import Store, open_store
from tooltrail.transcripts import load_transcript
from tooltrail.transcripts.conversations import conversation_of

QUIET = RunConfig(tracing_disabled=True)
PIXEL = b"\x89PNG not really"


def call(name: str, call_id: str, **arguments: object) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", name=name, call_id=call_id, arguments=json.dumps(arguments)
    )


def saying(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        type="message", id=f"msg_{text}", role="assistant", status="completed", content=[part]
    )


class Script(Model):
    """A model that gives these answers, and keeps each input that it got."""

    def __init__(self, *answers: Sequence[TResponseOutputItem]) -> None:
        self._answers = iter(answers)
        self.inputs: list[list[Any]] = []

    async def get_response(self, *arguments: Any, **named: Any) -> ModelResponse:
        given = named["input"] if "input" in named else arguments[1]
        self.inputs.append(json.loads(json.dumps(given)))
        return ModelResponse([*next(self._answers)], Usage(), f"resp_{len(self.inputs)}")

    async def stream_response(
        self, *arguments: Any, **named: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        answer = await self.get_response(*arguments, **named)
        response = Response(
            id=answer.response_id or "",
            created_at=0,
            model="script",
            object="response",
            output=answer.output,
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )

    def shown(self) -> dict[str, Any]:
        """The results in the last input, by the ids of their calls."""
        kind = "function_call_output"
        return {i["call_id"]: i["output"] for i in self.inputs[-1] if i.get("type") == kind}


class Weather(BaseModel):
    degrees: float = Field(alias="t")
    sky: str


@dataclass
class Place:
    name: str
    size: int


@function_tool
def text() -> str:
    return "line 1\nline 2"


@function_tool
def values() -> dict[str, object]:
    return {"numbers": [1, 2.5], "none": None}


@function_tool
def weather(city: str) -> Weather:
    return Weather(t=21.5, sky=f"blue over {city}")


@function_tool
def places() -> list[Place]:
    return [Place("Rome", 3)]


@function_tool
def nothing() -> None:
    return None


@function_tool
def picture() -> list[ToolOutputText | ToolOutputImage]:
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    return [ToolOutputText(text="a chart"), ToolOutputImage(image_url=url)]


@function_tool
def failing() -> str:
    raise RuntimeError("no such city")


def test_parallel_calls_are_recorded_as_returned_and_as_the_model_was_shown_them(
    sqlite_store: Store,
) -> None:
    names = {"a": "text", "b": "values", "c": "places", "d": "nothing", "f": "picture"}
    asked = [call(name, call_id) for call_id, name in names.items()]
    model = Script([*asked, call("weather", "e", city="Rome")], [saying("Done.")])
    tools: list[Tool] = [text, values, places, nothing, weather, picture]
    agent = Agent(name="tester", instructions="Be brief.", model=model, tools=tools)
    with sqlite_store.open_session() as session:
        hooks = RecordingHooks(session)
        result = asyncio.run(_run(agent, "Go.", hooks))
    assert result == "Done."

    found = recorded(sqlite_store, session)
    shown = model.shown()
    assert set(shown) == {*names, "e"}
    assert shown.pop("f")[0]["text"] == receipts(found)["f"] == "a chart"
    assert receipts(found) == {**shown, "f": "a chart"}
    assert streams(sqlite_store, found["a"]) == {"content.0": b"line 1\nline 2"}
    assert streams(sqlite_store, found["d"]) == {}
    assert streams(sqlite_store, found["f"]) == {"content.0": b"a chart", "content.1": PIXEL}
    structured = {key: json.loads(streams(sqlite_store, found[key])["structured"]) for key in "bce"}
    assert structured == {
        "b": {"numbers": [1, 2.5], "none": None},
        "c": [{"name": "Rome", "size": 3}],
        "e": {"t": 21.5, "sky": "blue over Rome"},
    }
    assert found["e"].arguments == b'{"city": "Rome"}'
    assert set(states(found).values()) == {"success"}
    messages = sqlite_store.reader.conversation(session.id)[1]
    assert said(sqlite_store, session) == [
        ("system", "Be brief."),
        ("user", "Go."),
        ("assistant", ""),
        ("assistant", "Done."),
    ]
    assert {(one.message_id, one.position) for one in found.values()} == {
        (messages[2].id, position) for position in range(6)
    }


async def _run(agent: Agent[Any], given: Any, hooks: RecordingHooks) -> Any:
    return (await Runner.run(agent, given, hooks=hooks, run_config=QUIET)).final_output


def test_receipts_of_typed_and_of_failing_tools_are_what_the_model_was_shown(
    sqlite_store: Store,
) -> None:
    @function_tool(output_type=Weather)
    def typed(city: str | None) -> Weather:
        if city is None:
            raise RuntimeError("no city")
        return Weather(t=1, sky=city)

    asked = [call("typed", "a", city="Rome"), call("typed", "b", city=None), call("failing", "c")]
    model = Script(asked, [saying("Done.")])
    with sqlite_store.open_session() as session:
        agent = Agent(name="tester", model=model, tools=[typed, failing])
        asyncio.run(_run(agent, "Go.", RecordingHooks(session)))
    found = receipts(recorded(sqlite_store, session))
    assert found == model.shown()
    assert found["a"] == '{"t":1.0,"sky":"Rome"}'
    assert "error" in found["b"]
    assert "error" in found["c"]


def test_calls_without_an_end_are_interrupted_when_the_block_is_left(sqlite_store: Store) -> None:
    started = asyncio.Event()

    @function_tool(failure_error_function=None)
    async def breaking() -> str:
        await started.wait()
        raise RuntimeError("broken")

    @function_tool(failure_error_function=None)
    async def waiting() -> str:
        started.set()
        await asyncio.sleep(3600)
        return "never"

    async def main() -> None:
        async with RecordingHooks(session) as hooks:
            await _run(agent, "Go.", hooks)

    model = Script([call("breaking", "a"), call("waiting", "b")])
    agent = Agent(name="tester", model=model, tools=[breaking, waiting])
    with sqlite_store.open_session() as session:
        with pytest.raises(Exception, match="broken"):
            asyncio.run(main())
        found = recorded(sqlite_store, session)
    assert states(found) == {"a": "interrupted", "b": "interrupted"}
    assert "broken" in receipts(found)["a"]


def test_a_cancelled_run_leaves_an_interrupted_call(sqlite_store: Store) -> None:
    @function_tool
    async def waiting() -> str:
        started.set()
        await asyncio.sleep(3600)
        return "never"

    async def main() -> None:
        async with RecordingHooks(session) as hooks:
            task = asyncio.create_task(_run(agent, "Go.", hooks))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    started = asyncio.Event()
    agent = Agent(name="tester", model=Script([call("waiting", "a")]), tools=[waiting])
    with sqlite_store.open_session() as session:
        asyncio.run(main())
    assert states(recorded(sqlite_store, session)) == {"a": "interrupted"}


def test_an_agent_that_is_a_tool_is_recorded_in_a_child_session(sqlite_store: Store) -> None:
    inner = Script([call("text", "in")], [saying("Two lines.")])
    outer = Script([call("reader", "out", input="Read.")], [saying("Done.")])
    with (
        sqlite_store.open_session() as session,
        sqlite_store.open_session(parent=session.id) as child,
    ):
        nested = Agent(name="reader", model=inner, tools=[text])
        tool = nested.as_tool("reader", "Reads.", hooks=RecordingHooks(child))
        agent = Agent(name="tester", model=outer, tools=[tool])
        asyncio.run(_run(agent, "Go.", RecordingHooks(session)))
    assert receipts(recorded(sqlite_store, session)) == {"out": "Two lines."}
    assert receipts(recorded(sqlite_store, child)) == {"in": "line 1\nline 2"}
    assert said(sqlite_store, child)[0] == ("user", "Read.")
    assert sqlite_store.reader.session(child.id).parent_id == session.id


def test_later_runs_add_what_is_new_and_a_handoff_shows_its_result(sqlite_store: Store) -> None:
    async def main() -> None:
        hooks = RecordingHooks(session)
        result = await Runner.run(first, "Hi.", hooks=hooks, run_config=QUIET)
        again: TResponseInputItem = {"role": "user", "content": "Hi."}
        items = [*result.to_input_list(), again]
        streamed = Runner.run_streamed(second, items, hooks=hooks, run_config=QUIET)
        async for _ in streamed.stream_events():
            pass

    second = Agent(
        name="second",
        instructions="You are second.",
        model=Script([saying("I am second.")], [call("text", "t")], [saying("Bye.")]),
        tools=[text],
    )
    first = Agent(
        name="first",
        instructions="You are first.",
        model=Script([call("transfer_to_second", "h")]),
        handoffs=[second],
    )
    with sqlite_store.open_session() as session:
        asyncio.run(main())
    assert said(sqlite_store, session) == [
        ("system", "You are first."),
        ("user", "Hi."),
        ("assistant", ""),
        ("system", "You are second."),
        ("tool", ""),
        ("assistant", "I am second."),
        ("user", "Hi."),
        ("assistant", ""),
        ("assistant", "Bye."),
    ]
    conversation = conversation_of(load_transcript(sqlite_store.reader, str(session.id)))
    results = {
        one.call_id: "".join(getattr(block, "text", "") for block in one.content)
        for message in conversation.messages
        for one in message.results
    }
    assert results == {"h": '{"assistant": "second"}', "t": "line 1\nline 2"}


def test_members_that_the_sdk_changes_make_no_second_answer(sqlite_store: Store) -> None:
    answer = ResponseOutputMessage.model_validate(
        {**saying("One.").model_dump(), "provider_data": {"model": "m"}, "created_by": "x"}
    )
    agent = Agent(name="a", model=Script([answer], [saying("Two.")]))

    async def main() -> None:
        hooks = RecordingHooks(session)
        result = await Runner.run(agent, "Hi.", hooks=hooks, run_config=QUIET)
        items: list[Any] = [*result.to_input_list(), {"role": "user", "content": "And?"}]
        for item in items:
            item.pop("provider_data", None)
            item.pop("created_by", None)
        await Runner.run(agent, items, hooks=hooks, run_config=QUIET)

    with sqlite_store.open_session() as session:
        asyncio.run(main())
    assert [text for _, text in said(sqlite_store, session)] == ["Hi.", "One.", "And?", "Two."]


def test_items_that_the_caller_adds_to_a_later_run_are_recorded(sqlite_store: Store) -> None:
    agent = Agent(name="a", model=Script([call("text", "t")], [saying("One.")], [saying("Two.")]))
    agent.tools = [text]
    by_hand: list[Any] = [
        {"role": "assistant", "content": "By hand."},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "seen"},
        {"role": "user", "content": "And?"},
    ]

    async def main() -> None:
        hooks = RecordingHooks(session)
        result = await Runner.run(agent, "Hi.", hooks=hooks, run_config=QUIET)
        items = [*result.to_input_list(), *by_hand]
        await Runner.run(agent, items, hooks=hooks, run_config=QUIET)

    with sqlite_store.open_session() as session:
        asyncio.run(main())
    assert [text for role, text in said(sqlite_store, session) if text] == [
        "Hi.",
        "One.",
        "By hand.",
        "And?",
        "Two.",
    ]
    conversation = conversation_of(load_transcript(sqlite_store.reader, str(session.id)))
    asked = [call.tool_name for one in conversation.messages for call in one.calls]
    assert asked == ["text", "look"]


def test_parallel_runs_with_equal_call_ids_record_their_own_arguments(sqlite_store: Store) -> None:
    async def main() -> None:
        hooks = RecordingHooks(session)
        agents = [
            Agent(
                name="tester", model=Script([call("weather", "same", city=city)]), tools=[weather]
            )
            for city in cities
        ]
        for agent in agents:
            agent.tool_use_behavior = "stop_on_first_tool"
        await asyncio.gather(*(_run(agent, "Go.", hooks) for agent in agents))

    cities = ["Rome", "Oslo", "Bonn"]
    with sqlite_store.open_session() as session:
        asyncio.run(main())
    _, messages, calls = sqlite_store.reader.conversation(session.id)
    assert sorted((one.arguments, one.receipt and one.receipt.text) for one in calls) == sorted(
        (json.dumps({"city": city}).encode(), f"degrees=21.5 sky='blue over {city}'")
        for city in cities
    )
    asked = [one for one in messages if one.role == "assistant"]
    asking = {one.id: Message.from_json(one.document or b"").calls[0] for one in asked}
    assert len(asking) == 3
    for one in calls:
        assert one.message_id is not None
        assert asking[one.message_id].arguments_raw.encode() == one.arguments


def test_a_call_id_that_occurs_again_does_not_hide_what_the_model_is_shown(
    sqlite_store: Store,
) -> None:
    async def main() -> None:
        hooks = RecordingHooks(session)
        await _run(first, "Hi.", hooks)
        await _run(second, "Go on.", hooks)

    third = Agent(name="third", model=Script([saying("Bye.")]))
    second = Agent(
        name="second", model=Script([call("transfer_to_third", "call_0")]), handoffs=[third]
    )
    first = Agent(
        name="first", model=Script([call("text", "call_0")], [saying("A.")]), tools=[text]
    )
    with sqlite_store.open_session() as session:
        asyncio.run(main())
    messages = sqlite_store.reader.conversation(session.id)[1]
    (shown,) = [Message.from_json(one.document or b"") for one in messages if one.role == "tool"]
    assert "third" in str(shown.results[0].content)


def test_a_shell_call_has_no_call_id_and_its_result_is_a_message_too(sqlite_store: Store) -> None:
    asked = ResponseFunctionShellToolCall(
        type="shell_call",
        id="sh_1",
        call_id="s",
        status="completed",
        action=Action(commands=["ls"]),
    )
    model = Script([asked], [saying("Done.")])
    shell = ShellTool(executor=lambda _: "file.txt")
    with sqlite_store.open_session() as session:
        agent = Agent(name="tester", model=model, tools=[shell])
        asyncio.run(_run(agent, "Go.", RecordingHooks(session)))
    (one,) = recorded(sqlite_store, session).values()
    assert one.summary.call_id is None
    assert streams(sqlite_store, one) == {"content.0": b"file.txt"}
    (message,) = [
        one for one in sqlite_store.reader.conversation(session.id)[1] if one.role == "tool"
    ]
    (result,) = Message.from_json(message.document or b"").results
    assert result.call_id == "s"
    assert result.structured == model.inputs[-1][-1]["output"]


def test_a_spool_that_cannot_be_written_does_not_stop_the_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    model = Script([call("text", "a")], [saying("Done.")])
    agent = Agent(name="tester", model=model, tools=[text])
    with open_store(tmp_path / "trail.db", spool=tmp_path / "file" / "spool") as store:
        hooks = RecordingHooks(store.join_session("any"))
        with caplog.at_level(logging.ERROR):
            assert asyncio.run(_run(agent, "Go.", hooks)) == "Done."
    assert model.shown() == {"a": "line 1\nline 2"}
    logged = [one.getMessage() for one in caplog.records if one.name == "tooltrail.adapters"]
    assert "the start of a call of text is not recorded" in logged
    assert "a result of text is not recorded" in logged
