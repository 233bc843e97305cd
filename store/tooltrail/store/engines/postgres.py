"""Connections to a PostgreSQL server, which may be unreachable, slow or hung.

Settings in the URL take precedence over the defaults below, but not over `_REQUIRED`.
"""

import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.store.engines.targets import PostgresTarget

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S: Final = 10
ANSWER_TIMEOUT_S: Final = 120.0
"""Seconds that a server may take to send a part of an answer. No other setting detects a server
that hangs while its network works."""

_LOCK_TIMEOUT_S: Final = 30
_IDLE_TIMEOUT_S: Final = 60
"""Seconds that a program may be idle inside a transaction, which may hold locks."""

_DEFAULTS: Final[Mapping[str, int | str]] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "application_name": "tooltrail",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Connection settings: a lost network is detected within 25 seconds."""

_OPTIONS: Final = (
    "-c timezone=UTC -c synchronous_commit=off -c client_min_messages=warning"
    f" -c lock_timeout={_LOCK_TIMEOUT_S}s"
    f" -c idle_in_transaction_session_timeout={_IDLE_TIMEOUT_S}s"
)
"""Session settings. `make_durable` makes commits durable before the journal deletes its copy."""

_REQUIRED: Final = "-c standard_conforming_strings=on -c datestyle=ISO"
"""Settings without which bytes and times would be stored or read wrongly."""


def connect(target: PostgresTarget) -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection in autocommit mode, so that `Database` begins every transaction itself.

    Raises:
        UnavailableError: the driver is not installed.
        InvalidRecordError: libpq cannot read the URL.
        psycopg.Error: the server cannot be reached, or refuses the user.
    """
    try:
        import logging  # noqa: PLC0415  slow, and no SQLite store needs it

        import psycopg  # noqa: PLC0415  slow, and comes with the extra `postgres`
        from psycopg.conninfo import make_conninfo  # noqa: PLC0415
    except ImportError as error:
        if error.name != "psycopg":
            raise UnavailableError(f"psycopg cannot be imported: {error}") from error
        message = "PostgreSQL needs psycopg, which is not installed"
        raise UnavailableError(f"{message}: pip install 'tooltrail[postgres]'") from error
    named = parse_qs(urlsplit(target.url).query)
    settings = {name: value for name, value in _DEFAULTS.items() if name not in named}
    options = " ".join([_OPTIONS, *named.get("options", ()), _REQUIRED])
    if not (logger := logging.getLogger("psycopg")).handlers:
        # Without a handler, Python prints the warnings of the driver on stderr.
        logger.addHandler(logging.NullHandler())
    try:
        conninfo = make_conninfo(target.url, options=options, client_encoding="UTF8", **settings)
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        # No cause: it may quote a part of a password.
        raise InvalidRecordError("the database URL cannot be read") from None

    class PunctualConnection(psycopg.Connection[tuple[Any, ...]]):
        """A connection that fails if the server does not answer in time."""

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            """Wait for an answer; psycopg resumes the generator every tenth of a second."""
            return super().wait(_limited(self, gen), *args, **kwargs)

    return PunctualConnection.connect(conninfo, autocommit=True, prepare_threshold=1)


def _limited(connection: "psycopg.Connection[Any]", answer: Any) -> Generator[Any, Any, Any]:
    import psycopg  # noqa: PLC0415

    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    try:
        wanted = next(answer)
        while True:
            ready = yield wanted
            if ready:
                deadline = time.monotonic() + ANSWER_TIMEOUT_S
            elif time.monotonic() >= deadline:
                connection.close()
                raise psycopg.OperationalError("the server has not answered in time")
            wanted = answer.send(ready)
    except StopIteration as stop:
        return stop.value
    finally:
        with suppress(psycopg.Error, RuntimeError):
            answer.close()
