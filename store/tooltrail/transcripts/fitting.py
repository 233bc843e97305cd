"""Makes a transcript fit into a number of tokens by compacting the oldest tool results.

The receipts of the newest calls are kept as long as possible. Messages, arguments and the
essentials of results are never removed, so a budget can be too small. Then the transcript is as
small as possible, and `Fitted.token_count` exceeds the budget.
"""

from collections.abc import Iterator
from uuid import UUID

from tooltrail.records import CanonicalResult, CompactedResult, render_compacted
from tooltrail.records.budgets import COMPACTION_CHARS
from tooltrail.records.compaction import compact
from tooltrail.records.frozen import Frozen
from tooltrail.records.tokens import text_size, tokens_of_size
from tooltrail.store.views import InvocationDetail
from tooltrail.transcripts.formats import Writer
from tooltrail.transcripts.transcript import Transcript


class Fitted(Frozen):
    """A transcript made to fit.

    Attributes:
        transcript: the transcript, with as many compacted calls as needed.
        token_count: number of tokens of its document.
    """

    transcript: Transcript
    token_count: int


def fit(
    transcript: Transcript,
    tokens: int,
    writer: Writer,
    chars: int = COMPACTION_CHARS,
) -> Fitted:
    """Compact the oldest tool results until the document fits.

    First, each result is compacted to `chars`, the oldest first. If that is not enough, each
    result is reduced to its essentials, again the oldest first. A receipt is kept if the receipt of
    the compacted result would not be shorter.

    Args:
        transcript: the complete transcript, which is not changed.
        tokens: maximum tokens of the complete document, as `estimate_tokens` counts them.
        writer: writer of the format of the document.
        chars: budget of one compacted result, from a policy; see `compact`.
    """
    compacted = dict(transcript.compacted)
    size = _size(transcript, writer)
    for detail, receipt in _candidates(transcript, chars):
        if tokens_of_size(size) <= tokens:
            break
        saved = _saved(transcript, writer, detail, compacted, receipt)
        if saved > 0:
            compacted[detail.summary.id] = receipt
            size -= saved
    return Fitted(transcript.replaced(compacted=compacted), tokens_of_size(size))


def _candidates(transcript: Transcript, first: int) -> Iterator[tuple[InvocationDetail, str]]:
    """The calls to compact and their shorter receipts, in the order in which they are tried."""
    for chars in (first, 0):
        for entry in transcript.entries:
            if not isinstance(entry, InvocationDetail) or entry.receipt is None:
                continue
            if entry.canonical_json is not None:
                result = compact(CanonicalResult.from_json(entry.canonical_json), chars)
                if isinstance(result, CompactedResult):
                    yield entry, render_compacted(result)


def _saved(
    transcript: Transcript,
    writer: Writer,
    detail: InvocationDetail,
    compacted: dict[UUID, str],
    receipt: str,
) -> int:
    """The number of bytes that a document saves with this receipt of the call."""
    alone = transcript.replaced(entries=(detail,), compacted=compacted)
    shorter = alone.replaced(compacted={detail.summary.id: receipt})
    return _size(alone, writer) - _size(shorter, writer)


def _size(transcript: Transcript, writer: Writer) -> int:
    return sum(map(text_size, writer(transcript)))
