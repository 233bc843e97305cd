"""The child agent family: an agent that was started by a tool, and the report that it gave."""

from typing import Annotated

from pydantic import Field

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    Identifier,
    SparseRecord,
    bounded,
    one_line,
    receipt,
)
from tooltrail.records.families._tasks import TaskHandle, TaskState
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

MAX_TOKENS = (1 << 63) - 1
"""The largest count that databases hold in an integer."""

TokenCount = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class ChildAgentBudget(Budget):
    """Bounds of the child agent family: `preview_chars` is for the report."""


class TokenUsage(SparseRecord):
    """What the child took of its model, in tokens; a cache that is not there is left out."""

    input_tokens: TokenCount
    output_tokens: TokenCount
    cache_read_tokens: TokenCount | None = None
    cache_write_tokens: TokenCount | None = None


class ChildAgentOutput(FamilyOutput):
    """A child agent as it is now, with its whole report.

    Attributes:
        agent_id: what the runtime calls the child.
        child_session_id: the session in which it is recorded.
        task_handle: how to ask for it again when it runs in the background.
        status: how far it is, or how it ended.
        report: what it reported, as text; None when it has not reported.
        token_usage: what it took of its model so far.
    """

    agent_id: Identifier
    child_session_id: Identifier | None = None
    task_handle: TaskHandle | None = None
    status: TaskState
    report: StreamRecord | None = None
    token_usage: TokenUsage | None = None

    def summary(self) -> str:
        """Which child, and how far it is."""
        return f"agent {self.agent_id} {self.status}"


class ChildAgentResult(SparseRecord):
    """The canonical result of the child agent family.

    Nothing but the report is ever cut, so `report_truncated` speaks for the whole result.
    """

    agent_id: Identifier
    child_session_id: Identifier | None = None
    task_handle: TaskHandle | None = None
    status: TaskState
    report_preview: str | None = None
    report_encoding: Encoding | None = None
    report_truncated: bool | None = None
    report_artifact: int | None = None
    artifacts: tuple[ArtifactReference, ...] | None = None
    token_usage: TokenUsage | None = None


def project_child_agent(
    result: ChildAgentOutput, budget: ChildAgentBudget, cutter: Cutter
) -> ChildAgentResult:
    """Bound the report."""
    report: dict[str, object] = {}
    if result.report is not None:
        report = cutter.stream(result.report, budget.preview_chars).named("report")
    return bounded(ChildAgentResult, result, cutter, **report)


def render_child_agent(canonical: CanonicalResult, budget: ChildAgentBudget) -> str:
    """How far the child is, the handles to go on with, what it took, and its report."""
    result = ChildAgentResult.model_validate(canonical.result)
    sections = ["\n".join(_head_lines(result))]
    text = (result.report_preview or "", result.report_truncated or False)
    sections += [f"Report:\n{body}" for body in readable([text], budget.spare_chars) if body]
    return receipt(sections, result.artifacts, {result.report_artifact: "report"})


def _head_lines(result: ChildAgentResult) -> list[str]:
    lines = [f"Agent {one_line(result.agent_id)} {result.status}"]
    if result.child_session_id is not None:
        lines.append(f"Session: {one_line(result.child_session_id)}")
    if result.task_handle is not None:
        lines.append(f"Task: {one_line(result.task_handle.task_id)}")
    if result.token_usage is not None:
        lines.append(_usage_line(result.token_usage))
    return lines


def _usage_line(usage: TokenUsage) -> str:
    counts = (
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "read from cache"),
        (usage.cache_write_tokens, "written to cache"),
    )
    return "Tokens: " + ", ".join(
        f"{count:,} {what}" for count, what in counts if count is not None
    )


FAMILY = Family(
    name="child_agent",
    result_types=(ChildAgentOutput,),
    projector=project_child_agent,
    renderer=Renderer("child_agent", 2, render_child_agent),
    budget=ChildAgentBudget(),
    tool_names=frozenset({"Agent", "SpawnAgent", "Task", "delegate", "spawn_agent"}),
)
