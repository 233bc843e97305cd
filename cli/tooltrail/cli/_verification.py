"""The checks behind `tooltrail verify`, each a stream of findings."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from tooltrail.artifacts import artifact_path
from tooltrail.cli._artifacts import verify_artifacts
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._output import counted, printable
from tooltrail.records import DamageError
from tooltrail.store import Store, iter_message_checks, iter_record_checks, iter_rerenderings

_CODES = {
    "drifted": ExitCode.DAMAGED,
    "damaged": ExitCode.DAMAGED,
    "unreadable": ExitCode.UNAVAILABLE,
    "missing": ExitCode.INCOMPLETE,
    "incomparable": ExitCode.INCOMPLETE,
}
"""The exit code of each state that is not `ok`; the first that was found decides."""

_SUMMARIES = {
    "record": ("compared with the ledger", "damaged"),
    "message": ("compared with the ledger", "damaged"),
    "receipt": ("worded anew", "drifted"),
    "artifact": ("checked", "damaged"),
}
"""How each check looked, and what its summary counts even when there is none."""

_UNCHECKED = (
    "not checked: the ledger's own chain, sessions, and what lists show besides, as the exit status"
)
"""What no check looks at yet; said after all of them, so that nobody takes them for more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one stored thing is.

    Attributes:
        check: which check looked: `record`, `message`, `receipt` or `artifact`.
        name: the id of the invocation or message, or the path of the artifact; where none can be
            read, what is damaged.
        state: `ok`, `drifted`, `incomparable`, `damaged`, `missing` or `unreadable`.
        reason: one sentence, empty when it is right.
    """

    check: str
    name: str
    state: str
    reason: str

    @property
    def line(self) -> str:
        """For people."""
        return f"{self.state:12} {self.check:8} {printable(f'{self.name}: {self.reason}')}\n"


class Tally:
    """Counts findings while they pass by.

    Args:
        checks: names of the checks that run.
    """

    def __init__(self, checks: Sequence[str]) -> None:
        self._checks = checks
        self._counts: Counter[tuple[str, str]] = Counter()

    def counting(self, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The same findings, counted."""
        for finding in findings:
            self._counts[finding.check, finding.state] += 1
            yield finding

    def summaries(self) -> Iterator[str]:
        """A sentence for each check, and one for what none of them looks at."""
        for check in self._checks:
            how, always = _SUMMARIES[check]
            counts = {state: self._counts[check, state] for state in ("ok", *_CODES)}
            shown = (
                f"{counts[state]:,} {state}" for state in _CODES if counts[state] or state == always
            )
            yield f"{counted(sum(counts.values()), check)} {how}, {', '.join(shown)}"
        yield _UNCHECKED if set(self._checks) == set(_CHECKS) else "nothing else was checked"

    @property
    def code(self) -> ExitCode:
        """The exit code for all that was found."""
        found = {state for _, state in self._counts}
        return next((code for state, code in _CODES.items() if state in found), ExitCode.OK)


def findings_of(store: Store, check: str, session: UUID | None) -> Iterator[Finding]:
    """Check one kind of thing.

    What is too damaged to be listed is a finding too, so that the other checks follow.

    Args:
        store: open.
        check: one of `CHECKS`.
        session: check what belongs to this session alone.
    """
    try:
        yield from _CHECKS[check](store, session)
    except DamageError as error:
        yield Finding(check, error.path, "damaged", str(error))


def _check_records(store: Store, session: UUID | None) -> Iterator[Finding]:
    for found in iter_record_checks(store.reader, session=session):
        yield Finding("record", found.name, "damaged" if found.problem else "ok", found.problem)


def _check_messages(store: Store, session: UUID | None) -> Iterator[Finding]:
    for found in iter_message_checks(store.reader, session=session):
        yield Finding("message", found.name, "damaged" if found.problem else "ok", found.problem)


def _check_receipts(store: Store, session: UUID | None) -> Iterator[Finding]:
    for found in iter_rerenderings(store.reader, store.families, session=session):
        state = "ok" if found.state == "same" else found.state
        name = str(found.invocation_id or "invocations")
        yield Finding("receipt", name, state, found.reason)


def _check_artifacts(store: Store, session: UUID | None) -> Iterator[Finding]:
    paths = [view.path for view in store.reader.artifacts(session=session)]
    # No path at all would mean every artifact of the store.
    for verdict in verify_artifacts(store, paths) if paths else ():
        yield Finding("artifact", verdict.path, verdict.state, verdict.reason)
    for stream in store.reader.waiting_streams(session):
        reason = (
            f"{stream.role} of invocation {stream.invocation_id} {stream.sentence(store.spool)}"
        )
        yield Finding("artifact", artifact_path(stream.digest), "missing", reason)


_CHECKS: dict[str, Callable[[Store, UUID | None], Iterator[Finding]]] = {
    "record": _check_records,
    "message": _check_messages,
    "receipt": _check_receipts,
    "artifact": _check_artifacts,
}

CHECKS = tuple(_CHECKS)
"""All checks there are, by what they look at, in their order."""
