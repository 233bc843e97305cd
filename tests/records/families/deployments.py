"""A family as somebody outside of the package would write it: a deployment and its steps."""

from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from tooltrail.records.authoring import (
    NAME_CHARS,
    BoundedResult,
    Budget,
    CanonicalResult,
    Count,
    Cutter,
    Encoding,
    Family,
    FamilyOutput,
    Identifier,
    PreviewChars,
    ReceiptChars,
    Renderer,
    Sentence,
    SparseRecord,
    StreamRecord,
    bound_texts,
    bounded,
    hidden_lines,
    one_line,
    readable,
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


class DeploymentResult(BoundedResult):
    """The canonical result of a deployment."""

    deployment_id: Identifier
    steps: tuple[Step, ...]
    step_count: Count
    plan: JsonValue = None
    plan_preview: JsonValue = None
    plan_truncated: bool | None = None
    plan_artifact: int | None = None
    log_preview: str | None
    log_encoding: Encoding | None = None
    log_truncated: bool
    log_artifact: int | None = None


def project_deployment(
    result: DeploymentOutput, budget: DeploymentBudget, cutter: Cutter
) -> DeploymentResult:
    """Bound the steps, the plan and the log."""
    plan, log = cutter.sharing.shares([result.plan, result.log], budget.preview_chars)
    steps = tuple(
        bound_texts(step, f"steps[{n}]", {"host": NAME_CHARS}, cutter)
        for n, step in enumerate(cutter.items("steps", result.steps, budget.max_items))
    )
    fields = structured_fields(result.plan, plan, cutter, "plan")
    fields |= cutter.stream(result.log, log).named("log")
    count = len(result.steps)
    return bounded(DeploymentResult, result, cutter, steps=steps, step_count=count, **fields)


def render_deployment(canonical: CanonicalResult, budget: DeploymentBudget) -> str:
    """Each step on a line, then the log."""
    result = DeploymentResult.model_validate(canonical.result)
    artifacts = result.artifacts or ()
    lines = [f"Deployment {result.deployment_id}: {result.step_count:,} steps"]
    lines += [f"{'ok' if step.ok else 'failed'} {one_line(step.host)}" for step in result.steps]
    hidden = result.step_count - len(result.steps)
    lines += hidden_lines(hidden, "step", artifacts, result.hidden_artifact)
    sections = ["\n".join(lines)]
    if result.log_preview:
        sections += readable([(result.log_preview, result.log_truncated)], budget.spare_chars)
    roles: dict[int | None, str] = {
        result.log_artifact: "log",
        result.plan_artifact: "plan",
        result.hidden_artifact: "hidden",
    }
    return receipt(sections, artifacts, roles)


FAMILY = Family(
    name="deployment",
    result_types=(DeploymentOutput,),
    projector=project_deployment,
    renderer=Renderer("deployment", 1, render_deployment),
    budget=DeploymentBudget(),
    tool_names=frozenset({"Deploy"}),
)
