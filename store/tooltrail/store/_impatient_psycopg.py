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

T = TypeVar("T")


class ImpatientConnection(Connection[tuple[Any, ...]]):
    """Gives a server up that has not answered by a deadline.

    Attributes:
        deadline: by `time.monotonic`; None to wait as long as it takes.
    """

    deadline: float | None = None

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for an answer.

        Raises:
            OperationalError: there was none in time; the connection is closed.
        """
        if self.deadline is not None:
            gen = self._until(self.deadline, gen)
        try:
            return super().wait(gen, *args, **kwargs)
        except BaseException:
            # Else the garbage collector ends it, when the connection may be closed, and the
            # interpreter prints what it has to say about that.
            with suppress(Error, RuntimeError):
                gen.close()
            raise

    def _until(self, deadline: float, answer: PQGen[T]) -> Generator[Any, Any, T]:
        """The same generator; psycopg resumes it every tenth of a second, with or without news."""
        try:
            wanted = next(answer)
            while True:
                news = yield wanted
                if not news and time.monotonic() >= deadline:
                    self._give_up(answer)
                wanted = answer.send(news)
        except StopIteration as stop:
            answered: T = stop.value
            return answered

    def _give_up(self, answer: PQGen[Any]) -> None:
        self.close()
        with suppress(Error, RuntimeError):
            answer.close()
        raise OperationalError("the server has not answered in time")
