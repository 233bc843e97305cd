"""Compares calls with their facts: the row, the texts, and every child row."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from tooltrail.journal.invocation import SEEN
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import CallEnded, CallStarted, Shown, StreamFact
from tooltrail.store.engines.connection import Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import Entry
from tooltrail.store.ingest.outcomes import VERDICTS, is_body, verdict_of
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable
from tooltrail.store.verify.surfaces import Call, check_shown

OF_CALLS: Final = ("streams", "omissions", "invocation_artifacts", "structured_outputs")
"""Tables with further rows of a call besides its texts. The rows exist once the call has ended."""


def load_calls(checking: Checking, ids: Sequence[UUID]) -> dict[UUID, Call]:
    """The rows of some calls."""
    source, connection = checking.source, checking.connection
    names = list(dict.fromkeys(map(connection.uuid, ids)))
    found = source.rows("invocations", "id", names)
    keys = sorted(row["key"] for row in found)
    texts = source.owned("surfaces", "invocation_key", keys)
    children = {table: source.owned(table, "invocation_key", keys) for table in OF_CALLS}
    calls = dict[UUID, Call]()
    for row in found:
        key, call_id = row["key"], uuid_from(row["id"])
        its = {table: owned[key] for table, owned in children.items()}
        calls[call_id] = Call(f"call {call_id}", row, texts[key][0] if texts[key] else {}, its)
    return calls


def check_start(
    checking: Checking, call: Call, fact: CallStarted, entry: Entry, expected: Row
) -> None:
    """Compare the values of a start; `expected` has the values that follow from the session."""
    subject = call.subject
    expected |= rows.start_row(checking.connection, fact, entry)
    has_ended = call.row["end_entry"] is not None
    if has_ended:
        del expected["state"]
    else:
        expected |= rows.NO_END
    checking.compare(subject, "invocations", expected, call.row)
    if not call.texts:
        checking.damage(subject, "surfaces", f"the texts of {subject} are missing")
    call.check(checking, "arguments", fact.arguments)
    if call.inexact:
        checking.compare(subject, "surfaces", {"is_exact": False}, call.texts)
    if has_ended:
        return
    checking.incomplete(subject, "invocations", f"{subject} has not ended", "state")
    if call.texts:
        checking.compare(subject, "surfaces", rows.NO_OUTCOME, call.texts)
        call.check_exactness(checking)
    for table, children in call.children.items():
        checking.compare_rows(subject, table, [], children)


def check_end(
    checking: Checking, call: Call, fact: CallEnded, entry: Entry, needed: Needed
) -> None:
    """Compare the values of the end of a call."""
    connection, subject, key = checking.connection, call.subject, call.row["key"]
    call.streams = fact.streams
    call.check(checking, "output", fact.output)
    if fact.extras is not None:
        needed.optional.setdefault(fact.extras, subject)
    shown = check_shown(checking, call, fact)
    expected = rows.end_columns(connection, fact, shown.omissions, entry)
    checking.compare(subject, "invocations", expected, call.row)
    _check_cut_size(checking, call, shown, expected["output_size"])
    offsets = [row["receipt_offset"] for row in call.children["streams"]]
    placed = [(one, offsets[n] if n < len(offsets) else None) for n, one in enumerate(fact.streams)]
    streams = rows.stream_rows(connection, key, placed)
    checking.compare_rows(subject, "streams", streams, call.children["streams"])
    verdicts = _verdict_rows(checking, call, shown)
    if verdicts is not None:
        stored = call.children["structured_outputs"]
        checking.compare_rows(subject, "structured_outputs", verdicts, stored)
    if "arguments" not in call.exact and not call.inexact and call.texts.get("is_exact") != 1:
        # The call began in an earlier batch. Its arguments may be inexact.
        start = checking.fact(call.row["journal_key"], call.row["start_entry"])
        if isinstance(start, CallStarted):
            call.check(checking, "arguments", start.arguments)
        else:
            call.exact["arguments"] = None
    call.check_exactness(checking)
    artifacts = {one.digest for one in shown.artifacts}
    bodies = {one.digest for one in fact.streams if is_body(fact, one)} - artifacts
    _check_streams(checking, call, placed, bodies, needed)
    for artifact in shown.artifacts:
        needed.artifacts.setdefault(artifact.digest, subject)


def _check_cut_size(checking: Checking, call: Call, shown: Shown, output_size: int | None) -> None:
    """Compare how much of the output was cut, unless the erased receipt would say it."""
    renderer, receipt = call.texts.get("renderer"), call.texts.get("receipt")
    if not call.texts or (renderer == SEEN and not isinstance(receipt, str)):
        return
    with suppress(TypeError):  # a damaged omission, which is reported
        size = rows.cut_size(output_size, shown.omissions, renderer, receipt)
        checking.compare(call.subject, "surfaces", {"cut_size": size}, call.texts)


def _verdict_rows(checking: Checking, call: Call, shown: Shown) -> list[Row] | None:
    """The row of a structured output, if it is one; None if the shown result cannot be read."""
    if shown.renderer != VERDICTS:
        return [] if shown.renderer else None
    try:
        verdict = verdict_of(call.exact.get("canonical") or b"")
    except (LookupError, TypeError, ValueError):
        return None
    if verdict is None:
        return []
    return [rows.verdict_row(checking.connection, call.row["key"], verdict)]


def _check_streams(
    checking: Checking,
    call: Call,
    placed: Sequence[tuple[StreamFact, Any]],
    bodies: Collection[Digest],
    needed: Needed,
) -> None:
    """Check that the bytes of every stream are at the location in its row."""
    receipt = call.exact.get("receipt")
    for stream, offset in placed:
        if offset is None:
            wanted = needed.bodies if stream.digest in bodies else needed.artifacts
            wanted.setdefault(stream.digest, call.subject)
        elif receipt is not None and not isinstance(offset, Unreadable):
            is_shared = call.inexact <= {"arguments"} and _stands_at(receipt, offset, stream)
            if not is_shared:
                message = f"stream {stream.role} of {call.subject} is not where its row says"
                checking.damage(call.subject, "streams", message, "receipt_offset")


def _stands_at(receipt: bytes, offset: Any, stream: StreamFact) -> bool:
    if not isinstance(offset, int) or offset < 0:
        return False
    content = receipt[offset : offset + stream.size]
    return digest_of(content) == stream.digest and receipt.find(content) == offset
