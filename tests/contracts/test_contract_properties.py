"""What holds for every family, whatever a tool gives and whatever a policy says."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.support import artifact_path, captured, omitted, surfaces, whole
from tests.support.cases import each_case
from tests.support.effort import times
from tests.support.family_examples import EXAMPLES
from tests.support.family_outputs import OUTPUTS
from tests.support.generated import mapped, texts, words
from tests.support.shown_streams import shown_bytes, slots_of

from tooltrail.records import (
    DEFAULT_POLICY,
    Budget,
    CanonicalResult,
    CompleteOutput,
    Family,
    FamilyOutput,
    Omission,
    Policy,
    StreamRecord,
    ToolError,
    canonical_json,
    default_families,
    load_policy,
    render,
)

REGISTRY = default_families()
FAMILIES = tuple(REGISTRY)
FAMILY_OF = {kind: family for family in FAMILIES for kind in family.result_types}
TOOL = "t"

HIDDEN = {"content", "changed_files", "items"}
"""Lists whose entries beyond the budget are counted together."""


def _limits(family: Family, name: str) -> tuple[int, int]:
    """The range of a number of a budget."""
    bounds = type(family.budget).model_fields[name].metadata
    low = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
    return low, next(bound.le for bound in bounds if hasattr(bound, "le"))


@st.composite
def _budgets(draw: st.DrawFn, family: Family) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name in type(family.budget).model_fields:
        low, high = _limits(family, name)
        numbers[name] = draw(st.integers(low, min(high, low + 5000)) | st.integers(low, high))
    frame = 2000 + numbers["max_items"] * family.budget.item_chars
    more = draw(st.integers(0, 3000))
    numbers["receipt_chars"] = numbers["preview_chars"] + frame + more
    return numbers


@st.composite
def policies(draw: st.DrawFn, family: Family) -> Policy:
    """Small and large budgets of one family, overridden for its tool or not."""
    document: dict[str, Any] = {
        "families": {family.name: draw(_budgets(family))},
    }
    if draw(st.booleans()):
        number = st.sampled_from([-1, 0, 1, 2, 1500, 40_000, 10**9])
        names = st.sampled_from(sorted(type(family.budget).model_fields))
        other = draw(st.dictionaries(names, number))
        document["tools"] = {TOOL: {"family": family.name, "budget": other}}
    return load_policy(document, REGISTRY)


def _success(result: FamilyOutput) -> CompleteOutput:
    return CompleteOutput.success(TOOL, result)


def _inside(omissions: tuple[Omission, ...]) -> list[Omission]:
    """Those of the result, not of the summary beside it."""
    return [o for o in omissions if o.field != "summary_text"]


def _previews(value: object) -> Iterator[str]:
    """Every preview in a result; that of a command line has a budget of its own."""
    if isinstance(value, list):
        for entry in cast("list[object]", value):
            yield from _previews(entry)
    elif isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            if name.endswith("_preview") or name == "snippet":
                yield member if isinstance(member, str) else canonical_json.encode_text(member)
            elif name not in ("structured", "value"):
                yield from _previews(member)


def _scopes(value: object, indices: list[int]) -> Iterator[tuple[list[int], int]]:
    """Each list of artifacts: the indices that belong to it, and its length."""
    if isinstance(value, list):
        for entry in cast("list[object]", value):
            yield from _scopes(entry, indices)
    elif isinstance(value, dict):
        members = cast("dict[str, object]", value)
        mine = [] if "artifacts" in members else indices
        for name, member in members.items():
            if isinstance(member, int) and (name == "artifact" or name.endswith("_artifact")):
                mine.append(member)
            elif name not in ("structured", "value") and not name.endswith("_preview"):
                yield from _scopes(member, mine)
        if "artifacts" in members:
            yield mine, len(cast("list[object]", members["artifacts"]))


def _whole_flag(result: dict[str, Any]) -> bool:
    """The flag for everything; small results have none when nothing was cut."""
    if "truncated" in result:
        return result["truncated"] is True
    if "task" in result:
        return result["task"].get("truncated") is True
    return result.get("report_truncated") is True


def _ends_only(result: FamilyOutput, policy: Policy) -> FamilyOutput:
    """The same complete result as a capture hands it over, without its content."""

    def without_content(part: Any) -> Any:
        if not isinstance(part, StreamRecord) or part.loss_reason is not None:
            return part
        return part if part.content is None else captured(part.content, policy, part.role)

    return cast("FamilyOutput", mapped(result, without_content))


def test_every_type_of_result_has_a_strategy() -> None:
    assert OUTPUTS.keys() == FAMILY_OF.keys()


def test_every_family_has_a_budget_in_the_default_policy() -> None:
    assert {f.name: f.budget for f in FAMILIES} == DEFAULT_POLICY.families


kinds = pytest.mark.parametrize("kind", OUTPUTS, ids=lambda kind: kind.__name__)


@kinds
@settings(max_examples=times(15), deadline=None)
@given(data=st.data())
def test_any_result_is_bounded_repeatable_and_accounted_for(
    kind: type[FamilyOutput], data: st.DataObject
) -> None:
    family = FAMILY_OF[kind]
    output = _success(data.draw(OUTPUTS[kind]))
    policy = data.draw(policies(family))
    projection, receipt, publisher = surfaces(output, family.name, policy)
    canonical, budget = projection.canonical, policy.budget_of(family, TOOL)

    assert (canonical.status, canonical.error) == ("success", None)
    result = cast("dict[str, Any]", canonical.result)
    assert 1 <= len(canonical.summary_text) <= 200

    stored = canonical.to_json()
    again = CanonicalResult.from_json(stored)
    assert again.to_json() == stored
    assert render(again, family, policy) == receipt
    repeated, same_receipt, _ = surfaces(output.model_copy(deep=True), family.name, policy)
    assert (repeated.canonical.to_json(), repeated.omissions) == (stored, projection.omissions)
    assert same_receipt == receipt

    assert sum(map(len, _previews(result))) <= budget.preview_chars
    assert 1 <= len(receipt.text) <= budget.receipt_chars
    assert receipt.text.endswith("\n")
    assert receipt.omissions == ()
    assert receipt.to_bytes().decode() == receipt.text

    assert _whole_flag(result) is bool(_inside(projection.omissions))
    _check_streams(output, result, projection.omissions)
    for indices, length in _scopes(result, []):
        assert sorted(indices) == list(range(length))
    assert publisher.published.keys() == {p.reference.path for p in projection.artifacts}


def _check_streams(
    output: CompleteOutput,
    result: dict[str, Any],
    omissions: tuple[Omission, ...],
) -> None:
    assert output.result is not None
    slots = slots_of(output.result, result)
    hidden = 0
    for stream in output.streams:
        lost = stream.produced_size - stream.size
        missing = omitted(omissions, stream.role, "bytes")
        slot = slots.get(stream.role)
        if stream.role.endswith("order"):
            # It says when the others came and is not to be shown, but what is lost of it is lost,
            # and with an item that is not shown it is left out like all of it.
            assert (slot, missing) == (None, lost)
            number = stream.role.partition(".")[0]
            if number.isdecimal() and int(number) > len(result["items"]):
                hidden += stream.size
        elif slot is None:
            assert missing == lost
            hidden += stream.size
        else:
            assert missing == stream.produced_size - shown_bytes(stream, slot.text)
            if slot.truncated is not None:
                cut = any(o.field == stream.role for o in omissions)
                assert slot.truncated is cut is (missing > 0)
            assert slot.path in (None, artifact_path(stream))
    lists = HIDDEN - {stream.role for stream in output.streams}
    assert sum(omitted(omissions, name, "bytes") for name in lists) == hidden


@kinds
@settings(max_examples=times(10), deadline=None)
@given(data=st.data())
def test_a_stream_is_whole_in_the_result_or_an_artifact_and_never_both(
    kind: type[FamilyOutput], data: st.DataObject
) -> None:
    family = FAMILY_OF[kind]
    output = _success(data.draw(OUTPUTS[kind]))
    projection, _, _ = surfaces(output, family.name, data.draw(policies(family)))
    assert output.result is not None
    slots = slots_of(output.result, cast("dict[str, Any]", projection.canonical.result))
    for stream in output.streams:
        if (slot := slots.get(stream.role)) is not None:
            is_whole = shown_bytes(stream, slot.text) == stream.size
            assert is_whole is (slot.path is None)


@kinds
@settings(max_examples=times(10), deadline=None)
@given(data=st.data())
def test_a_result_known_by_the_ends_of_its_streams_gives_the_same_surfaces(
    kind: type[FamilyOutput], data: st.DataObject
) -> None:
    family = FAMILY_OF[kind]
    result = data.draw(OUTPUTS[kind])
    policy = data.draw(policies(family))
    projection, receipt, _ = surfaces(_success(result), family.name, policy)
    from_ends, same_receipt, _ = surfaces(_success(_ends_only(result, policy)), family.name, policy)
    assert from_ends.canonical.to_json() == projection.canonical.to_json()
    assert from_ends.omissions == projection.omissions
    assert same_receipt == receipt


@each_case("example", EXAMPLES.values(), ids=EXAMPLES)
def test_a_long_result_known_by_the_ends_of_its_streams_gives_the_same_surfaces(
    example: FamilyOutput,
) -> None:
    family = FAMILY_OF[type(example)]
    long = cast("FamilyOutput", mapped(example, _lengthened))
    ends = _ends_only(long, DEFAULT_POLICY)
    assert all(stream.content is None for stream in _success(ends).streams)
    assert surfaces(_success(ends), family.name)[:2] == surfaces(_success(long), family.name)[:2]


def _lengthened(part: Any) -> Any:
    """A stream of more than both ends that a capture keeps; JSON, which must be whole, stays."""
    if not isinstance(part, StreamRecord) or part.role in ("structured", "value"):
        return part
    return whole(b"".join(b"line %06d \xe6\xbc\xa2\n" % n for n in range(40_000)), part.role)


@each_case("example", EXAMPLES.values(), ids=EXAMPLES)
def test_bytes_that_are_no_utf_8_are_shown_escaped_and_said_to_be(example: FamilyOutput) -> None:
    told = cast("FamilyOutput", mapped(example, _in_latin_1))
    projection, _, _ = surfaces(_success(told), FAMILY_OF[type(example)].name)
    slots = slots_of(told, cast("dict[str, Any]", projection.canonical.result))
    shown = [one.text for role, one in slots.items() if not _is_json(role) and one.text is not None]
    assert shown == [r"caf\xe9 au lait"] * len(shown)
    encodings = [*_encodings(projection.canonical.result)]
    assert encodings == ["utf-8-escaped"] * len(shown)
    assert bool(shown) is any(not _is_json(one.role) for one in _success(told).streams)


def _is_json(role: str) -> bool:
    return role in ("structured", "value")


def _in_latin_1(part: Any) -> Any:
    if not isinstance(part, StreamRecord) or _is_json(part.role):
        return part
    return whole("caf\u00e9 au lait".encode("latin-1"), part.role)


def _encodings(value: object) -> Iterator[object]:
    """What every `_encoding` in a result says."""
    for member in cast("list[object]", value) if isinstance(value, list) else ():
        yield from _encodings(member)
    for name, member in cast("dict[str, object]", value).items() if isinstance(value, dict) else ():
        if name.endswith("_encoding"):
            yield member
        else:
            yield from _encodings(member)


@settings(max_examples=times(10), deadline=None)
@given(data=st.data())
def test_each_item_of_a_batch_answers_for_itself(data: st.DataObject) -> None:
    kind = next(kind for kind in OUTPUTS if kind.__name__ == "CommandBatchOutput")
    policy = data.draw(policies(FAMILY_OF[kind]))
    projection, _, _ = surfaces(_success(data.draw(OUTPUTS[kind])), "command_batch", policy)
    assert projection.canonical.result is not None
    items = cast("list[dict[str, Any]]", projection.canonical.result["items"])
    for n, item in enumerate(items):
        if "result" in item:
            own = (f"items[{n}].result.", f"{n + 1}.")
            cut = any(o.field.startswith(own) for o in projection.omissions)
            assert item["result"]["truncated"] is cut


errors = st.builds(
    ToolError,
    kind=words,
    message=texts,
    details=st.none() | st.lists(st.floats() | texts, max_size=9),
    recovery_hint=st.none() | texts,
    retryable=st.booleans(),
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@settings(max_examples=times(10), deadline=None)
@given(data=st.data())
def test_any_failure_has_the_same_shape_in_every_family(
    family: Family, data: st.DataObject
) -> None:
    error = data.draw(errors)
    policy = data.draw(policies(family))
    output = CompleteOutput.failure(TOOL, error)
    projection, receipt, publisher = surfaces(output, family.name, policy)
    canonical = projection.canonical
    assert canonical.error is not None
    assert (canonical.status, canonical.result) == ("error", None)
    assert (canonical.error.kind, canonical.error.retryable) == (error.kind, error.retryable)
    assert CanonicalResult.from_json(canonical.to_json()).to_json() == canonical.to_json()
    assert receipt.text.startswith(f"Error ({error.kind}): ")
    assert [line for line in receipt.text.split("\n") if line.startswith("Retryable: ")] == [
        f"Retryable: {'yes' if error.retryable else 'no'}"
    ]
    assert receipt.renderer_name == "error"
    # The hard bound of the message.
    long = {"error.message"} if len(error.message) > 10_000 else set[str]()
    assert {one.role for one in publisher.published.values()} == long
    limits = policy.error
    # A control character takes up to six when it is escaped.
    paths = sum(len(path) + 40 for path in publisher.published)
    assert len(receipt.text) <= 6 * (2 * limits.message_chars + limits.details_chars) + 500 + paths
    named = {o.field for o in projection.omissions}
    assert ("error.message" in named) is (canonical.error.message != error.message)
    assert ("error.recovery_hint" in named) is (
        canonical.error.recovery_hint != error.recovery_hint
    )
    details = canonical.error.details
    if long:
        assert isinstance(details, dict)
        details = details.get("details")
    assert ("error.details" in named) is isinstance(details, dict)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@settings(max_examples=times(10), deadline=None)
@given(data=st.data())
def test_any_override_gives_a_budget_whose_stages_agree(
    family: Family, data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(type(family.budget).model_fields))
    wild = st.integers() | st.sampled_from([0, 10**30, -(10**30)])
    budget: Budget = family.budget.overridden(data.draw(st.dictionaries(names, wild)))
    assert budget.receipt_chars >= (
        budget.preview_chars + 2000 + budget.max_items * type(budget).item_chars
    )
    assert type(budget).model_validate(budget.model_dump()) == budget
