"""What must be in a store after a loss of power, by what its recorder had said until then."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from tests.support.evidence import check_evidence
from tests.support.power_worker import printed, text_of
from tests.support.recording import content_of, stream_of
from tests.support.system_calls import Said

from tooltrail.records import NotFoundError
from tooltrail.store import Store, open_store, repair


@dataclass
class Found:
    """What was looked for in a store.

    Attributes:
        missing: what had been acknowledged and is not there, as it was said.
        strayed_count: started calls of which the spool does not know any more.
    """

    missing: list[str] = field(default_factory=list)
    strayed_count: int = 0


def check_store(folder: Path, said: Iterable[Said]) -> Found:
    """Open a store as the next process does, check all of it, repair it, and check it again.

    Raises:
        AssertionError, TooltrailError: it is not sound, or holds what nobody had begun.
    """
    until_then = [one.words for one in said]
    begun = {int(words[1]) for words in until_then if words[0] == "begin"}
    with open_store(folder / "trail.db") as store:
        check_evidence(store)
        missing = _missing(store, until_then)
        check_only_begun(store, begun)
        report = repair(store)
        outcomes = {one.outcome for one in report.folders}
        assert outcomes <= {"interrupted", "cleared", "kept"}, report
        if outcomes:
            check_evidence(store)
            check_only_begun(store, begun)
            missing += _missing(store, until_then)
    return Found(missing, report.elsewhere_count)


def check_only_begun(store: Store, begun: set[int]) -> None:
    """Nothing is there that nobody had begun."""
    for session in store.reader.sessions():
        _, messages, invocations = store.reader.conversation(session.id)
        numbers = [int(detail.summary.call_id or -1) for detail in invocations]
        numbers += [int(message.text.split()[1].rstrip(":")) for message in messages]
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= begun


def _missing(store: Store, said: Iterable[tuple[str, ...]]) -> list[str]:
    return [
        " ".join(words) for words in said if words[0] in _CHECKS and not _holds(store, *words)
    ]


def _holds(store: Store, what: str, *about: str) -> bool:
    with suppress(NotFoundError):
        return _CHECKS[what](store, *about)
    return False


def _is_session(store: Store, session_id: str) -> bool:
    return store.reader.session(UUID(session_id)).id == UUID(session_id)


def _is_closed(store: Store, session_id: str) -> bool:
    return store.reader.session(UUID(session_id)).closed_at is not None


def _is_started(store: Store, number: str, invocation_id: str) -> bool:
    return store.reader.invocation(UUID(invocation_id)).summary.call_id == number


def _is_ended(store: Store, number: str, invocation_id: str) -> bool:
    detail = store.reader.invocation(UUID(invocation_id))
    if detail.summary.state == "started":
        return False
    assert detail.summary.state == "success"
    assert content_of(store.reader, stream_of(detail, "stdout")) == printed(int(number))
    return True


def _is_said(store: Store, number: str, message_id: str) -> bool:
    return any(
        (message.id, message.text) == (UUID(message_id), text_of(int(number)))
        for session in store.reader.sessions()
        for message in store.reader.conversation(session.id)[1]
    )


def _is_made(store: Store, store_id: str) -> bool:
    return store.info.id == UUID(store_id)


_CHECKS: Mapping[str, Callable[..., bool]] = {
    "session": _is_session,
    "closed": _is_closed,
    "started": _is_started,
    "ended": _is_ended,
    "said": _is_said,
    "made": _is_made,
}
