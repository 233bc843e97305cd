"""The calls of an agent: side by side, one by one, hanging, raising, cancelled."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents.scenarios import GOOD, example, run_scripted
from tests.support.agents.scripted_provider import Delivery, Step, scripted_provider
from tests.support.agents.spelled_answers import Call, asks
from tests.support.evidence import check_evidence
from tests.support.read_back import streams
from tests.support.waiting import until

from tooltrail.agents import (
    AgentConfig,
    AgentTool,
    AnswerCame,
    ChunkCame,
    HttpModel,
    RunEvent,
    Tier,
    run_agent,
)
from tooltrail.journal.recorder import Recorder
from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    ToolDefinition,
)
from tooltrail.store import Finished, Invocation, Store, create_store, iter_legs
from tooltrail.workspace import workspace_tools
from tooltrail.workspace.commands import MAX_KEPT

SUBMITS = asks(Call("submit_result", GOOD["reviewer"], "call_s"))


def tool(
    name: str, handler: Callable[[dict[str, Any]], object], *, has_side_effects: bool = False
) -> AgentTool:
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    definition = ToolDefinition(name=name, parameters=parameters)
    return AgentTool(definition, handler, has_side_effects=has_side_effects)


def using(tools: Mapping[str, AgentTool], **limits: int) -> AgentConfig:
    return example("reviewer", **limits).model_copy(update={"tools": tuple(tools)})


def states(store: Store) -> list[tuple[str, str, str | None]]:
    page = store.reader.invocations(oldest_first=True)
    return [(one.tool_name, one.state, one.error_kind) for one in page.items]


def test_calls_that_only_read_run_side_by_side(store: Store, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)
    tools = {name: tool(name, lambda _: both.wait() >= 0) for name in ("one", "two")}
    script = [asks(Call("one", {}, "c1"), Call("two", {}, "c2")), SUBMITS]
    ran = run_scripted(store, using(tools), "openai", script, root=tmp_path, tools=tools)
    assert ran.run.outcome == "submitted"
    assert [state for _, state, _ in states(store)] == ["success"] * 3


def test_a_call_with_side_effects_runs_alone_and_in_its_place(store: Store, tmp_path: Path) -> None:
    order: list[str] = []
    running: list[str] = []

    def handler(name: str, *, alone: bool) -> Callable[[dict[str, Any]], object]:
        async def handle(_: dict[str, Any]) -> str:
            assert not (alone and running)
            assert "write" not in running
            running.append(name)
            await asyncio.sleep(0.02)
            running.remove(name)
            order.append(name)
            return name

        return handle

    tools = {
        "read": tool("read", handler("read", alone=False)),
        "write": tool("write", handler("write", alone=True), has_side_effects=True),
    }
    names = ["read", "read", "write", "write", "read"]
    script = [asks(*(Call(name, {}, f"c{n}") for n, name in enumerate(names))), SUBMITS]
    ran = run_scripted(store, using(tools), "anthropic", script, root=tmp_path, tools=tools)
    assert ran.run.outcome == "submitted"
    assert order == names
    assert [name for name, _, _ in states(store)] == [*names, "submit_result"]


def test_a_tool_that_raises_or_hangs_never_ends_the_run(store: Store, tmp_path: Path) -> None:
    never = threading.Event()

    def raises(_: dict[str, Any]) -> object:
        raise ZeroDivisionError("by nothing")

    def exits(_: dict[str, Any]) -> object:
        raise SystemExit(3)

    def stops(_: dict[str, Any]) -> object:
        raise StopIteration("no more")

    async def waits(_: dict[str, Any]) -> object:
        await asyncio.sleep(60)
        return None

    tools = {
        "raises": tool("raises", raises),
        "exits": tool("exits", exits),
        "stops": tool("stops", stops),
        "hangs": tool("hangs", lambda _: never.wait(30)),
        "waits": tool("waits", waits),
        "odd": tool("odd", lambda _: object()),
    }
    script = [asks(*(Call(name, {}, f"c_{name}") for name in tools)), SUBMITS]
    config = using(tools, tool_timeout_ms=300)
    try:
        ran = run_scripted(store, config, "openai", script, root=tmp_path, tools=tools)
    finally:
        never.set()
    assert ran.run.outcome == "submitted"
    kinds = {name: (state, kind) for name, state, kind in states(store)}
    assert kinds["hangs"] == kinds["waits"] == ("error", "tool_timed_out")
    assert {kinds[name][0] for name in ("raises", "exits", "stops", "odd")} == {"error"}


def test_a_batch_with_a_call_without_an_id_is_told_as_text_and_no_other(
    store: Store, tmp_path: Path
) -> None:
    tools = {"one": tool("one", lambda _: "done")}
    script = [
        asks(Call("one", {}, "c1")),
        asks(Call("one", {}, ""), Call("one", {}, "c3")),
        SUBMITS,
    ]
    ran = run_scripted(store, using(tools), "openai", script, root=tmp_path, tools=tools)
    assert ran.run.outcome == "submitted"
    assert ran.provider.refused == []
    _, _, native, told, text, answer = ran.bodies[2]["messages"]
    assert [call["id"] for call in native["tool_calls"]] == ["c1"]
    assert (told["role"], told["tool_call_id"]) == ("tool", "c1")
    assert "tool_calls" not in text
    assert answer["role"] == "user"
    assert answer["content"].count("<tool_result") == 2


def test_an_error_of_any_length_is_a_bounded_reason(store: Store, tmp_path: Path) -> None:
    def observe(event: RunEvent) -> None:
        raise ValueError("x" * 50_000)

    async def run() -> None:
        model = HttpModel.of("openai", "m", base_url="http://127.0.0.1:1/v1")
        await run_agent(using({}), "Do it.", model, {}, store, observer=observe)

    with pytest.raises(ValueError, match="xxx"):
        asyncio.run(run())
    [leg] = iter_legs(store.reader)
    assert leg.ended is not None
    assert leg.ended.outcome == "failed"
    assert leg.ended.reason.endswith("… (50,012 characters)")
    assert len(leg.ended.reason) < 2_100


def run_and_cancel(
    store: Store,
    config: AgentConfig,
    tools: Mapping[str, AgentTool],
    script: list[Step],
    moment: threading.Event,
    *,
    observer: Callable[[RunEvent], None] | None = None,
) -> None:
    """Run an agent, and cancel the run at this moment."""

    async def cancelled() -> None:
        with scripted_provider(script) as provider:

            def model(tier: Tier) -> HttpModel:
                return HttpModel.of("openai", tier.model, base_url=f"{provider.url}/v1")

            task = asyncio.ensure_future(
                run_agent(config, "Do it.", model, tools, store, observer=observer)
            )
            assert await asyncio.to_thread(moment.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Before the server is stopped: nothing of the run is left behind.
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancelled())


def test_a_run_that_is_cancelled_amid_its_calls_ends_them_all(store: Store, tmp_path: Path) -> None:
    began = threading.Event()

    async def waits(_: dict[str, Any]) -> object:
        began.set()
        await asyncio.sleep(60)
        return None

    tools = {
        "waits": tool("waits", waits),
        "writes": tool("writes", lambda _: None, has_side_effects=True),
    }
    config = using(tools).model_copy(
        update={"tiers": (Tier(name="a", model="m"), Tier(name="b", model="m"))}
    )
    script: list[Step] = [asks(Call("waits", {}, "c1"), Call("writes", {}, "c2"))]
    run_and_cancel(store, config, tools, script, began)
    assert states(store) == [
        ("waits", "cancelled", "cancelled"),
        ("writes", "cancelled", "cancelled"),
    ]
    # Nobody wanted the run any more, so no other tier is tried.
    [leg] = iter_legs(store.reader)
    assert leg.ended is not None
    assert (leg.ended.outcome, leg.ended.escalated_to) == ("cancelled", None)
    assert store.reader.session(leg.session_id).closed_at is not None


PRINTS_AND_WAITS = asks(
    Call("shell_run", {"command": "echo said; echo wrong >&2; touch printed; sleep 60"}, "c1")
)


def check_output_so_far(store: Store) -> None:
    one, *_ = store.reader.invocations(oldest_first=True).items
    call = store.reader.invocation(one.id)
    assert streams(store, call) == {"stdout": b"said\n", "stderr": b"wrong\n"}
    assert call.receipt is not None
    assert "said" in call.receipt.text
    check_evidence(store)


def test_a_command_that_the_limit_of_tools_stops_keeps_its_output(
    store: Store, tmp_path: Path
) -> None:
    tools = workspace_tools(tmp_path, allow_commands=True)
    config = using(tools, tool_timeout_ms=5_000)
    run_scripted(store, config, "openai", [PRINTS_AND_WAITS, SUBMITS], root=tmp_path, tools=tools)
    assert states(store)[0] == ("shell_run", "error", "tool_timed_out")
    check_output_so_far(store)


def test_a_command_of_a_cancelled_run_keeps_its_output(store: Store, tmp_path: Path) -> None:
    tools, printed = workspace_tools(tmp_path, allow_commands=True), threading.Event()

    def wait() -> None:
        until((tmp_path / "printed").exists)
        printed.set()

    threading.Thread(target=wait).start()
    run_and_cancel(store, using(tools), tools, [PRINTS_AND_WAITS], printed)
    assert states(store) == [("shell_run", "cancelled", "cancelled")]
    check_output_so_far(store)


def test_a_tool_may_run_several_commands(store: Store, tmp_path: Path) -> None:
    shell = workspace_tools(tmp_path, allow_commands=True)["shell:run"]

    async def run_two(_: dict[str, Any]) -> object:
        ended = [await shell.handler({"command": f"echo {n}"}) for n in ("one", "two")]  # type: ignore[misc]
        return " ".join(one.stdout.content.decode().strip() for one in ended)

    tools = {"both": tool("both", run_two)}
    asked = [asks(Call("both", {}, "c1")), SUBMITS]
    run_scripted(store, using(tools), "openai", asked, root=tmp_path, tools=tools)
    assert states(store)[0] == ("both", "success", None)
    one, *_ = store.reader.invocations(oldest_first=True).items
    assert [*streams(store, store.reader.invocation(one.id)).values()] == [b"one two"]


def test_a_long_output_of_a_command_is_recorded_completely(store: Store, tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path, allow_commands=True)
    size = MAX_KEPT + 12_345
    prints = asks(Call("shell_run", {"command": f"yes | head -c {size}"}, "c1"))
    run_scripted(store, using(tools), "openai", [prints, SUBMITS], root=tmp_path, tools=tools)
    one, *_ = store.reader.invocations(oldest_first=True).items
    [stdout] = [s for s in store.reader.invocation(one.id).streams if s.role == "stdout"]
    assert (stdout.size, stdout.produced_size) == (size, size)
    check_evidence(store)


def test_a_run_that_is_cancelled_amid_an_answer_leaves_what_had_come(
    store: Store, tmp_path: Path
) -> None:
    script: list[Step] = [Delivery(asks(Call("submit_result", GOOD["reviewer"])), "hangs")]
    events: list[RunEvent] = []
    came = threading.Event()

    def observe(event: RunEvent) -> None:
        events.append(event)
        if isinstance(event, ChunkCame):
            came.set()

    run_and_cancel(store, using({}), {}, script, came, observer=observe)
    assert isinstance(events[0], LegStarted)
    [leg] = iter_legs(store.reader)
    assert leg.ended is not None
    assert leg.ended.outcome == "cancelled"
    _, messages, _ = store.reader.conversation(leg.session_id, payloads=True)
    [answer] = [message for message in messages if message.role == "assistant"]
    assert answer.payload
    assert states(store) == []


def test_what_is_recorded_as_accepted_counts_though_the_time_was_over_meanwhile(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Invocation.afinish

    async def slow(invocation: Invocation, output: CompleteOutput) -> Finished:
        finished = await finish(invocation, output)
        await asyncio.sleep(6.5)
        return finished

    monkeypatch.setattr(Invocation, "afinish", slow)
    config = using({}, max_time_ms=6_000)
    ran = run_scripted(store, config, "openai", [SUBMITS], root=tmp_path, tools={})
    assert (ran.run.outcome, ran.run.result) == ("submitted", GOOD["reviewer"])


def test_all_calls_are_ended_whatever_the_observer_raises(store: Store, tmp_path: Path) -> None:
    tools = {name: tool(name, lambda _: "x", has_side_effects=True) for name in "abc"}

    def observe(event: RunEvent) -> None:
        if isinstance(event, Finished):
            raise KeyError(event.call.tool_name)

    script = [asks(*(Call(name, {}, f"c_{name}") for name in tools))]
    config = using(tools)
    with pytest.raises(KeyError):
        run_scripted(store, config, "openai", script, root=tmp_path, tools=tools, observer=observe)
    assert [(name, state) for name, state, _ in states(store)] == [
        ("a", "success"),
        ("b", "cancelled"),
        ("c", "cancelled"),
    ]


def test_a_run_that_is_cancelled_while_its_session_opens_leaves_none_open(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Recorder.append_async

    async def slow(recorder: Recorder, make: Any) -> Any:
        level = await append(recorder, make)
        await asyncio.sleep(0.5)
        return level

    monkeypatch.setattr(Recorder, "append_async", slow)

    async def run() -> None:
        model = HttpModel.of("openai", "m", base_url="http://127.0.0.1:1/v1")
        task = asyncio.ensure_future(run_agent(using({}), "Do it.", model, {}, store))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    [session] = store.reader.sessions()
    assert session.closed_at is not None


def test_a_tier_that_no_model_can_be_made_of_is_refused_before_anything_is_recorded(
    store: Store,
) -> None:
    config = using({}).model_copy(
        update={"tiers": (Tier(name="a", model="m"), Tier(name="b", model="m"))}
    )

    def model(tier: Tier) -> HttpModel:
        named = "NO_SUCH_KEY" if tier.name == "b" else None
        return HttpModel.of("openai", tier.model, api_key_env=named)

    with pytest.raises(InvalidRecordError, match="NO_SUCH_KEY"):
        asyncio.run(run_agent(config, "Do it.", model, {}, store))
    assert store.reader.sessions() == []


def test_a_store_that_goes_away_amid_a_run_is_nothing_that_the_run_notices(tmp_path: Path) -> None:
    database = tmp_path / "trail.db"
    with create_store(database, spool=tmp_path / "spool") as store:

        def take_away(_: dict[str, Any]) -> str:
            store.database.close()
            database.rename(tmp_path / "hidden")
            return "gone"

        tools = {"one": tool("one", take_away, has_side_effects=True)}
        wrong = asks(Call("submit_result", {"summary": "x"}, "c2"))
        script = [asks(Call("one", {}, "c1")), wrong, SUBMITS]
        ran = run_scripted(store, using(tools), "openai", script, root=tmp_path, tools=tools)
        assert ran.run.outcome == "submitted"
        store.database.close()
        (tmp_path / "hidden").rename(database)
        [leg] = iter_legs(store.reader)
        assert leg.ended == ran.run.legs[0].ended
        assert [(one.attempt, one.valid) for one in leg.attempts] == [(1, False), (2, True)]
        check_evidence(store)


def test_what_is_told_of_a_run_is_recorded_before(store: Store, tmp_path: Path) -> None:
    tools = {"one": tool("one", lambda _: "done")}
    script = [asks(Call("one", {}, "c1")), SUBMITS]
    ran = run_scripted(store, using(tools), "openai", script, root=tmp_path, tools=tools)
    kinds = [type(event).__name__ for event in ran.events if type(event).__name__ != "ChunkCame"]
    assert kinds == ["LegStarted", "AnswerCame", "Finished", "AnswerCame", "Finished", "LegEnded"]
    assert isinstance(ran.events[-1], LegEnded)


def test_an_observer_that_raises_ends_the_run_and_the_record_says_so(
    store: Store, tmp_path: Path
) -> None:
    class OwnError(Exception):
        pass

    def observe(event: RunEvent) -> None:
        if isinstance(event, AnswerCame):
            raise OwnError("enough")

    with pytest.raises(OwnError):
        run_scripted(
            store, using({}), "openai", [SUBMITS], root=tmp_path, tools={}, observer=observe
        )
    [leg] = iter_legs(store.reader)
    assert leg.ended is not None
    assert (leg.ended.outcome, leg.ended.reason) == ("failed", "OwnError: enough")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tools": ("fs:unheard",)}, "names missing tools"),
        ({"tiers": ()}, "names no model"),
        ({"tools": ("submit_result",)}, "is added for the schema"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_recorded(
    store: Store, change: dict[str, Any], problem: str
) -> None:
    config = using({}).model_copy(update=change)
    tools = {"submit_result": tool("submit_result", lambda _: None)}

    def model(tier: Tier) -> HttpModel:
        raise AssertionError(tier)

    with pytest.raises(InvalidRecordError, match=problem):
        asyncio.run(run_agent(config, "Do it.", model, tools, store))
    assert store.reader.sessions() == []


def test_a_conversation_names_a_tool_as_it_is_offered(store: Store, tmp_path: Path) -> None:
    of_server = tool("read", lambda _: "of disk")
    named = of_server.definition.model_copy(update={"namespace": "disk"})
    tools = {
        "read": AgentTool(named, of_server.handler, has_side_effects=False),
        "disk___read": tool("disk___read", lambda _: "of none"),
    }
    script = [asks(Call("___disk___read", {}, "c1")), SUBMITS]
    ran = run_scripted(store, using(tools), "openai", script, root=tmp_path, tools=tools)
    body = ran.bodies[1]
    offered = [one["function"]["name"] for one in body["tools"]]
    assert offered[:2] == ["disk___read", "___disk___read"]
    asked, answered = body["messages"][-2:]
    assert asked["tool_calls"][0]["function"]["name"] == "___disk___read"
    assert "of none" in answered["content"]


def test_a_run_may_be_asked_for_by_another_session(store: Store) -> None:
    parent = store.open_session()

    async def run() -> Any:
        with scripted_provider([SUBMITS]) as provider:
            model = HttpModel.of("openai", "m", base_url=f"{provider.url}/v1")
            config = using({}).model_copy(update={"tiers": (), "model": None})
            return await run_agent(config, "x " * 99, model, {}, store, parent=parent.id)

    ran = asyncio.run(run())
    view = store.reader.session(ran.run_id)
    assert view.parent_id == parent.id
    assert view.agent == "reviewer"
    assert view.title is not None
    assert len(view.title) <= len("Code Reviewer: ") + 80
    assert ran.legs[0].started.tier == "default"
