"""Makes a transcript fit into a number of tokens by compacting the oldest tool results.

The receipts of the newest calls stay as long as they can. What was said and what was called is
never cut, and of a result the essentials always stay, so a budget may be too small; then the
transcript is as small as it can be, and says how many tokens it takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from tooltrail.records import CanonicalResult, CompactedResult, render_compacted
from tooltrail.records.budgets import CompactionBudget
from tooltrail.records.compaction import DEFAULT_COMPACTION, ESSENTIALS_ONLY, compact
from tooltrail.records.tokens import text_size, tokens_of_size
from tooltrail.store.views import InvocationDetail
from tooltrail.transcripts.formats import Writer
from tooltrail.transcripts.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Fitted:
    """A transcript made to fit.

    Attributes:
        transcript: with as many calls compacted as was needed.
        token_count: tokens of the document that the writer makes of it.
    """

    transcript: Transcript
    token_count: int


def fit(
    transcript: Transcript,
    tokens: int,
    writer: Writer,
    budget: CompactionBudget = DEFAULT_COMPACTION,
) -> Fitted:
    """Compact the oldest tool results until the document fits.

    First each result gets its compaction within the budget, the oldest first; when that is not
    enough, its essentials alone, again the oldest first. What the model saw stays when the
    receipt of the compaction would not be shorter than that text.

    Args:
        transcript: the whole of it; it is not changed.
        tokens: of the whole document, as `estimate_tokens` counts them.
        writer: the format of the document.
        budget: of one compaction, as a policy has it.
    """
    compacted = dict(transcript.compacted)
    size = _size(transcript, writer)
    for detail, receipt in _candidates(transcript, budget):
        if tokens_of_size(size) <= tokens:
            break
        saved = _saved(transcript, writer, detail, compacted, receipt)
        if saved > 0:
            compacted[detail.summary.id] = receipt
            size -= saved
    return Fitted(replace(transcript, compacted=compacted), tokens_of_size(size))


def _candidates(
    transcript: Transcript, first: CompactionBudget
) -> Iterator[tuple[InvocationDetail, str]]:
    """What may stand in place of which receipt, in the order in which it is tried."""
    for budget in (first, ESSENTIALS_ONLY):
        for entry in transcript.entries:
            if isinstance(entry, InvocationDetail) and entry.canonical_json is not None:
                result = compact(CanonicalResult.from_json(entry.canonical_json), budget)
                if isinstance(result, CompactedResult):
                    yield entry, render_compacted(result)


def _saved(
    transcript: Transcript,
    writer: Writer,
    detail: InvocationDetail,
    compacted: dict[UUID, str],
    receipt: str,
) -> int:
    """Bytes by which a document gets shorter that shows a call in this way."""
    alone = replace(transcript, entries=(detail,), compacted=compacted)
    shorter = replace(alone, compacted={detail.summary.id: receipt})
    return _size(alone, writer) - _size(shorter, writer)


def _size(transcript: Transcript, writer: Writer) -> int:
    return sum(map(text_size, writer(transcript)))
