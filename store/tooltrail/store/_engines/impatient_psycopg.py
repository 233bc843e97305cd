"""A connection of psycopg that does not wait for ever.

All limits of a server are its own to keep, and one that stands still keeps none: its disk hangs,
or its process was stopped, while its network answers. Imported where psycopg is installed.
"""

import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

from psycopg import Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.waiting import Ready, Wait

T = TypeVar("T")

_NOT_AT_REST = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)


class ImpatientConnection(Connection[tuple[Any, ...]]):
    """Gives a server up that has not answered by a deadline.

    Attributes:
        deadline: by `time.monotonic`; None to wait as long as it takes.
    """

    deadline: float | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether it is there and owes no answer, so that it can be asked something else.

        Where a pipeline broke off it may neither be called lost nor have left the pipeline.
        """
        return (
            self.pgconn.pipeline_status == PipelineStatus.OFF
            and self.pgconn.transaction_status not in _NOT_AT_REST
        )

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for an answer.

        Raises:
            OperationalError: there was none in time; the connection is closed.
        """
        followed = self._followed(gen)
        try:
            return super().wait(followed, *args, **kwargs)
        except BaseException:
            # Else the garbage collector ends it, when the connection may be closed, and the
            # interpreter prints what it has to say about that.
            with suppress(Error, RuntimeError):
                followed.close()
                gen.close()
            raise

    def _followed(self, answer: PQGen[T]) -> Generator[Any, Any, T]:
        """The same generator; psycopg resumes it every tenth of a second, with or without news.

        In a pipeline psycopg goes on to wait for answers when it has handed everything to libpq,
        which may have sent a part of that only: what is left is sent here meanwhile.
        """
        try:
            wanted = next(answer)
            while True:
                is_unsent = wanted == Wait.R and self._is_unsent()
                news = yield Wait.RW if is_unsent else wanted
                if not news and self.deadline is not None and time.monotonic() >= self.deadline:
                    self._give_up(answer)
                if is_unsent and news == Ready.W:
                    continue
                wanted = answer.send(news & Ready.R if is_unsent else news)
        except StopIteration as stop:
            answered: T = stop.value
            return answered

    def _is_unsent(self) -> bool:
        is_pipeline = self.pgconn.pipeline_status != PipelineStatus.OFF
        return is_pipeline and self.pgconn.flush() == 1

    def _give_up(self, answer: PQGen[Any]) -> None:
        self.close()
        with suppress(Error, RuntimeError):
            answer.close()
        raise OperationalError("the server has not answered in time")
