"""The work of `tooltrail coverage`: compare a store with the transcripts of an agent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tooltrail.cli._long_commands import progress_bar
from tooltrail.importers import Importer, find_files
from tooltrail.records.errors import NotFoundError
from tooltrail.redaction import RuleSet
from tooltrail.store import InvocationDetail, Reader


@dataclass(frozen=True, slots=True)
class Compared:
    """One call in a transcript, in the store, or in both.

    Attributes:
        result: `matched`, `differing`, `missing` (only the transcript has it) or `extra` (only the
            store has it).
        id: id of the invocation.
        session_id: id of its session.
        call_id: the provider's id of the call.
        tool_name: name of the tool.
        differing: what differs: `arguments`, `state`, `output`, `receipt`, …
    """

    result: str
    id: UUID
    session_id: UUID
    call_id: str | None
    tool_name: str
    differing: tuple[str, ...] = ()


def import_all(
    spool: Path, paths: Sequence[Path], format_name: str | None, rules: RuleSet | None
) -> None:
    """Import transcripts into the spool of a store of their own, with a progress bar.

    Raises:
        NotFoundError: a path does not exist, or there is no session of a known format.
        UnavailableError: a file cannot be read.
    """
    importer = Importer(spool, rules)
    files = [file for path in paths for file in find_files(path, format_name)]
    if not files:
        raise NotFoundError(f"no sessions of known agents found in {', '.join(map(str, paths))}")
    with progress_bar("reading transcripts", len(files)) as update:
        for number, (file, name) in enumerate(files):
            update(number, 0)
            importer.import_file(file, name)


def compare_with_bar(store: Reader, transcripts: Reader) -> list[Compared]:
    """Like `compare`, with a progress bar."""
    found: list[Compared] = []
    with progress_bar("comparing", sum(transcripts.counts().invocations.values())) as update:
        for one in compare(store, transcripts):
            found.append(one)
            update(len(found), 0)
    return found


def compare(store: Reader, transcripts: Reader) -> Iterator[Compared]:
    """Compare the sessions of transcripts with the same sessions of a store, call by call."""
    for session in reversed(transcripts.sessions()):
        theirs = _calls_of(transcripts, session.id)
        ours = _calls_of(store, session.id)
        for call_id, call in theirs.items():
            if call_id not in ours:
                yield _named("missing", call)
                continue
            differing = _differing(ours[call_id], call)
            yield _named("differing" if differing else "matched", call, differing)
        yield from (_named("extra", call) for name, call in ours.items() if name not in theirs)


def _calls_of(reader: Reader, session: UUID) -> dict[UUID, InvocationDetail]:
    try:
        return {call.summary.id: call for call in reader.conversation(session)[2]}
    except NotFoundError:
        return {}


def _differing(ours: InvocationDetail, theirs: InvocationDetail) -> tuple[str, ...]:
    mine, other = _compared(ours), _compared(theirs)
    return tuple(name for name in mine if mine[name] != other[name])


def _compared(call: InvocationDetail) -> dict[str, object]:
    summary = call.summary
    return {
        "tool_name": summary.tool_name,
        "arguments": call.arguments,
        "state": summary.state,
        "exit_status": summary.exit_status,
        "output": call.complete_json,
        "streams": [(one.role, one.digest) for one in call.streams],
        "receipt": None if call.receipt is None else call.receipt.text,
        "damage": call.damage,
    }


def _named(result: str, call: InvocationDetail, differing: tuple[str, ...] = ()) -> Compared:
    one = call.summary
    return Compared(result, one.id, one.session_id, one.call_id, one.tool_name, differing)
