"""The tool loop: runs an agent on a task, tier by tier, and records the run.

    run = await run_agent(config, "Find all events", model, tools, store)
    if run.is_success: print(run.value)

When `run_agent` returns or raises, the store has each leg with its outcome, each call, and each
submission with its verdict. A call is recorded before it runs.
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
"""Makes the model of a tier. Called once per tier of a run."""


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
    """Run an agent until it has a result, or until its last tier has ended without one.

    With a schema, only a value that the model submits with `submit_result` and that the schema
    accepts is a result. After a leg without a result, the next tier starts from the beginning in a
    session of its own.

    Args:
        config: configuration of the agent.
        task: the task, as the first message to the model.
        model: one model for all tiers, or a function that makes the model of a tier.
        tools: existing tools by name. The agent may call those that its configuration names.
            `artifact:read` and `artifact:grep` for the session of the leg are always among them.
        store: the store that records the run.
        parent: session that starts the run, if any.
        observer: called with each event of the run.

    Returns:
        The run, with or without a result.

    Raises:
        InvalidRecordError: the configuration names a missing tool, or no model; nothing is
            recorded.
        UnavailableError: a fact could not be recorded.
        CancelledError: the task was cancelled, which is recorded.
    """
    ladder = _ladder(config, model)
    _refuse_missing(config, tools)
    # Before the first leg, so that a wrong configuration is refused before a fact is recorded.
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
    raise InvalidRecordError(
        f"agent {config.id} names no model; name one in the configuration or pass one"
    )


def _refuse_missing(config: AgentConfig, tools: Mapping[str, AgentTool]) -> None:
    known = tools.keys() | ARTIFACT_TOOLS
    missing = [name for name in config.tools if name not in known]
    if missing:
        raise InvalidRecordError(f"agent {config.id} names missing tools: {missing}")
    if config.output is not None and SUBMIT_RESULT in config.tools:
        raise InvalidRecordError(
            f"{SUBMIT_RESULT} is added for the schema; remove it from the tools"
        )
