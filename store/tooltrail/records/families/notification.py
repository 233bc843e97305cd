"""The notification family: somebody was notified, or could not be.

The smallest family there is, and the one to copy for a new one: a budget, a complete output, a
canonical result, a projector from the first to the second, a renderer, and the family itself.
"""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    ConfirmingResult,
    Identifier,
    bounded,
    one_line,
)
from tooltrail.records.family import Family, Renderer


class NotificationBudget(Budget):
    """Bounds of the notification family; a receipt of one line is far below them.

    A family with a list says in `item_chars` how much room one entry takes in a receipt.
    """

    preview_chars: PreviewChars = 1_000
    receipt_chars: ReceiptChars = 3_000


class NotificationOutput(FamilyOutput):
    """What the tool knows, whole. A text of any length would be a `StreamRecord`.

    Attributes:
        delivered: whether the channel took the notification.
        channel: where it went: `slack`, `email`, `#on-call`, …
        notification_id: what the channel calls it.
    """

    delivered: bool
    channel: Annotated[Sentence, Field(min_length=1)]
    notification_id: Identifier | None = None

    def summary(self) -> str:
        """Whether it was delivered, and where."""
        return f"notification {_outcome(delivered=self.delivered)}: {self.channel}"


class NotificationResult(ConfirmingResult):
    """The canonical result: bounded, and made of JSON types."""

    delivered: bool
    channel: str
    notification_id: str | None = None


def project_notification(
    result: NotificationOutput, _budget: NotificationBudget, cutter: Cutter
) -> NotificationResult:
    """Bound the channel. Whatever the cutter leaves out, it counts; an identifier is kept whole."""
    channel = cutter.text("channel", result.channel, NAME_CHARS)
    return bounded(NotificationResult, result, cutter, channel=channel)


def render_notification(canonical: CanonicalResult, _budget: NotificationBudget) -> str:
    """One line, the outcome first. `one_line` keeps a name from passing for a second one."""
    result = NotificationResult.model_validate(canonical.result)
    known_as = "" if result.notification_id is None else f" ({one_line(result.notification_id)})"
    outcome = _outcome(delivered=result.delivered)
    return f"Notification {outcome}: {one_line(result.channel)}{known_as}\n"


def _outcome(*, delivered: bool) -> str:
    return "delivered" if delivered else "not delivered"


FAMILY = Family(
    name="notification",
    result_types=(NotificationOutput,),
    projector=project_notification,
    renderer=Renderer("notification", 1, render_notification),
    budget=NotificationBudget(),
    tool_names=frozenset({"NotifyOperator", "notify", "send_notification"}),
)
