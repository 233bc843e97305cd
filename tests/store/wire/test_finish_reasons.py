"""What the finish reasons of all formats say about an answer."""

import pytest

from tooltrail.agents._questions import refusal_in
from tooltrail.records import Message, Origin
from tooltrail.wire.finish_reasons import End, end_of, is_refusal
from tooltrail.wire.responses import failure_of


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("refusal", "refused"),
        ("content_filter", "filtered"),
        ("content_filtered", "filtered"),
        ("guardrail_intervened", "filtered"),
        ("IMAGE_PROHIBITED_CONTENT", "filtered"),
        ("JAILBREAK", "filtered"),
        ("MODEL_ARMOR", "filtered"),
        ("max_output_tokens", "cut"),
        ("MAX_TOKENS", "cut"),
        ("stop", None),
        ("BRAND_NEW", None),
        (None, None),
    ],
)
def test_a_refusal_is_known_in_every_format(reason: str | None, end: End | None) -> None:
    assert end_of(reason) == end
    assert is_refusal(reason) is (end in {"refused", "filtered"})
    answer = Message(role="assistant", origin=Origin(wire_format="x", finish_reason=reason))
    assert bool(refusal_in(answer)) is is_refusal(reason)
    assert failure_of({"code": reason}, None).is_refusal is is_refusal(reason)
