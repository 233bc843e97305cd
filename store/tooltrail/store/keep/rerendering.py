"""What today's renderers give, beside what the model was shown.

A stored receipt is never made anew in place: rerendering compares, and writes nothing. It works
from the canonical result and the policy as they are stored, never from the complete output.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import ValidationError

from tooltrail.records import (
    CanonicalResult,
    DamageError,
    Family,
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    TooltrailError,
    UnavailableError,
    render,
    stored_policy,
)
from tooltrail.store._reading.listing import Listed, iter_pages
from tooltrail.store.reader import Reader
from tooltrail.store.views import InvocationDetail

_REASON_CHARS = 300
"""Longest quotation of an error, which a family may word as it likes."""

RerenderingState = Literal["same", "drifted", "incomparable", "open", "damaged"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The text of a receipt and who worded it."""

    text: str
    renderer_name: str
    renderer_version: int

    @property
    def renderer(self) -> str:
        """Name and version."""
        return f"{self.renderer_name} {self.renderer_version}"


@dataclass(frozen=True, slots=True)
class Rerendering:
    """One receipt, then and today.

    Attributes:
        invocation_id: of the invocation; None, only from `iter_rerenderings`, when its row has no
            readable id, which the reason then says.
        state: `same` text; `drifted`; `incomparable`, because this program lacks the family or
            cannot read the policy; `open`, because the invocation has not ended; `damaged`, only
            from `iter_rerenderings`, because a row, a surface or the policy cannot be read.
        reason: one sentence; empty for `same`.
        stored: what the model was shown; None when there is no receipt.
        today: what the renderer gives now; None when it gives nothing.
    """

    invocation_id: UUID | None
    state: RerenderingState
    reason: str = ""
    stored: Wording | None = None
    today: Wording | None = None

    @property
    def drifted(self) -> bool:
        """Whether today's renderer gives another text, or none at all."""
        return self.state == "drifted"


def rerender(
    reader: Reader, invocation: InvocationDetail | str | UUID, families: FamilyRegistry
) -> Rerendering:
    """Compare the receipt of an invocation with what its family's renderer gives today.

    Args:
        reader: of the store.
        invocation: itself, or a name as for `Reader.invocation`.
        families: what this program knows, `Store.families` for instance.

    Raises:
        NotFoundError: no invocation has this name; AmbiguousNameError: several have.
        DamageError: a surface or the policy is missing or altered.
    """
    detail = _detail(reader, invocation)
    found, receipt = detail.summary.id, detail.receipt
    if detail.summary.state == "started":
        return Rerendering(found, "open", "the invocation has not ended, so there is no receipt")
    if receipt is None or detail.canonical_json is None:
        raise DamageError(f"a surface of invocation {found} is missing", path=str(found))
    stored = Wording(receipt.text, receipt.renderer_name, receipt.renderer_version)
    document = reader.policy_json(receipt.policy_digest)
    try:
        family = _known_family(families, detail.summary.family)
        family = families.of_receipt(receipt.renderer_name, family)
        policy = _policy_as_stored(document, family)
    except InvalidRecordError as error:
        return Rerendering(found, "incomparable", str(error), stored)
    return _compared(found, stored, detail.canonical_json, family, policy)


def iter_rerenderings(
    reader: Reader, families: FamilyRegistry, *, session: UUID | None = None
) -> Iterator[Rerendering]:
    """Compare the receipts of all invocations that have ended, the oldest first.

    At constant memory, whatever their number. A record that is damaged does not end it, whichever
    of its rows cannot be read.

    Args:
        reader: of the store.
        families: what this program knows.
        session: the invocations of this session alone.
    """
    for page in iter_pages(reader.database, session):
        for listed in page:
            if not listed.open:
                yield _rerender_if_readable(reader, listed, families)


def _detail(reader: Reader, invocation: InvocationDetail | str | UUID) -> InvocationDetail:
    return invocation if isinstance(invocation, InvocationDetail) else reader.invocation(invocation)


def _rerender_if_readable(reader: Reader, listed: Listed, families: FamilyRegistry) -> Rerendering:
    if listed.id is None:
        return Rerendering(None, "damaged", f"{listed.name} has no readable id")
    try:
        return rerender(reader, listed.id, families)
    except UnavailableError:
        raise
    except TooltrailError as error:  # not found, when an index has lost what is listed
        return Rerendering(listed.id, "damaged", str(error))


def _known_family(families: FamilyRegistry, name: str) -> Family:
    family = families.find(name)
    if family is None:
        raise InvalidRecordError(f"the family {name!r} is not known to this program")
    return family


def _policy_as_stored(document: str, family: Family) -> Policy:
    """The policy behind a stored document, whatever families and numbers came and went since.

    Raises:
        InvalidRecordError: it is no policy of today's.
    """
    try:
        # With this family alone: those of others stay as they are written.
        return stored_policy(document, FamilyRegistry(family))
    except InvalidRecordError as error:
        raise InvalidRecordError(f"the policy is not readable: {_why(error)}") from error


def _compared(
    found: UUID, stored: Wording, document: str, family: Family, policy: Policy
) -> Rerendering:
    try:
        made = render(CanonicalResult.from_json(document), family, policy)
    except Exception as error:  # noqa: BLE001  a family is anybody's code, and reads old results
        reason = f"today's {family.name} family cannot word the canonical result: {_why(error)}"
        return Rerendering(found, "drifted", reason, stored)
    today = Wording(made.text, made.renderer_name, made.renderer_version)
    if today.text == stored.text:
        return Rerendering(found, "same", "", stored, today)
    if today.renderer == stored.renderer:
        reason = f"renderer {today.renderer} gives other text, although its version is the same"
    else:
        reason = f"it was worded by renderer {stored.renderer}, today's is {today.renderer}"
    return Rerendering(found, "drifted", reason, stored, today)


def _why(error: BaseException) -> str:
    """An error in one line, without the values that it is about."""
    if isinstance(error.__cause__, ValidationError):
        return _why(error.__cause__)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    elif isinstance(error, TooltrailError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:_REASON_CHARS]
