"""A stored receipt beside what today's renderers give: every kind of drift, and nothing written."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tests.support.effort import times
from tests.support.ended import made
from tests.support.keeping import ingested, paths
from tests.support.outputs import returned
from tests.support.rewording import reworded, without

from tooltrail.artifacts import artifact_path
from tooltrail.journal.clock import new_id
from tooltrail.records import (
    ArtifactReference,
    Budget,
    CanonicalResult,
    CompleteOutput,
    DamageError,
    Family,
    FamilyRegistry,
    Policy,
    StreamRecord,
    ToolPolicy,
    default_families,
    default_policy,
    load_policy,
    project,
    render,
)
from tooltrail.records.digests import Digest, digest_of
from tooltrail.store.keep.rerendering import Rerendering, rerender
from tooltrail.store.read.reader import Reader
from tooltrail.store.store import Store
from tooltrail.store.views import Erasure, InvocationDetail, InvocationView, ReceiptView

BIG = b"".join(b"%08d\n" % n for n in range(50_000))
TODAY = default_families()
THEN = reworded("command", "exit status 0\n", version=4)


class WiderBudget(Budget):
    """The numbers of a later release, which has one more."""

    extra_chars: int = 5


class NarrowerBudget(Budget):
    """The numbers of a later release, which allows less."""

    max_items: Annotated[int, Field(ge=1, le=16)] = 16


class OtherModel(BaseModel):
    """A canonical result as a later release might want it."""

    lines: list[str]


@dataclass
class Recorded:
    """A call as it was recorded, and the policies of the store."""

    detail: InvocationDetail
    policies: dict[Digest, str] = field(default_factory=dict[Digest, str])

    def policy_json(self, digest: Digest) -> str:
        return self.policies[digest]

    def rerender(self, families: FamilyRegistry) -> Rerendering:
        return rerender(cast("Reader", self), self.detail, families)

    def today(self, text: str, version: int) -> ReceiptView:
        assert self.detail.receipt is not None
        digest = digest_of(text.encode())
        return self.detail.receipt.replaced(text=text, digest=digest, renderer_version=version)

    def same(self, today: ReceiptView | None = None) -> Rerendering:
        stored = self.detail.receipt
        return Rerendering(self.detail.summary.id, "same", "", stored, today or stored)


class _Publisher:
    """Says where a stream is, and keeps nothing."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        return ArtifactReference(path=artifact_path(stream.digest))


def record(
    output: CompleteOutput,
    families: FamilyRegistry = THEN,
    policy: Policy | None = None,
    family: str = "command",
) -> Recorded:
    """What a program with these families shows, and a store keeps."""
    used = policy or default_policy(families)
    named = families.of_output(output, families.named(family))
    canonical = project(output, named, used, _Publisher()).canonical
    shown = render(canonical, named, used)
    summary = SimpleNamespace(id=new_id(), state=output.status, family=family)
    renderer = (shown.renderer_name, shown.renderer_version)
    detail = InvocationDetail(
        cast("InvocationView", summary),
        b"",
        used.digest,
        canonical_json=canonical.to_json().decode(),
        receipt=ReceiptView(shown.text, digest_of(shown.to_bytes()), *renderer, used.digest),
    )
    return Recorded(detail, {used.digest: used.to_json().decode()})


def with_foreign(name: str = "foreign") -> FamilyRegistry:
    """The families of today and one more, with numbers of its own."""
    families = default_families()
    known = families.named("command")
    families.register(
        Family(
            name=name,
            result_types=known.result_types,
            projector=known.projector,
            render=known.render,
            budget=WiderBudget(extra_chars=7),
        )
    )
    return families


def test_what_today_s_renderers_made_is_the_same() -> None:
    for output in (made(), made(BIG, b"\xff\xfe", 3), returned("lookup", "kept")):
        family = TODAY.of_tool(output.tool_name).name
        found = record(output, TODAY, family=family).rerender(TODAY)
        assert (found.state, found.reason) == ("same", "")
        assert found.stored == found.today


