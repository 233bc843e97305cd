"""The verdict on a submission as a row, so that many can be counted without their documents."""

from typing import Any, cast

from tooltrail.records import CanonicalResult, canonical_json
from tooltrail.store._engines.prepared import Row

FAMILY = "structured_output"
"""The family whose results are verdicts, and the name of its renderer."""


_MEMBERS = frozenset({"schema_digest", "attempt", "valid"})


def verdict_row(canonical: CanonicalResult) -> Row | None:
    """The row of a submission, without the key of its invocation; None where it has no verdict.

    Args:
        canonical: a canonical result of the family.
    """
    result = cast("dict[str, Any]", canonical.result or {})
    if not result.keys() >= _MEMBERS:
        return None  # an error, or of a family of somebody else's that is called the same
    errors: list[Any] = [*(result.get("errors") or ())]
    counted: dict[str, Any] = {"errors": errors, "error_count": result.get("error_count") or 0}
    return {
        "agent_digest": None,
        "schema_digest": result["schema_digest"],
        "attempt": result["attempt"],
        "valid": result["valid"],
        "document": canonical_json.encode_text(canonical_json.with_lists(counted)),
    }
