"""Renders the receipt of one call with the current renderer, and compares it with the stored one.

A stored receipt is never replaced: this module writes nothing. It renders the stored canonical
result with the stored policy. `verify` with families does more, and for all calls: it also makes
the canonical result again, from the complete output.
"""

from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

from pydantic import ValidationError

from tooltrail.journal.invocation import SEEN
from tooltrail.records import CanonicalResult, FamilyRegistry, render, stored_policy
from tooltrail.records._error_text import one_line
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError, InvalidRecordError, TooltrailError
from tooltrail.records.frozen import Frozen
from tooltrail.records.policy_documents import first_complaint
from tooltrail.store.views import ReceiptView

if TYPE_CHECKING:
    from tooltrail.store.read.reader import Reader
    from tooltrail.store.views import InvocationDetail

_REASON_CHARS: Final = 300
"""Most characters to quote of an error, whose message a family may choose."""

RerenderingState = Literal["same", "drifted", "incomparable", "not_rendered", "open"]


class Rerendering(Frozen):
    """The stored and the current receipt of one invocation.

    Attributes:
        state: `same` text; `drifted`: another text, or none; `incomparable`: this program lacks the
            family or cannot read the policy, or a surface is erased; `not_rendered`: another
            program made the receipt, or none is recorded; `open`: the invocation has not ended.
        reason: one sentence; empty for `same`.
        stored: the receipt that the model was shown; None if there is none.
        today: the receipt of the current renderer; None if it makes none.
    """

    invocation_id: UUID
    state: RerenderingState
    reason: str = ""
    stored: ReceiptView | None = None
    today: ReceiptView | None = None


def rerender(reader: "Reader", detail: "InvocationDetail", families: FamilyRegistry) -> Rerendering:
    """Compare the receipt of an invocation with the output of the current renderer of its family.

    Raises `DamageError` if a surface or the policy is missing or altered.
    """
    found, stored = detail.summary.id, detail.receipt
    if stored is None or detail.canonical_json is None or stored.renderer_name == SEEN:
        return _uncompared(detail)
    document = reader.policy_json(detail.policy_digest)
    family = families.find(detail.summary.family)
    if family is None:
        reason = f"the family {detail.summary.family!r} is not known to this program"
        return Rerendering(found, "incomparable", reason, stored)
    family = families.find(stored.renderer_name) or family
    try:
        # Only with this family: the budgets of other families stay as stored.
        policy = stored_policy(document, FamilyRegistry(family))
    except InvalidRecordError as error:
        reason = f"the policy is not readable: {_why(error)}"
        return Rerendering(found, "incomparable", reason, stored)
    try:
        made = render(CanonicalResult.from_json(detail.canonical_json), family, policy)
    except Exception as error:  # noqa: BLE001  foreign code of a family reads old results
        problem = f"cannot render the canonical result: {_why(error)}"
        reason = f"the current {family.name} family {problem}"
        return Rerendering(found, "drifted", reason, stored)
    by = (made.renderer_name, made.renderer_version)
    today = ReceiptView(made.text, digest_of(made.to_bytes()), *by, stored.policy_digest)
    if today.text == stored.text:
        return Rerendering(found, "same", "", stored, today)
    before, current = stored.renderer, today.renderer
    reason = f"the receipt was rendered by {before}, the current renderer is {current}"
    if current == before:
        reason = f"renderer {current} gives other text, although its version is the same"
    return Rerendering(found, "drifted", reason, stored, today)


def _uncompared(detail: "InvocationDetail") -> Rerendering:
    """The answer for a call whose receipt was not rendered from its canonical result."""
    found, receipt = detail.summary.id, detail.receipt
    if detail.summary.state == "started":
        return Rerendering(found, "open", "the invocation has not ended, so there is no receipt")
    if receipt is not None and receipt.renderer_name == SEEN:
        reason = f"another program made the receipt (renderer {SEEN})"
        return Rerendering(found, "not_rendered", reason, receipt)
    surface = "canonical" if receipt is not None else "receipt"
    reason = detail.absence_of(surface)
    if surface in detail.not_recorded:
        return Rerendering(found, "not_rendered", reason)
    if any(one.name == surface for one in detail.erased):
        return Rerendering(found, "incomparable", reason)
    raise DamageError(f"a surface of invocation {found} is missing", path=str(found))


def _why(error: BaseException) -> str:
    """An error in one line, without the values that it quotes."""
    if isinstance(error.__cause__, ValidationError):
        error = error.__cause__
    if isinstance(error, ValidationError):
        return first_complaint(error)
    text = str(error) if isinstance(error, TooltrailError) else f"{type(error).__name__}: {error}"
    return one_line(text, _REASON_CHARS)
