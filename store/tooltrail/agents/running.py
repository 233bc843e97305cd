"""The tool loop: an agent is given a task, asked tier by tier, and recorded as it goes.

    run = await run_agent(config, "Find all events", model, tools, store)
    if run.is_success: print(run.value)

Whatever comes of it is in the store when this returns or raises: each leg with its outcome, each
call before it ran, each submission with its verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from pydantic import JsonValue

from tooltrail.agents._recorded_leg import LegPlan, run_leg
from tooltrail.agents.configuration import AgentConfig, Tier
from tooltrail.agents.models import ChatModel
from tooltrail.agents.runs import AgentRun, Leg, Observer
from tooltrail.agents.session_artifacts import NAMES as ARTIFACT_TOOLS
from tooltrail.agents.submission import SUBMIT_RESULT
from tooltrail.agents.tools import AgentTool
from tooltrail.records import InvalidRecordError
from tooltrail.store import Store

ModelFactory: TypeAlias = Callable[[Tier], ChatModel]
"""Makes the model of a tier, once for a run."""


async def run_agent(
    config: AgentConfig,
    task: str,
    model: ChatModel | ModelFactory,
    tools: Mapping[str, AgentTool],
    store: Store,
    *,
    parent: UUID | None = None,
    observer: Observer | None = None,
) -> AgentRun:
    """Run an agent to its result, or to the end of its limits and its ladder.

    With a schema, a result is what the model submits with `submit_result` and the schema accepts,
    and nothing else is. A leg without one goes on with the next tier, which begins anew, in a
    session of its own.

    Args:
        config: of the agent.
        task: what the model is to do.
        model: that is asked at every tier; or what makes the model of each.
        tools: by name; of these the agent may call those that its configuration names. The tools
            `artifact:read` and `artifact:grep`, for the session of the leg, are always there.
        store: that everything is recorded in.
        parent: the session that asks for the run, if one does.
        observer: is called with what happens.

    Returns:
        What came of it, success or not.

    Raises:
        InvalidRecordError: the configuration names a tool that is not there, or no model; nothing
            is recorded.
        UnavailableError: the store cannot be written, and nothing is to be kept for later.
        CancelledError: the task was cancelled; that is recorded.
    """
    ladder = _ladder(config, model)
    _refuse_missing(config, tools)
    # All before the first leg: what no model can be made of is refused before anything is recorded.
    models = [model if isinstance(model, ChatModel) else model(tier) for tier in ladder]
    legs: list[Leg] = []
    value: JsonValue = None
    for position, tier in enumerate(ladder):
        plan = LegPlan(
            config=config,
            task=task,
            model=models[position],
            tools=tools,
            tier=tier.name,
            position=position,
            next_tier=ladder[position + 1].name if position + 1 < len(ladder) else None,
            run_id=legs[0].session_id if legs else None,
            parent=parent,
        )
        leg, value = await run_leg(plan, store, observer or (lambda _: None))
        legs.append(leg)
        if leg.ended.escalated_to is None:
            break
    return AgentRun(tuple(legs), value)


def _ladder(config: AgentConfig, model: ChatModel | ModelFactory) -> Sequence[Tier]:
    if config.ladder:
        return config.ladder
    if isinstance(model, ChatModel):
        return (Tier(name="default", model=model.name),)
    raise InvalidRecordError(f"agent {config.id} names no model, and none was given")


def _refuse_missing(config: AgentConfig, tools: Mapping[str, AgentTool]) -> None:
    known = tools.keys() | ARTIFACT_TOOLS
    missing = [name for name in config.tools if name not in known]
    if missing:
        raise InvalidRecordError(f"agent {config.id} wants tools that there are not: {missing}")
    if config.output is not None and SUBMIT_RESULT in config.tools:
        raise InvalidRecordError(f"{SUBMIT_RESULT} is made of the schema, and no tool to be named")
