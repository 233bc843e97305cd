"""Bounds of what is shown. Each family defines its own numbers; the shared bounds are here.

Budgets of different stages must agree: a receipt always has room for the previews and their frame,
so that a second cut cannot remove what the first one showed.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from tooltrail.records._error_text import one_line
from tooltrail.records._model import Record
from tooltrail.records._text_cuts import REACH
from tooltrail.records.complaints import proposal
from tooltrail.records.errors import InvalidRecordError

MAX_PREVIEW_CHARS = 256_000
MIN_PREVIEW_CHARS = 1_000
"""Room for the marker of a cut (counts and a path) and for some text on both sides of it."""

MAX_UTF8_BYTES = 4
"""The most bytes of one character in UTF-8."""

MAX_EDGE_BYTES = MAX_UTF8_BYTES * (MAX_PREVIEW_CHARS + REACH)
"""Bytes of either end of a stream that the largest preview may need."""

FRAME_CHARS = 2_000
"""Room in a receipt for everything but previews and items: outcome, headings, paths."""

MAX_RECEIPT_CHARS = 512_000

MAX_ITEMS = 256

MAX_MESSAGE_CHARS = 10_000
"""Longest message or hint of a canonical error; a longer one is a stream, and mostly an artifact.
Also the longest sentence that a policy can allow."""

MIN_SHARE_CHARS = MIN_PREVIEW_CHARS // 2
"""Room for one of several previews: some text, the marker of a cut with a path of 200 characters,
and the notice of a loss. The smallest budget has room for two streams, the most per list entry."""

PreviewChars = Annotated[int, Field(ge=MIN_PREVIEW_CHARS, le=MAX_PREVIEW_CHARS)]
ReceiptChars = Annotated[int, Field(ge=0, le=MAX_RECEIPT_CHARS)]
ItemCount = Annotated[int, Field(ge=1, le=MAX_ITEMS)]


class Bounds(Record):
    """Numbers that bound what is shown. Only integers are accepted: no boolean, float or text."""

    model_config = ConfigDict(strict=True)

    def overridden(self, values: Mapping[str, int], place: str = "") -> Self:
        """A copy of the bounds with other numbers, each clamped; `place` begins their paths.

        Raises:
            InvalidRecordError: a name is unknown, a value is not an integer, or the numbers cannot
                agree.
        """
        clamped = {name: self._clamp(name, value, place) for name, value in values.items()}
        try:
            return type(self).model_validate(self._agreeing({**self.model_dump(), **clamped}))
        except ValidationError as error:
            raise InvalidRecordError(f"an impossible budget: {error}") from error

    def _agreeing(self, numbers: dict[str, int]) -> dict[str, int]:
        """The numbers, adjusted where one depends on another."""
        return numbers

    def _clamp(self, name: str, value: Any, place: str) -> int:
        fields = type(self).model_fields
        field = fields.get(name)
        if field is None:
            closest = proposal(name, fields) or f"; known keys: {', '.join(fields)}"
            message = f"{place}{name}: unknown key `{name}`{closest}"
            raise InvalidRecordError(one_line(message))
        if not isinstance(value, int) or isinstance(value, bool):
            message = f"{place}{name} must be an integer, not {type(value).__name__}"
            raise InvalidRecordError(one_line(message))
        number: int = value
        for bound in field.metadata:
            number = max(number, getattr(bound, "ge", number))
            number = min(number, getattr(bound, "le", number))
        return number


class Budget(Bounds):
    """The bounds of one family's results and receipts.

    Attributes:
        preview_chars: characters of all previews of one result together.
        receipt_chars: characters of the complete receipt.
        max_items: most entries of a list that are shown; the rest are counted.
    """

    item_chars: ClassVar[int] = 0
    """Room in a receipt for the text around one item: its names, numbers and artifact path."""

    preview_chars: PreviewChars = 20_000
    receipt_chars: ReceiptChars = 22_000
    max_items: ItemCount = 32

    @property
    def frame_chars(self) -> int:
        """Characters of the receipt that are reserved for its frame."""
        return FRAME_CHARS + self.max_items * self.item_chars

    @property
    def spare_chars(self) -> int:
        """Characters of the receipt that are not reserved for its frame."""
        return self.receipt_chars - self.frame_chars

    @model_validator(mode="after")
    def _check_stages_agree(self) -> Self:
        if self.spare_chars < self.preview_chars:
            raise ValueError(
                f"receipt_chars must be at least preview_chars + {self.frame_chars}, "
                f"so that the receipt has room for the preview"
            )
        return self

    def _agreeing(self, numbers: dict[str, int]) -> dict[str, int]:
        frame = FRAME_CHARS + numbers["max_items"] * self.item_chars
        needed = numbers["preview_chars"] + frame
        return {**numbers, "receipt_chars": max(numbers["receipt_chars"], needed)}


class ErrorBudget(Bounds):
    """Bounds of the shared error payload, in characters.

    Attributes:
        message_chars: limit of the message, and of the hint, in the receipt.
        details_chars: limit of the details as JSON.
    """

    message_chars: Annotated[int, Field(ge=100, le=MAX_MESSAGE_CHARS)] = 700
    details_chars: Annotated[int, Field(ge=100, le=100_000)] = 1_000


COMPACTION_CHARS = 1_000
"""Characters of JSON that a compacted result has beside its essential parts, by default."""


def fair_shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide `total` so that no share exceeds its size and the rest is shared equally.

    If `total` suffices for `min(size, n)` of each size, for any `n`, each share has at least that.
    """
    shares = [0] * len(sizes)
    for done, n in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[n] = min(sizes[n], total // (len(sizes) - done))
        total -= shares[n]
    return shares
