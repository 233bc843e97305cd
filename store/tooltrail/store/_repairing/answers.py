"""Records what had come of answers whose process was killed while they were being streamed.

What came goes into the outbox, behind what waits there, under the id that the message was to have;
then the file goes. Delivery knows entries by their ids: who was killed in between, or had recorded
the message already, has it once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import exclusive_spool, is_spool
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.store._recording.answer_journal import (
    AnswerBeginning,
    SpooledAnswer,
    iter_answers,
    remove_answer,
)
from tooltrail.store._recording.answers import messages_of
from tooltrail.store.asides import distinct_spools
from tooltrail.store.entries import MessageAdded
from tooltrail.store.outbox import Outbox
from tooltrail.store.store import Store
from tooltrail.wire import read_stream, wire_format


@dataclass(frozen=True, slots=True)
class CutOffAnswer:
    """An answer whose program was killed while it came.

    Attributes:
        message_id: of the message that it became, or in a dry run would become.
        byte_count: of what had come.
        problem: why it was left as it is; empty where it was not.
    """

    message_id: UUID
    byte_count: int
    problem: str = ""


def take_in_answers(store: Store, also: Sequence[Path], *, dry_run: bool) -> list[CutOffAnswer]:
    """Put what had come of cut-off answers into the outboxes of their spools, or only look.

    Raises:
        UnavailableError: a spool cannot be read.
    """
    found: list[CutOffAnswer] = []
    for spool in filter(is_spool, distinct_spools(store.spool, *also)):
        with exclusive_spool(spool):
            for answer in iter_answers(spool):
                if not answer.is_running:
                    found += _take_in(store, spool, answer, dry_run=dry_run)
    return found


def _take_in(
    store: Store, spool: Path, answer: SpooledAnswer, *, dry_run: bool
) -> Iterator[CutOffAnswer]:
    """Nothing of another store's."""
    try:
        read = answer.read()
        if read is not None:
            beginning, data = read
            if beginning.store != store.info.id:
                return
            if not dry_run:
                _append(Outbox.of(spool, store.info.id), beginning, data)
            yield CutOffAnswer(answer.id, len(data))
    except TooltrailError as error:
        yield CutOffAnswer(answer.id, 0, str(error))
        return
    if not dry_run:
        remove_answer(answer.path)


def _append(outbox: Outbox, beginning: AnswerBeginning, data: bytes) -> None:
    """Put the messages of an answer into an outbox, durably.

    Raises:
        UnavailableError: it cannot be written.
        NotFoundError: there is no such format.
    """
    named = beginning.wire_format
    response = read_stream(wire_format(named), [data])
    for message_id, message in messages_of(response, named, beginning.provider, beginning.id):
        payload = data if message_id == beginning.id else None
        entry = MessageAdded.of(beginning.session, message, message_id=message_id, payload=payload)
        try:
            outbox.append(replace(entry, at=beginning.at))
        except OSError as error:
            raise UnavailableError(f"{outbox.journal.folder}: {error.strerror}") from error
