"""The budgets that made a result and its receipt, known by their digest.

A policy is stored with every record that it shaped, so that years later it is still known why a
preview ends where it ends. Budgets of different stages must agree: a receipt may always hold the
preview and its frame, so that no second cut can swallow the first.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records.digests import Digest, digest_of

MAX_PREVIEW_CHARS = 256_000
MIN_PREVIEW_CHARS = 1_000
"""Room for the marker of a cut, which names counts and a path, and some text on both sides."""

FRAME_CHARS = 2_000
"""Room in a receipt for everything that is not preview: outcome, headings, artifact paths."""

ITEM_FRAME_CHARS = 160
"""Room in a receipt for what stands around one content item: media type, size, artifact path."""

MAX_RECEIPT_CHARS = MAX_PREVIEW_CHARS + FRAME_CHARS + 64 * ITEM_FRAME_CHARS

MAX_UTF8_BYTES = 4
"""Bytes that one character takes at most."""

MAX_EDGE_BYTES = MAX_UTF8_BYTES * MAX_PREVIEW_CHARS
"""Bytes of either end of a stream that the largest preview may need."""

PreviewChars = Annotated[int, Field(ge=MIN_PREVIEW_CHARS, le=MAX_PREVIEW_CHARS)]


ReceiptChars = Annotated[int, Field(le=MAX_RECEIPT_CHARS)]


class _PreviewBudget(Record):
    preview_chars: PreviewChars
    receipt_chars: ReceiptChars

    @property
    def frame_chars(self) -> int:
        """Characters of the receipt that are kept free of previews."""
        return FRAME_CHARS

    @model_validator(mode="after")
    def _check_stages_agree(self) -> Self:
        if self.receipt_chars < self.preview_chars + self.frame_chars:
            raise ValueError(
                f"receipt_chars must be at least preview_chars + {self.frame_chars}, "
                f"or a second cut would swallow the preview"
            )
        return self


class CommandBudget(_PreviewBudget):
    """Budgets of the command family.

    Attributes:
        preview_chars: both streams together; a stream that needs less than half leaves the rest.
        receipt_chars: the whole receipt.
        command_chars: how much of the command line is repeated in the result.
    """

    preview_chars: PreviewChars = 32_000
    receipt_chars: ReceiptChars = 34_000
    command_chars: Annotated[int, Field(ge=16, le=240)] = 240


class GenericBudget(_PreviewBudget):
    """Budgets of the generic family.

    Attributes:
        preview_chars: all content items and the structured value together.
        receipt_chars: the whole receipt.
        max_items: content items that are shown at all.
    """

    preview_chars: PreviewChars = 20_000
    receipt_chars: ReceiptChars = 28_000
    max_items: Annotated[int, Field(ge=1, le=64)] = 32

    @property
    def frame_chars(self) -> int:
        """Characters of the receipt that are kept free of previews: every item has its frame."""
        return FRAME_CHARS + self.max_items * ITEM_FRAME_CHARS


class ErrorBudget(Record):
    """Budgets of the shared error payload, in characters."""

    message_chars: Annotated[int, Field(ge=100, le=10_000)] = 700
    details_chars: Annotated[int, Field(ge=100, le=100_000)] = 1_000


class Policy(Record):
    """Everything that decides what is shown and what goes to an artifact.

    Attributes:
        version: of the meaning of these fields.
        inline_bytes: a stream longer than this becomes an artifact even when its preview is whole.
        command: budgets of the command family.
        generic: budgets of the generic family.
        error: budgets of the error payload.
    """

    version: Literal[1] = 1
    inline_bytes: Annotated[int, Field(ge=0, le=1 << 20)] = 16 * 1024
    command: CommandBudget = CommandBudget()
    generic: GenericBudget = GenericBudget()
    error: ErrorBudget = ErrorBudget()

    def to_json(self) -> bytes:
        """The canonical JSON of all budgets."""
        return canonical_json.encode(self.model_dump())

    @property
    def digest(self) -> Digest:
        """The digest of `to_json()`: the policy's name in the store."""
        # Not cached in the object: model_copy would carry it over to a changed policy.
        return digest_of(self.to_json())

    @property
    def edge_bytes(self) -> int:
        """Bytes of either end of a stream that a capture keeps, and that a preview looks at."""
        return MAX_UTF8_BYTES * max(self.command.preview_chars, self.generic.preview_chars)


DEFAULT_POLICY = Policy()
