"""What waited in an outbox, and what the store has of it."""

from uuid import UUID

from tests.support.ended import BASH, failed, made
from tests.support.evidence import check_evidence
from tests.support.outputs import returned
from tests.support.recording import content_of, stream_of

from tooltrail.records import ToolCall, digest_of
from tooltrail.store import Finished, Store, iter_record_checks

BIG = b"\n".join(digest_of(b"%d" % n).encode() for n in range(10_000))

ODD = [
    (BASH, made(BIG, b"warning\n", 3)),
    (BASH, made(b"\xff\0\r\n")),
    (BASH, failed("denied")),
    (
        ToolCall(tool_name="a\0b", arguments_raw="\ud800", call_id="\0", title="\udfff"),
        returned("a\0b", "nul \0", b"\x89PNG", structured={"a": [1, None, "\udc80", 2**80]}),
    ),
]


def check_all(store: Store) -> None:
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}


def check_shown(store: Store, *some: Finished) -> None:
    """What was handed back is what the store has, byte for byte."""
    for finished in some:
        stored = store.reader.invocation(finished.invocation_id)
        told = stored.receipt
        assert told is not None
        assert stored.canonical_json is not None
        assert stored.canonical_json.encode() == finished.canonical.to_json()
        assert told.text.encode() == finished.receipt.to_bytes()
        assert told.policy_digest == finished.receipt.policy_digest
        assert stored.summary.state == finished.state


def printed(store: Store, session_id: UUID) -> list[bytes]:
    _, _, invocations = store.reader.conversation(session_id)
    return [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]
