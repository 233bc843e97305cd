"""Facts on their way into a journal, and what an acknowledgement of them means."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tooltrail.journal.log import Entry

Acknowledge: TypeAlias = Literal["process", "journal", "store"]
"""What a record survives once it is acknowledged.

`process`: the end of this program. `journal`: a power cut of this machine. `store`: the loss of
this machine; its rows are committed in the database and its artifacts are in the sink.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """Facts that were made and are to be appended together.

    Attributes:
        entries: the facts.
        sync: called before the facts are appended, to make files durable that they name.
    """

    entries: Sequence[Entry]
    sync: Callable[[], None] | None = None
