"""Records a leg around its conversation: session, start, offered tools and outcome."""

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from pydantic import JsonValue

from tooltrail.agents._calls import Toolbox, to_end
from tooltrail.agents._leg import Ending, LegRunner
from tooltrail.agents._leg_facts import leg_entry, outcome_entry
from tooltrail.agents._questions import Questions, Spent
from tooltrail.agents.configuration import AgentConfig
from tooltrail.agents.models import ChatModel
from tooltrail.agents.runs import Leg, Observer
from tooltrail.agents.session_artifacts import SessionArtifacts, artifact_tools
from tooltrail.agents.submission import INSTRUCTIONS, Judge, offered_names, submission_tool
from tooltrail.agents.tools import AgentTool
from tooltrail.journal.session import Session
from tooltrail.records import LegEnded, LegStarted, Message, SessionClosedError, ToolDefinition
from tooltrail.records.agent_runs import SUCCESSES
from tooltrail.store import Store

_TITLE_CHARS = 80
"""Characters of the task in the title of a session."""

_REASON_CHARS = 2_000
"""Characters of an error in the reason of an outcome; a server may send a long page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegPlan:
    """The inputs of a leg.

    Attributes:
        tools: all existing tools, by name.
        position: position of the leg in its run, from 0.
        next_tier: tier of the next leg if this leg has no result; None for the last tier.
        run_id: id of the run; None for its first leg.
        parent: session that started the run.
    """

    config: AgentConfig
    task: str
    model: ChatModel
    tools: Mapping[str, AgentTool]
    tier: str
    position: int
    next_tier: str | None
    run_id: UUID | None
    parent: UUID | None

    @property
    def title(self) -> str:
        """The title of its session."""
        line = " ".join(self.task.split())
        return f"{self.config.name}: {line[:_TITLE_CHARS]}"

    def beginning(self) -> Iterator[Message]:
        """The first messages."""
        parts = [self.config.context.static.system.strip()]
        if self.config.output is not None:
            parts.append(INSTRUCTIONS)
        if system := "\n\n".join(filter(None, parts)):
            yield Message.of("system", system)
        yield Message.of("user", self.task)

    def judge(self) -> Judge | None:
        """The judge of submissions; None for an agent without a schema."""
        if self.config.output is None:
            return None
        return Judge(self.config.id, self.config.output, self.model.wire_format)

    def started(self, session_id: UUID) -> LegStarted:
        """The fact of its start."""
        output = self.config.output
        return LegStarted(
            run_id=self.run_id or session_id,
            position=self.position,
            tier=self.tier,
            model=self.model.name,
            wire_format=self.model.wire_format,
            provider=self.model.provider,
            agent_id=self.config.id,
            agent_digest=self.config.version_record.digest,
            schema_digest=None if output is None else output.schema_checker.digest,
            time_limit_ms=self.config.limits.max_time_ms,
        )


async def run_leg(plan: LegPlan, store: Store, observer: Observer) -> tuple[Leg, JsonValue]:
    """Run and record one leg.

    Returns:
        The leg, and its value if it has one.

    Raises:
        UnavailableError: a fact could not be recorded.
        CancelledError: the leg was cancelled, which is its recorded outcome.
    """
    opened: list[Session] = []
    try:
        await to_end(_open(plan, store, opened))
        [session] = opened
        own = artifact_tools(SessionArtifacts(store, session.id))
        plan = replace(plan, tools={**own, **plan.tools})
        started = plan.started(session.id)
        ended, value = await _run(plan, session, started, observer)
        observer(ended)
    finally:
        # Also a session that was opened while the run was being cancelled.
        for one in opened:
            with suppress(SessionClosedError):
                await to_end(one.aclose())
    return Leg(session.id, started, ended), value


async def _open(plan: LegPlan, store: Store, opened: list[Session]) -> None:
    parent = plan.run_id or plan.parent
    opened.append(
        await Session.aopen(store.recorder, title=plan.title, agent=plan.config.id, parent=parent)
    )


async def _runner(plan: LegPlan, session: Session, observer: Observer) -> LegRunner:
    judge, limits = plan.judge(), plan.config.limits
    toolbox, definitions = _toolbox(plan, judge)
    await to_end(session.aoffer_tools(definitions))
    spent = Spent()
    questions = Questions(
        session=session,
        model=plan.model,
        offered=definitions,
        limits=limits,
        spent=spent,
        observer=observer,
    )
    return LegRunner(
        session=session,
        questions=questions,
        toolbox=toolbox,
        limits=limits,
        judge=judge,
        observer=observer,
        spent=spent,
    )


def _toolbox(plan: LegPlan, judge: Judge | None) -> tuple[Toolbox, list[ToolDefinition]]:
    """The toolbox by the names that the model sees, and the definitions of its tools."""
    spelled = offered_names(plan.tools, plan.model.wire_format)
    offered: dict[str, AgentTool] = {}
    for name in plan.config.tools:
        tool, shown_name = plan.tools[name], spelled[name]
        offered[shown_name] = replace(
            tool, definition=tool.definition.model_copy(update={"name": shown_name})
        )
    definitions = [tool.definition for tool in offered.values()]
    submission = submission_tool(plan.config, plan.model.wire_format)
    if submission is not None and judge is not None:
        # The judge reports more than a check of the parameters, so the parameters are not checked.
        unchecked = submission.model_copy(update={"parameters": {"type": "object"}})
        offered[submission.name] = AgentTool(
            unchecked, judge.judge, has_side_effects=False, family="structured_output"
        )
        definitions.append(submission)
    names = {*spelled, *spelled.values()}
    return Toolbox(offered, frozenset(names - offered.keys())), definitions


async def _run(
    plan: LegPlan, session: Session, started: LegStarted, observer: Observer
) -> tuple[LegEnded, JsonValue]:
    """Run the conversation, and record its outcome, whatever it is.

    Raises:
        BaseException: an error of the conversation, after the outcome is recorded.
    """
    runner: LegRunner | None = None
    try:
        begun = leg_entry(session.id, started, plan.config.version_record)
        await to_end(session.aappend([begun]))
        observer(started)
        runner = await _runner(plan, session, observer)
        ending = await runner.run([*plan.beginning()])
    except BaseException as error:
        await _record_failure(session, runner, error)
        raise
    goes_on = None if ending.outcome in SUCCESSES else plan.next_tier
    ended = _ended(runner, ending, goes_on)
    await to_end(session.aappend([outcome_entry(session.id, ended)]))
    return ended, ending.value


async def _record_failure(session: Session, runner: LegRunner | None, error: BaseException) -> None:
    is_cancelled = isinstance(error, CancelledError | KeyboardInterrupt)
    ending = (
        Ending("cancelled", "the run was cancelled")
        if is_cancelled
        else Ending("failed", f"{type(error).__name__}: {error}")
    )
    try:
        outcome = outcome_entry(session.id, _ended(runner, ending, None))
        await to_end(session.aappend([outcome]))
    except Exception as failure:  # noqa: BLE001  the first error is raised
        error.add_note(f"the outcome is not recorded: {failure}")


def _shortened(reason: str) -> str:
    if len(reason) <= _REASON_CHARS:
        return reason
    return f"{reason[:_REASON_CHARS]}… ({len(reason):,} characters)"


def _ended(runner: LegRunner | None, ending: Ending, escalated_to: str | None) -> LegEnded:
    spent, judge = (Spent(), None) if runner is None else (runner.spent, runner.judge)
    return LegEnded(
        outcome=ending.outcome,
        reason=_shortened(ending.reason),
        limit=ending.limit,
        result_id=ending.result_id,
        escalated_to=escalated_to,
        attempt_count=0 if judge is None else judge.attempt_count,
        step_count=spent.steps,
        reminder_count=spent.reminders,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        duration_ms=spent.duration_ms,
    )
