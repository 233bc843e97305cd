"""A family as somebody outside of the package would write it: a deployment and its steps."""

from typing import Annotated, ClassVar

from pydantic import Field

from tooltrail.records.authoring import (
    NAME_CHARS,
    Budget,
    CanonicalResult,
    Cutter,
    Family,
    FamilyOutput,
    Identifier,
    Json,
    PreviewChars,
    ReceiptChars,
    Sentence,
    SparseRecord,
    StreamRecord,
    body_of,
    bound_texts,
    bounded,
    hidden_lines,
    json_of,
    one_line,
    receipt,
    structured_fields,
)


class DeploymentBudget(Budget):
    """Bounds of a deployment: its log and its plan in one preview budget, `max_items` steps."""

    item_chars: ClassVar[int] = 260

    preview_chars: PreviewChars = 1_000
    receipt_chars: ReceiptChars = 12_000


class Step(SparseRecord):
    """What was done on one host."""

    host: Sentence
    ok: bool


class DeploymentOutput(FamilyOutput):
    """A deployment with its whole log."""

    deployment_id: Identifier
    steps: tuple[Step, ...] = ()
    plan: StreamRecord
    log: Annotated[StreamRecord, Field(description="what it printed")]

    def summary(self) -> str:
        return f"deployment of {len(self.steps)} steps"


def project_deployment(result: DeploymentOutput, budget: DeploymentBudget, cutter: Cutter) -> Json:
    """Bound the steps, the plan and the log."""
    plan, log = cutter.shares([result.plan, result.log], budget.preview_chars)
    steps = tuple(
        bound_texts(step, f"steps[{n}]", {"host": NAME_CHARS}, cutter)
        for n, step in enumerate(cutter.items("steps", result.steps, budget.max_items))
    )
    fields = structured_fields(result.plan, plan, cutter, "plan")
    fields |= cutter.stream(result.log, log).named("log")
    return bounded(result, cutter, steps=steps, step_count=len(result.steps), **fields)


def render_deployment(canonical: CanonicalResult, budget: DeploymentBudget) -> str:
    """Each step on a line, then the log."""
    result = json_of(canonical)
    steps, count = result["steps"], result["step_count"]
    lines = [f"Deployment {result['deployment_id']}: {count:,} steps"]
    lines += [f"{'ok' if step['ok'] else 'failed'} {one_line(step['host'])}" for step in steps]
    lines += hidden_lines(result, count - len(steps), "step")
    return receipt(["\n".join(lines), *body_of(result, "log", budget.spare_chars)], result)


FAMILY = Family(
    name="deployment",
    result_types=(DeploymentOutput,),
    projector=project_deployment,
    render=render_deployment,
    budget=DeploymentBudget(),
    tool_names=frozenset({"Deploy"}),
)
