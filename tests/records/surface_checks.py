"""What holds of both surfaces of any result, whatever its family."""

from typing import Any

from hypothesis import strategies as st
from tests.records.support import MARKER, number, surfaces
from tests.support.policies import policy_with

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    FamilyOutput,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
    default_families,
)

labels: st.SearchStrategy[str] = st.one_of(
    st.text(st.characters(), min_size=1, max_size=30),
    st.sampled_from(
        ["src/a.py", "a\nM b.py", "\u202egnp.exe", "\ud800", "\x1b[2K", "e\u0301" * 400]
    ),
    st.tuples(
        st.sampled_from(["x", "dir/", "\n", "\0", "\u6f22", "\ud83d"]), st.integers(1, 1500)
    ).map(lambda run: run[0] * run[1]),
)
"""Names and sentences as a tool may give them."""

payloads: st.SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.tuples(
            st.sampled_from(
                [b"line\n", b'{"a":[1,2]}', b"[1,", b"\xff", b"\0", "\u6f22".encode(), b"x" * 90]
            ),
            st.integers(1, 400),
        ),
        max_size=4,
    ).map(lambda runs: b"".join(piece * n for piece, n in runs)),
)
"""Bytes of a stream."""


def policies_of(family: str, **numbers: int) -> st.SearchStrategy[Policy]:
    """Policies whose budget of one family is narrow; its receipt has little room or more."""

    def policy_of(preview: int, more: int) -> Policy:
        budget = {"preview_chars": preview, "receipt_chars": preview + 2000 + more, **numbers}
        return policy_with(**{family: budget})

    return st.builds(policy_of, st.integers(1000, 6000), st.integers(0, 3000))


def check_surfaces(
    result: FamilyOutput, family: str, policy: Policy
) -> tuple[dict[str, Any], Projection, Receipt]:
    """Both surfaces, after all that holds for any of them is seen to hold."""
    output = CompleteOutput.success("tool", result)
    projection, receipt, publisher = surfaces(output, family, policy)
    again, receipt_again, _ = surfaces(output.model_copy(deep=True), family, policy)
    canonical = projection.canonical
    fields = canonical.result
    assert fields is not None
    assert canonical.to_json() == again.canonical.to_json()
    assert receipt == receipt_again
    assert CanonicalResult.from_json(canonical.to_json()) == canonical
    assert receipt.omissions == ()
    budget = policy.budget_of(default_families().named(family), "tool")
    assert len(receipt.text) <= budget.receipt_chars
    assert receipt.text.endswith("\n")
    receipt.to_bytes()
    assert fields.get("truncated", False) is any(
        o.field != "summary_text" for o in projection.omissions
    )
    assert set(publisher.published) == {reference.path for _, reference in projection.artifacts}
    listed = fields.get("artifacts", [])
    assert listed == [{"path": reference.path} for _, reference in projection.artifacts]
    output.to_json()
    return fields, projection, receipt


def check_omissions(
    projection: Projection, stream: StreamRecord, text: str | None, encoding: str | None
) -> None:
    """What all stages left out of a stream is what was produced of it and is not shown."""
    shown_bytes = stream.size
    if encoding == "binary":
        shown_bytes = 0
    elif text and "[output truncated: " in text:
        match = MARKER.search(text)
        shown_bytes -= number(match["bytes"]) if match else stream.size
    missing = [o for o in projection.omissions if (o.field, o.unit) == (stream.role, "bytes")]
    assert sum(o.before - o.after for o in missing) == stream.produced_size - shown_bytes
