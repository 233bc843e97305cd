"""What must be in a store after a loss of power, by what its recorder had said until then."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.evidence import check_evidence
from tests.support.power_worker import hidden, printed, text_of
from tests.support.recording import content_of, stream_of
from tests.support.system_calls import Said

from tooltrail.store import InvocationDetail, SessionView, Store, check_database, open_store, repair

_GOOD = {"interrupted", "cleared", "kept", "stored", "recorded"}


@dataclass
class Found:
    """What was looked for in a store.

    Attributes:
        missing: what had been acknowledged and is not there, as it was said.
        strayed_count: started calls of which the spool does not know any more.
    """

    missing: list[str] = field(default_factory=list)
    strayed_count: int = 0


def check_store(folder: Path, said: Iterable[Said], *, may_lose: bool = False) -> Found:
    """Open a store as the next process does, check all of it, repair it, and check it again.

    Args:
        folder: where its database is.
        said: what its recorder had said until then.
        may_lose: whether output may be left of a call of which the start is lost.

    Raises:
        AssertionError, TooltrailError: it is not sound, or holds what nobody had begun.
    """
    words = [one.words for one in said]
    with suppress(FileNotFoundError):
        hidden(folder / "trail.db").rename(folder / "trail.db")
    with open_store(folder / "trail.db") as store:
        content = _read(store, words)
        # What waits in the spool can be read when it is stored.
        waits = bool(store.reader.waiting_streams())
        if waits:
            assert check_database(store.database) == []
        else:
            check_evidence(store)
        report = repair(store)
        outcomes = {one.outcome for one in report.folders}
        left = {"unknown"} if may_lose else set[str]()
        assert outcomes <= _GOOD | left, report
        missing = [] if waits else _missing(content, words, _RECORDED)
        if outcomes - {"cleared"} or any(one[0] in _SET_ASIDE for one in words):
            check_evidence(store)
            content = _read(store, words)
        missing += _missing(content, words, {**_RECORDED, **_SET_ASIDE})
        assert {one.outcome for one in repair(store).folders} <= left
    return Found(missing, report.elsewhere_count)


@dataclass
class _Content:
    """All that a store has, read once."""

    store: Store
    sessions: dict[str, SessionView] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    invocations: dict[str, InvocationDetail] = field(default_factory=dict)


def _read(store: Store, said: Iterable[tuple[str, ...]]) -> _Content:
    """Read all of a store, which is nothing that nobody had begun."""
    content = _Content(store)
    for session in store.reader.sessions():
        content.sessions[str(session.id)] = session
        _, messages, invocations = store.reader.conversation(session.id)
        content.messages |= {str(message.id): message.text for message in messages}
        content.invocations |= {str(detail.summary.id): detail for detail in invocations}
    begun = {words[1] for words in said if words[0] == "begin"}
    numbers = [str(detail.summary.call_id) for detail in content.invocations.values()]
    numbers += [text.split()[1].rstrip(":") for text in content.messages.values()]
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) <= begun
    return content


_Check = Callable[..., bool]


def _missing(
    content: _Content, said: Iterable[tuple[str, ...]], checks: Mapping[str, _Check]
) -> list[str]:
    return [
        " ".join(words)
        for words in said
        if words[0] in checks and not checks[words[0]](content, *words[1:])
    ]


def _is_session(content: _Content, session_id: str) -> bool:
    return session_id in content.sessions


def _is_closed(content: _Content, session_id: str) -> bool:
    session = content.sessions.get(session_id)
    return session is not None and session.closed_at is not None


def _is_started(content: _Content, number: str, invocation_id: str) -> bool:
    detail = content.invocations.get(invocation_id)
    return detail is not None and detail.summary.call_id == number


def _is_ended(content: _Content, number: str, invocation_id: str) -> bool:
    detail = content.invocations.get(invocation_id)
    if detail is None or detail.summary.state != "success":
        return False
    assert content_of(content.store.reader, stream_of(detail, "stdout")) == printed(int(number))
    return True


def _is_said(content: _Content, number: str, message_id: str) -> bool:
    return content.messages.get(message_id) == text_of(int(number))


def _is_made(content: _Content, store_id: str) -> bool:
    return str(content.store.info.id) == store_id


_RECORDED: Mapping[str, _Check] = {
    "session": _is_session,
    "closed": _is_closed,
    "started": _is_started,
    "ended": _is_ended,
    "said": _is_said,
    "made": _is_made,
}
_SET_ASIDE: Mapping[str, _Check] = {
    "set": _is_started,
    "kept": _is_ended,
    "awaited": _is_session,
    "queued": _is_ended,
    "sent": _is_said,
}
"""What only a repair brings into a store."""