def test_a_stored_call_is_compared_without_its_complete_output(store: Store) -> None:
    ingested(store, b"kept\n", BIG)
    for path in paths(store):
        store.archive.sink.delete(path)
    for view in store.reader.invocations().items:
        detail = store.reader.invocation(view.id)
        found = rerender(store.reader, detail, store.families)
        assert (found.invocation_id, found.state) == (view.id, "same")
        assert rerender(store.reader, detail, THEN).state == "drifted"


def test_other_text_of_another_version_is_drift() -> None:
    kept = record(made())
    found = kept.rerender(reworded("command", "Exited with 0\n", version=5))
    reason = "the receipt was rendered by command 4, the current renderer is command 5"
    today = kept.today("Exited with 0\n", 5)
    name = kept.detail.summary.id
    assert found == Rerendering(name, "drifted", reason, kept.detail.receipt, today)
    assert found.state == "drifted"
    assert kept.rerender(THEN) == kept.same()


def test_other_text_of_the_same_version_is_drift_that_says_so() -> None:
    found = record(made()).rerender(reworded("command", "Exited with 0\n", version=4))
    assert found.state == "drifted"
    assert found.reason == "renderer command 4 gives other text, although its version is the same"


def test_a_missing_line_end_is_drift() -> None:
    assert (
        record(made()).rerender(reworded("command", "exit status 0", version=4)).state == "drifted"
    )


def test_the_same_text_of_another_version_is_no_drift() -> None:
    kept = record(made())
    found = kept.rerender(reworded("command", "exit status 0\n", version=5))
    assert found == kept.same(kept.today("exit status 0\n", 5))
    assert found.state == "same"


def validating(canonical: CanonicalResult, _: object) -> str:
    return "".join(OtherModel.model_validate(canonical.result).lines)


def looking(canonical: CanonicalResult, _: object) -> str:
    return str((canonical.result or {})["lines\nof text"])


@pytest.mark.parametrize(
    ("renderer", "why"),
    [(validating, "lines: field required"), (looking, r"KeyError: 'lines\nof text'")],
)
def test_a_canonical_result_that_no_renderer_reads_any_more_is_drift(
    renderer: Any, why: str
) -> None:
    kept = record(made())
    found = kept.rerender(reworded("command", renderer))
    reason = f"the current command family cannot render the canonical result: {why}"
    assert found == Rerendering(kept.detail.summary.id, "drifted", reason, kept.detail.receipt)


def test_the_receipt_of_a_family_that_is_gone_cannot_be_compared() -> None:
    kept = record(made())
    found = kept.rerender(without("command"))
    reason = "the family 'command' is not known to this program"
    assert found == Rerendering(kept.detail.summary.id, "incomparable", reason, kept.detail.receipt)


def test_a_policy_with_fewer_numbers_than_today_s_has_today_s_defaults() -> None:
    shown: list[Any] = []

    def remember(_: CanonicalResult, budget: WiderBudget) -> str:
        shown.append((budget.max_items, budget.extra_chars))
        return "exit status 0\n"

    policy = default_policy(THEN)
    policy = policy.for_tool("Bash", max_items=7)
    kept = record(made(), policy=policy)
    assert kept.rerender(reworded("command", remember, version=4, budget=WiderBudget())).today
    assert shown[0][1] == 5


