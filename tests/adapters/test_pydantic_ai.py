"""Runs of real agents of Pydantic AI, with models that answer offline."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    RunContext,
    TextPart,
    ToolCallPart,
    ToolDenied,
    ToolFailed,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, UnexpectedModelBehavior
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.support.read_back import receipts, recorded, said, states, streams

from tooltrail.adapters.pydantic_ai import RecordingCapability
from tooltrail.store import Session, Store, open_store
from tooltrail.transcripts import export_transcript, load_transcript


class Script:
    """A model that gives the answers of a script, and keeps the results that it is sent."""

    def __init__(self, *answers: str | list[ToolCallPart]) -> None:
        self.shown = dict[str | None, str]()
        self._answers = iter(answers)

    def model(self) -> FunctionModel:
        return FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for part in (part for message in messages for part in message.parts):
            if isinstance(part, ToolReturnPart):
                self.shown[part.tool_call_id] = part.model_response_str()
        answer = next(self._answers)
        return ModelResponse([TextPart(answer)] if isinstance(answer, str) else answer)


def call(name: str, call_id: str, args: str | dict[str, Any] | None = None) -> ToolCallPart:
    return ToolCallPart(name, args, call_id)


@pytest.fixture
def session(sqlite_store: Store) -> Iterator[Session]:
    with sqlite_store.open_session(title="run") as opened:
        yield opened


def agent_of(script: Script, session: Session, **options: Any) -> Agent[None, Any]:
    return Agent(script.model(), capabilities=[RecordingCapability(session)], **options)


class Place(BaseModel):
    """What a tool returns."""

    city: str
    heights: list[float]


def test_the_model_saw_each_receipt_and_the_output_is_what_the_tool_returned(
    sqlite_store: Store, session: Session
) -> None:
    names = ("text", "place", "files", "beside", "nothing")
    script = Script([call(name, f"call_{name}") for name in names], "done")
    agent = agent_of(script, session)
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    values: dict[str, Any] = {
        "text": "one\r\ntwo",
        "place": Place(city="Ulm", heights=[1.5]),
        "files": ["a picture", picture],
        "beside": ToolReturn("short", content=["long", picture], metadata={"rows": 7}),
        "nothing": None,
    }
    for name in names:
        agent.tool_plain(name=name)(_returning(values[name]))
    assert run(agent, "go").output == "done"

    calls = recorded(sqlite_store, session)
    assert set(states(calls).values()) == {"success"}
    assert receipts(calls) == script.shown
    assert script.shown["call_place"] == '{"city":"Ulm","heights":[1.5]}'
    output = {name: streams(sqlite_store, calls[f"call_{name}"]) for name in names}
    assert output["text"] == {"content.0": b"one\r\ntwo"}
    assert json.loads(output["place"]["structured"]) == {"city": "Ulm", "heights": [1.5]}
    assert output["nothing"] == {}
    base64 = "iVBORw=="
    caption, file = json.loads(output["files"]["structured"])
    assert (caption, file["data"], file["media_type"]) == ("a picture", base64, "image/png")
    returned = json.loads(output["beside"]["structured"])
    assert (returned["return_value"], returned["metadata"]) == ("short", {"rows": 7})
    assert (returned["content"][0], returned["content"][1]["data"]) == ("long", base64)


def run(agent: Agent[None, Any], prompt: str | list[Any] | None, **options: Any) -> Any:
    return asyncio.run(agent.run(prompt, **options))


def _returning(value: object) -> Callable[[], Any]:
    def tool() -> Any:
        return value

    return tool


def _raising(error: Exception) -> Callable[[], Any]:
    def tool() -> Any:
        raise error

    return tool


def _number(n: int) -> int:
    """A tool that returns its argument, and checks more than its schema says."""
    Place.model_validate({"city": "Ulm", "heights": ["high" if n == 0 else n]})
    return n


def test_failures_are_recorded_with_the_text_that_the_model_was_sent(
    sqlite_store: Store, session: Session
) -> None:
    asked = [
        call("again", "again"),
        call("failed", "failed"),
        call("unknown", "unknown"),
        call("number", "bad arguments", '{"n": "x"}'),
        call("number", "bad value", {"n": 0}),
        call("number", "good", ' {"n":7 }'),
    ]
    script = Script(asked, "done")
    agent = agent_of(script, session)
    agent.tool_plain(name="again")(_raising(ModelRetry("not like that")))
    agent.tool_plain(name="failed")(_raising(ToolFailed("no such file")))
    agent.tool_plain(name="number")(_number)
    run(agent, "go")

    calls = recorded(sqlite_store, session)
    assert receipts(calls) == script.shown
    assert script.shown["again"] == '{"error":"not like that"}'
    assert {one: calls[one].summary.error_kind for one in calls} == {
        "again": "tool_execution_failed",
        "failed": "tool_execution_failed",
        "unknown": "unknown_tool",
        "bad arguments": "invalid_tool_input",
        "bad value": "invalid_tool_input",
        "good": None,
    }
    assert calls["bad arguments"].arguments == b'{"n": "x"}'
    assert calls["good"].arguments == b' {"n":7 }'
    answer = sqlite_store.reader.conversation(session.id)[1][1]
    links = {
        (calls[one.tool_call_id].message_id, calls[one.tool_call_id].position) for one in asked
    }
    assert links == {(answer.id, position) for position in range(len(asked))}


def test_a_run_that_fails_leaves_no_call_open(sqlite_store: Store, session: Session) -> None:
    script = Script(
        [call("wait", "sibling"), call("broken", "broken")],
        [call("number", "0", {"n": 0})],
        [call("number", "1", {"n": 0})],
    )
    agent = agent_of(script, session)

    async def wait() -> None:
        await asyncio.sleep(600)

    agent.tool_plain(wait)
    agent.tool_plain(name="broken")(_raising(ZeroDivisionError("a / 0")))
    agent.tool_plain(name="number")(_number)
    with pytest.raises(ZeroDivisionError):
        run(agent, "go")
    with pytest.raises(UnexpectedModelBehavior):
        run(agent, "go")  # the second bad value is one too many

    calls = recorded(sqlite_store, session)
    assert states(calls) == {"sibling": "cancelled", "broken": "error", "0": "error", "1": "error"}
    assert "ZeroDivisionError: a / 0" in receipts(calls)["broken"]
    assert "exceeded max retries" in receipts(calls)["1"]


def test_a_task_that_is_cancelled_ends_its_calls_as_cancelled(
    sqlite_store: Store, session: Session
) -> None:
    agent = agent_of(Script([call("wait", "1")]), session)

    async def run() -> None:
        running = asyncio.Event()

        async def wait() -> None:
            running.set()
            await asyncio.sleep(600)

        agent.tool_plain(wait)
        task = asyncio.ensure_future(agent.run("go"))
        await running.wait()
        assert states(recorded(sqlite_store, session)) == {"1": "started"}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert states(recorded(sqlite_store, session)) == {"1": "cancelled"}


def _guarded(ctx: RunContext[None]) -> str:
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    return "did it"


@pytest.mark.parametrize("is_same_process", [True, False])
def test_a_deferred_call_ends_with_what_was_decided(
    sqlite_store: Store, session: Session, is_same_process: bool
) -> None:
    names = ("approved", "denied", "external", "declared")
    script = Script([call(name, name) for name in names], "done")

    def new_agent() -> Agent[None, Any]:
        agent = agent_of(script, session, output_type=[str, DeferredToolRequests])
        agent.tool(name="approved")(_guarded)
        agent.tool(name="denied")(_guarded)
        agent.tool_plain(name="external")(_raising(CallDeferred()))
        agent.tool_plain(name="declared", requires_approval=True)(_returning("never"))
        return agent

    agent = new_agent()
    first = run(agent, "go")
    waiting = {"approved": "started", "denied": "started", "external": "started"}
    assert states(recorded(sqlite_store, session)) == waiting
    decided = DeferredToolResults(
        approvals={"approved": True, "denied": ToolDenied("not today"), "declared": False},
        calls={"external": "42"},
    )
    second = agent if is_same_process else new_agent()
    history = first.all_messages()
    result = run(second, None, message_history=history, deferred_tool_results=decided)
    assert result.output == "done"

    calls = sqlite_store.reader.conversation(session.id)[2]
    ended = {one.summary.call_id: one for one in calls if one.summary.state != "started"}
    assert {call_id: one.summary.state for call_id, one in ended.items()} == {
        "approved": "success",
        "denied": "denied",
        "external": "success",
        "declared": "denied",
    }
    assert receipts(ended) == script.shown
    assert script.shown["denied"] == "not today"
    external = sqlite_store.reader.invocation(ended["external"].summary.id)
    assert streams(sqlite_store, external) == {"content.0": b"42"}
    left = [one for one in calls if one.summary.state == "started"]
    assert len(left) == (0 if is_same_process else 3)  # until the first process ends


def test_parallel_runs_with_the_same_call_ids_keep_their_calls_apart(
    sqlite_store: Store, session: Session
) -> None:
    capability = RecordingCapability(session)
    all_run = asyncio.Barrier(3)

    async def echo(text: str) -> str:
        await all_run.wait()
        return text

    async def one_run(number: int) -> None:
        steps = [[call("echo", "same", {"text": f"{number}.{step}"})] for step in range(2)]
        agent = Agent(Script(*steps, "done").model(), capabilities=[capability])
        agent.tool_plain(echo)
        await agent.run("go")

    async def runs() -> None:
        await asyncio.gather(*map(one_run, range(3)))

    asyncio.run(runs())
    calls = sqlite_store.reader.conversation(session.id)[2]
    shown = [one.receipt.text for one in calls if one.receipt]
    assert sorted(shown) == [f"{number}.{step}" for number in range(3) for step in range(2)]
    assert [json.loads(one.arguments)["text"] for one in calls] == shown


def test_an_agent_inside_a_tool_records_in_a_child_session(
    sqlite_store: Store, session: Session
) -> None:
    inner, outer = Script([call("text", "1")], "inner"), Script([call("ask", "1")], "outer")
    agent = agent_of(outer, session)

    async def ask() -> str:
        async with await Session.aopen(session.recorder, parent=session.id) as child:
            helper = agent_of(inner, child)
            helper.tool_plain(name="text")(_returning("found"))
            return str((await helper.run("help")).output)

    agent.tool_plain(ask)
    run(agent, "go")
    child, parent = sqlite_store.reader.sessions()
    assert (child.parent_id, parent.id) == (session.id, session.id)
    (asked,) = sqlite_store.reader.conversation(child.id)[2]
    assert asked.receipt is not None
    assert asked.receipt.text == "found"
    assert receipts(recorded(sqlite_store, session)) == outer.shown == {"1": "inner"}


def test_a_conversation_of_several_runs_reads_as_a_transcript(
    sqlite_store: Store, session: Session
) -> None:
    script = Script([call("text", "1")], "A word.", "Bye.")
    agent = agent_of(script, session, system_prompt="Be brief.", instructions="Use tools.")
    agent.tool_plain(name="text")(_returning("word"))
    first = run(agent, "Say a word.")
    picture = BinaryContent(b"x", media_type="image/png")
    run(agent, ["And?", picture], message_history=first.all_messages())
    assert said(sqlite_store, session) == [
        ("system", "Use tools."),
        ("system", "Be brief."),
        ("user", "Say a word."),
        ("assistant", ""),
        ("assistant", "A word."),
        ("system", "Use tools."),
        ("user", "And?"),
        ("assistant", "Bye."),
    ]
    transcript = load_transcript(sqlite_store.reader, str(session.id))
    exported: Any = export_transcript(transcript, "openai").request
    told = [(one["role"], one.get("content")) for one in exported["messages"]]
    assert told[3:6] == [("assistant", None), ("tool", "word"), ("assistant", "A word.")]


def test_a_streamed_run_is_recorded_like_any_other(sqlite_store: Store, session: Session) -> None:
    agent = Agent(TestModel(), capabilities=[RecordingCapability(session)])
    agent.tool_plain(name="count")(_returning({"n": 1}))

    async def stream() -> str:
        async with agent.run_stream("go") as result:
            return str(await result.get_output())

    assert asyncio.run(stream()) == '{"count":{"n":1}}'
    (one,) = recorded(sqlite_store, session).values()
    assert one.receipt is not None
    assert one.receipt.text == '{"n":1}'
    assert [role for role, _ in said(sqlite_store, session)] == ["user", "assistant", "assistant"]


def test_an_agent_goes_on_if_nothing_can_be_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script([call("text", "1")], "done")
    with open_store(tmp_path / "trail.db") as store:
        session = store.open_session()
        agent = agent_of(script, session)
        agent.tool_plain(name="text")(_returning("word"))
        (tmp_path / "trail.db-spool").rename(tmp_path / "moved")
        (tmp_path / "trail.db-spool").write_text("a file where the folder should be")
        assert run(agent, "go").output == "done"
        assert script.shown == {"1": "word"}
        (tmp_path / "trail.db-spool").unlink()
        (tmp_path / "moved").rename(tmp_path / "trail.db-spool")
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
