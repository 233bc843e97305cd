"""The child agent family: an agent that was started by a tool, and the report that it gave."""

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
from tooltrail.records.families._tasks import TaskHandle, TaskState
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord


class TokenUsage(SparseRecord):
    """What the child took of its model, in tokens; a cache that is not there is left out."""

    input_tokens: Number
    output_tokens: Number
    cache_read_tokens: Number | None = None
    cache_write_tokens: Number | None = None


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


def project_child_agent(result: ChildAgentOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the report. Nothing else is cut: `report_truncated` speaks for the whole result."""
    report: Json = {}
    if result.report is not None:
        report = cutter.stream(result.report, budget.preview_chars).named("report")
    return entry(result, artifacts=cutter.references, **report)


def render_child_agent(canonical: CanonicalResult, budget: Budget) -> str:
    """How far the child is, the handles to go on with, what it took, and its report."""
    result = json_of(canonical)
    lines = [f"Agent {one_line(result['agent_id'])} {result['status']}"]
    lines += labelled(result, {"child_session_id": "Session"})
    lines += labelled(result.get("task_handle", {}), {"task_id": "Task"})
    if "token_usage" in result:
        lines.append(_usage_line(result["token_usage"]))
    sections = ["\n".join(lines), *body_of(result, "report", budget.spare_chars, "Report")]
    return receipt(sections, result)


def _usage_line(usage: Json) -> str:
    words = {
        "input_tokens": "in",
        "output_tokens": "out",
        "cache_read_tokens": "read from cache",
        "cache_write_tokens": "written to cache",
    }
    counts = [f"{usage[name]:,} {what}" for name, what in words.items() if name in usage]
    return "Tokens: " + ", ".join(counts)


FAMILY = Family(
    name="child_agent",
    result_types=(ChildAgentOutput,),
    projector=project_child_agent,
    render=render_child_agent,
    tool_names=frozenset({"Agent", "SpawnAgent", "Task", "delegate", "spawn_agent"}),
    version=2,
)
