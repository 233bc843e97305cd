"""Notifications: one line, whatever the names are."""

import pytest
from pydantic import ValidationError
from tests.records.support import check_golden, omitted, result_of, run, run_result

from tooltrail.records import NotificationOutput

DELIVERED = NotificationOutput(delivered=True, channel="#on-call", notification_id="ntf_7")
NOT_DELIVERED = NotificationOutput(delivered=False, channel="email")


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("notification", 1),
        notification_delivered=DELIVERED,
        notification_not_delivered=NOT_DELIVERED,
    )


def test_the_canonical_result_has_the_fields_of_the_family_and_no_idle_ones() -> None:
    assert run_result(DELIVERED) == {
        "delivered": True,
        "channel": "#on-call",
        "notification_id": "ntf_7",
    }
    assert run_result(NOT_DELIVERED) == {"delivered": False, "channel": "email"}


def test_the_summary_says_whether_and_where() -> None:
    assert run(DELIVERED)[0].canonical.summary_text == "notification delivered: #on-call"
    assert run(NOT_DELIVERED)[0].canonical.summary_text == "notification not delivered: email"


def test_a_long_channel_is_cut_and_counted_and_an_identifier_is_kept_whole() -> None:
    output = NotificationOutput(delivered=True, channel="c" * 241, notification_id="n" * 256)
    projection, receipt = run(output)
    assert result_of(projection) == {
        "delivered": True,
        "channel": "c" * 239 + "\u2026",
        "notification_id": "n" * 256,
        "truncated": True,
    }
    assert omitted(projection.omissions, "channel", "chars") == 2
    assert receipt.text == f"Notification delivered: {'c' * 239}\u2026 ({'n' * 256})\n"


@pytest.mark.parametrize(
    "fields", [{"channel": ""}, {"notification_id": ""}, {"notification_id": "n" * 257}]
)
def test_names_that_name_nothing_or_cannot_be_kept_whole_are_refused(
    fields: dict[str, str],
) -> None:
    with pytest.raises(ValidationError):
        NotificationOutput.model_validate({"delivered": True, "channel": "email", **fields})
