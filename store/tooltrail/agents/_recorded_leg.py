"""A leg from its session to its outcome: what is recorded around the conversation itself."""

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from pydantic import JsonValue

from tooltrail.agents._calls import Toolbox, to_end
from tooltrail.agents._leg import Ending, LegRunner
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
"""Of the task in the title of a session."""

_REASON_CHARS = 2_000
"""Of an error in the reason for an outcome; a server may send a whole page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegPlan:
    """Everything that a leg is given.

    Attributes:
        tools: all that there are, by name.
        position: of the leg in its run, from 0.
        next_tier: that goes on if this one comes to nothing; None if none does.
        run_id: of the run; None for its first leg.
        parent: the session that asked for the run.
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
        """What people will call its session."""
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
        """Who judges submissions; None for an agent of free text."""
        if self.config.output is None:
            return None
        return Judge(self.config.id, self.config.output, self.model.wire_format)

    def started(self, session_id: UUID) -> LegStarted:
        """What is recorded of its beginning."""
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
    """Lead one leg, and record it from its beginning to its end.

    Returns:
        The leg, and its value if it has one.

    Raises:
        UnavailableError: something could not be recorded.
        CancelledError: it was cancelled; its outcome says so.
    """
    opened: list[Session] = []
    try:
        await to_end(_open(plan, store, opened))
        [session] = opened
        own = artifact_tools(SessionArtifacts(store, session.id))
        plan = replace(plan, tools={**own, **plan.tools})
        started = plan.started(session.id)
        ended, value = await _led(plan, session, started, observer)
        observer(ended)
    finally:
        # Also one that was opened while the run was cancelled.
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
    """The tools by the names that the model sees, and their definitions."""
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
        # The judge says more of what is wrong than a check of the parameters would.
        unchecked = submission.model_copy(update={"parameters": {"type": "object"}})
        offered[submission.name] = AgentTool(
            unchecked, judge.judge, has_side_effects=False, family="structured_output"
        )
        definitions.append(submission)
    names = {*spelled, *spelled.values()}
    return Toolbox(offered, frozenset(names - offered.keys())), definitions


async def _led(
    plan: LegPlan, session: Session, started: LegStarted, observer: Observer
) -> tuple[LegEnded, JsonValue]:
    """Lead the conversation, and record how it came out, whatever that is.

    Raises:
        BaseException: what the conversation raised, when its outcome is recorded.
    """
    runner: LegRunner | None = None
    try:
        await to_end(session.arecord_leg(started, plan.config.version_record))
        observer(started)
        runner = await _runner(plan, session, observer)
        ending = await runner.run([*plan.beginning()])
    except BaseException as error:
        await _record_failure(session, runner, error)
        raise
    goes_on = None if ending.outcome in SUCCESSES else plan.next_tier
    ended = _ended(runner, ending, goes_on)
    await to_end(session.arecord_outcome(ended))
    return ended, ending.value


async def _record_failure(session: Session, runner: LegRunner | None, error: BaseException) -> None:
    is_cancelled = isinstance(error, CancelledError | KeyboardInterrupt)
    ending = (
        Ending("cancelled", "the run was cancelled")
        if is_cancelled
        else Ending("failed", f"{type(error).__name__}: {error}")
    )
    try:
        await to_end(session.arecord_outcome(_ended(runner, ending, None)))
    except Exception as failure:  # noqa: BLE001  what is raised is what came first
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
