"""What the end of an invocation comes to, before it is committed."""

from dataclasses import replace
from typing import NamedTuple

from tooltrail.store._recording.finishing import FinishedRows
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.upkeep import Upkeep
from tooltrail.store.finished import Finished


class Ending(NamedTuple):
    """An end with its artifacts published and its surfaces made.

    Attributes:
        rows: what is to be written.
        publisher: of its streams.
        seen: the upkeep of the store from before the first of them was published.
        finished: what it is when it is written.
    """

    rows: FinishedRows
    publisher: StreamPublisher
    seen: Upkeep
    finished: Finished

    @property
    def needs_sink(self) -> bool:
        """Whether it refers to artifacts, or would if they were not away."""
        return bool(self.publisher.published) or self.publisher.away is not None

    def told(self) -> Finished:
        """What it is now; a file may be found altered as late as in the commit."""
        return replace(self.finished, damages=self.publisher.damages)
