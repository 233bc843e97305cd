"""The child agent family: an agent that was started by a tool, and the agent's report."""

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    Identifier,
    Json,
    Number,
    SparseRecord,
    body_of,
    entry,
    json_of,
    labelled,
    one_line,
    receipt,
)
from tooltrail.records.families.tasks import TaskHandle, TaskState
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord


class TokenUsage(SparseRecord):
    """The tokens that the child used; without a cache, the fields for it are left out."""

    input_tokens: Number
    output_tokens: Number
    cache_read_tokens: Number | None = None
    cache_write_tokens: Number | None = None


_USAGE_WORDS = {
    "input_tokens": "in",
    "output_tokens": "out",
    "cache_read_tokens": "read from cache",
    "cache_write_tokens": "written to cache",
}


class ChildAgentOutput(FamilyOutput):
    """The current state of a child agent, with its complete report.

    Attributes:
        child_session_id: id of the session that records the child.
        task_handle: handle to query a child that runs in the background.
        report: the child's report as text; None if there is none yet.
    """

    agent_id: Identifier
    child_session_id: Identifier | None = None
    task_handle: TaskHandle | None = None
    status: TaskState
    report: StreamRecord | None = None
    token_usage: TokenUsage | None = None

    def summary(self) -> str:
        """The child and its state."""
        return f"agent {self.agent_id} {self.status}"


def project_child_agent(result: ChildAgentOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the report. Nothing else is cut: `report_truncated` covers the complete result."""
    report: Json = {}
    if result.report is not None:
        report = cutter.stream(result.report, budget.preview_chars).named("report")
    return entry(result, artifacts=cutter.references, **report)


def render_child_agent(canonical: CanonicalResult, budget: Budget) -> str:
    """Render the child's state, the handles to continue with, its token usage and its report."""
    result = json_of(canonical)
    lines = [f"Agent {one_line(result['agent_id'])} {result['status']}"]
    lines += labelled(result, {"child_session_id": "Session"})
    lines += labelled(result.get("task_handle", {}), {"task_id": "Task"})
    usage: Json = result.get("token_usage", {})
    counts = [f"{usage[name]:,} {words}" for name, words in _USAGE_WORDS.items() if name in usage]
    lines += [f"Tokens: {', '.join(counts)}"] if counts else []
    sections = ["\n".join(lines), *body_of(result, "report", budget.spare_chars, "Report")]
    return receipt(sections, result)


FAMILY = Family(
    name="child_agent",
    result_types=(ChildAgentOutput,),
    projector=project_child_agent,
    render=render_child_agent,
    tool_names=frozenset({"Agent", "SpawnAgent", "Task", "delegate", "spawn_agent"}),
    version=2,
)
