"""What cannot be published yet is shown without a reference, and said to be not stored."""

import pytest
from tests.records.support import whole
from tests.support.family_examples import EXAMPLES

from tooltrail.records import (
    DEFAULT_POLICY,
    CanonicalResult,
    CompleteOutput,
    Cutter,
    Postponed,
    StreamRecord,
    default_families,
    project,
    render,
)


class AwayPublisher:
    """A sink that cannot be reached."""

    def publish(self, stream: StreamRecord) -> Postponed:
        return Postponed("the bucket\ndoes not answer")


def test_a_stream_that_is_not_stored_yet_is_shown_without_a_reference_and_with_the_reason() -> None:
    cutter = Cutter(DEFAULT_POLICY, AwayPublisher())
    shown = cutter.stream(whole(b"line of text\n" * 5000), 1000)
    assert shown.text is not None
    assert "; full output: not stored yet]" in shown.text
    assert (shown.truncated, shown.artifact) == (True, None)
    assert (cutter.references, cutter.published) == (None, [])
    reasons = {omission.reason for omission in cutter.omissions}
    assert reasons == {"preview budget; not stored yet: the bucket does not answer"}


def test_what_is_postponed_of_a_stream_that_is_not_shown_and_of_a_list_is_no_reference() -> None:
    cutter = Cutter(DEFAULT_POLICY, AwayPublisher())
    shown = cutter.unseen(whole(b"\0" * 9), "no text")
    assert (shown.truncated, shown.artifact) == (True, None)
    assert cutter.omissions[0].reason == "no text; not stored yet: the bucket does not answer"
    cutter.items("rows", ["a", "b", "c"], 1)
    assert cutter.hidden_list() is None
    assert cutter.references is None


class BodyPublisher:
    """A sink that is away, while the bytes go somewhere else."""

    def publish(self, stream: StreamRecord) -> Postponed:
        return Postponed("no answer", "kept in the database")


def test_where_the_bytes_are_instead_is_said() -> None:
    cutter = Cutter(DEFAULT_POLICY, BodyPublisher())
    shown = cutter.stream(whole(b"line of text\n" * 5000), 1000)
    assert "; full output: kept in the database]" in (shown.text or "")
    assert cutter.omissions[0].reason == "preview budget; kept in the database: no answer"


FAMILIES = {kind: family for family in default_families() for kind in family.result_types}


@pytest.mark.parametrize("summary", EXAMPLES)
def test_every_family_gets_along_without_references(summary: str) -> None:
    family = FAMILIES[type(EXAMPLES[summary])]
    output = CompleteOutput.success("Tool", EXAMPLES[summary])
    projection = project(output, family, DEFAULT_POLICY, AwayPublisher())
    assert projection.artifacts == ()
    canonical = projection.canonical
    assert CanonicalResult.from_json(canonical.to_json()) == canonical
    receipt = render(canonical, family, DEFAULT_POLICY)
    assert "sha256/" not in receipt.text
    assert receipt.omissions == ()