def test_a_policy_that_today_s_bounds_refuse_is_not_readable() -> None:
    today = reworded("command", "exit status 0\n", budget=NarrowerBudget())
    found = record(made()).rerender(today)
    assert found.state == "incomparable"
    assert found.reason == "the policy is not readable: max_items: must be at most 16"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("[]", "not a policy: it is not a JSON object"),
        ('{"families":{"command":{}},"version":2}', "version: must be 1"),
        (
            '{"families":{"command":{}},"tools":{"Bash":{"budget":{"x":"y"}}}}',
            "tools.Bash.budget.x: ",
        ),
        ("{", "not canonical JSON: "),
    ],
)
def test_a_policy_of_another_kind_is_not_readable(document: str, why: str) -> None:
    kept = record(made())
    kept.policies[kept.detail.policy_digest] = document
    found = kept.rerender(TODAY)
    assert found.state == "incomparable"
    assert found.reason.startswith(f"the policy is not readable: {why}")
    assert found.stored == kept.detail.receipt


def test_families_and_tools_that_came_or_went_do_not_stand_in_the_way() -> None:
    tools = {
        "Bash": ToolPolicy(budget={"preview_chars": 1_000}),
        "theirs": ToolPolicy(family="foreign", budget={"extra_chars": 9}),
        "odd \ud800": ToolPolicy(family="command"),
    }
    families = with_foreign()
    then = default_policy(families).model_copy(update={"tools": tools})
    kept = record(returned("lookup", "kept"), families, then, family="generic")
    for today in (TODAY, with_foreign("later"), families):
        found = kept.rerender(today)
        assert (found.state, found.reason) == ("same", "")


numbers = st.integers(1_000, 30_000)
tool_policies = st.builds(
    ToolPolicy,
    family=st.none() | st.sampled_from(["command", "foreign", "generic"]),
    budget=st.dictionaries(st.sampled_from(["preview_chars", "max_items"]), numbers, max_size=2),
)


@settings(max_examples=times(10), deadline=None)
@given(
    preview_chars=numbers,
    tools=st.dictionaries(st.text(st.characters(), min_size=1), tool_policies, max_size=4),
)
def test_any_policy_gives_the_same_receipt_again(
    preview_chars: int, tools: dict[str, ToolPolicy]
) -> None:
    families = with_foreign()
    document = {"families": {"generic": {"preview_chars": preview_chars, "receipt_chars": 512_000}}}
    policy = load_policy(document, families).model_copy(update={"tools": tools})
    kept = record(returned("lookup", "line\n" * 5_000), families, policy, family="generic")
    found = kept.rerender(TODAY)
    assert (found.state, found.reason) == ("same", "")


def test_an_open_invocation_has_nothing_to_compare() -> None:
    kept = record(made())
    cast("Any", kept.detail).summary.state = "started"
    kept.detail = kept.detail.replaced(receipt=None, canonical_json=None)
    reason = "the invocation has not ended, so there is no receipt"
    assert kept.rerender(TODAY) == Rerendering(kept.detail.summary.id, "open", reason)


@pytest.mark.parametrize("surface", ["receipt", "canonical_json"])
def test_a_lost_surface_is_damage(surface: str) -> None:
    kept = record(made())
    kept.detail = kept.detail.replaced(**cast("Any", {surface: None}))
    name = kept.detail.summary.id
    with pytest.raises(DamageError, match=f"a surface of invocation {name} is missing") as caught:
        kept.rerender(TODAY)
    assert caught.value.path == str(name)


def test_an_erased_surface_cannot_be_compared() -> None:
    kept = record(made())
    gone = Erasure("receipt", "a person asked", "request 7", datetime(2026, 1, 2, tzinfo=UTC))
    kept.detail = kept.detail.replaced(receipt=None, erased=(gone,))
    found = kept.rerender(TODAY)
    assert (found.state, found.reason) == ("incomparable", gone.sentence)


def test_the_receipt_of_another_program_is_not_compared() -> None:
    kept = record(made())
    assert kept.detail.receipt is not None
    seen = kept.detail.receipt.replaced(renderer_name="seen", renderer_version=0)
    kept.detail = kept.detail.replaced(receipt=seen, canonical_json=None)
    found = kept.rerender(TODAY)
    assert found.state == "not_rendered"
    assert found.stored == seen
    assert "another program" in found.reason
