"""The notification family: a notification was delivered, or could not be.

This is the smallest family, and the one to copy for a new family: a budget, a complete output, a
projector that makes the canonical result, a renderer, and the family itself.
"""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    Identifier,
    Json,
    confirming,
    json_of,
    one_line,
)
from tooltrail.records.family import Family


class NotificationOutput(FamilyOutput):
    """The complete result of a notification. A text of any length would be a `StreamRecord`.

    Attributes:
        delivered: whether the channel accepted the notification.
        channel: the channel: `slack`, `email`, `#on-call`, …
        notification_id: the channel's id of the notification.
    """

    delivered: bool
    channel: Annotated[Sentence, Field(min_length=1)]
    notification_id: Identifier | None = None

    def summary(self) -> str:
        """Whether the notification was delivered, and to which channel."""
        return f"notification {_outcome(delivered=self.delivered)}: {self.channel}"


def project_notification(result: NotificationOutput, _budget: Budget, cutter: Cutter) -> Json:
    """Bound the channel. The cutter counts what it leaves out; identifiers are never cut."""
    channel = cutter.text("channel", result.channel, NAME_CHARS)
    return confirming(result, cutter, channel=channel)


def render_notification(canonical: CanonicalResult, _budget: Budget) -> str:
    """Render one line, the outcome first. `one_line` prevents a name from adding a second line."""
    result = json_of(canonical)
    name = result.get("notification_id")
    known_as = "" if name is None else f" ({one_line(name)})"
    outcome = _outcome(delivered=result["delivered"])
    return f"Notification {outcome}: {one_line(result['channel'])}{known_as}\n"


def _outcome(*, delivered: bool) -> str:
    return "delivered" if delivered else "not delivered"


FAMILY = Family(
    name="notification",
    result_types=(NotificationOutput,),
    projector=project_notification,
    render=render_notification,
    budget=Budget(preview_chars=1_000, receipt_chars=3_000),
    tool_names=frozenset({"NotifyOperator", "notify", "send_notification"}),
)
