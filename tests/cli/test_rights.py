"""A store that is somebody else's: what may not be done is said, and nothing is changed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Cli, Ended, without_coverage
from tests.support.processes import NOBODY, ROOT
from tests.support.recording import run_command

READING = (
    *("log", "status", "show", "transcript", "session ls", "artifact ls", "artifact verify"),
    *("artifact cat abcdef", "db check", "db current"),
)
WRITING = ("session open", "session close @last")
ALL = (*READING, *WRITING, "db upgrade")


@pytest.fixture
def foreign(cli: Cli) -> Iterator[Cli]:
    """A store that another user made, in a place that everybody may enter and read."""
    with cli.open() as store:
        run_command(store.open_session(), b"theirs\n")
        store.ingest()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(cli.folder, folder / "store")
        open_to_all(folder)
        yield Cli(str(folder / "store" / "trail.db"))
        open_to_all(folder)


def open_to_all(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.iterdir():
        if path.is_dir():
            open_to_all(path)
        else:
            path.chmod(0o644)


# Imports before it becomes nobody, who may not be allowed to read the interpreter's libraries.
AS_NOBODY = """
import json, os, sys
import alembic.command, fsspec.implementations.local, psycopg
import rich.console, rich.table, secrets, sqlalchemy.dialects.sqlite, unicodedata
from importlib.resources import as_file, files
from tests.support.cli import Cli
from tests.support.cli_reference import reference
reference()
with as_file(files("tooltrail.migrations")): pass
if not os.geteuid():
    os.setgid(%(user)d)
    os.setuid(%(user)d)
found = [Cli(sys.argv[1]).run(*command.split()) for command in json.loads(sys.argv[2])]
for ended in found:
    print(json.dumps([ended.code, ended.text, ended.message]))
"""


def as_nobody(cli: Cli, *commands: str) -> list[Ended]:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY % {"user": NOBODY}, cli.database, json.dumps(commands)],
        cwd=ROOT,
        env={**without_coverage(os.environ), "XDG_STATE_HOME": str(cli.folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return [Ended(code, out.encode(), err.encode()) for code, out, err in found]


@pytest.mark.parametrize("kind", ["closed file", "closed folder"])
def test_without_the_rights_to_a_store_every_command_says_so(foreign: Cli, kind: str) -> None:
    # An ordinary user who runs the tests owns these, and could still write the spool.
    foreign.spool.chmod(0o555)
    Path(foreign.database).chmod(0 if kind == "closed file" else 0o444)
    foreign.folder.chmod(0 if kind == "closed folder" else 0o555)
    commands = (*ALL, "init")
    for command, ended in zip(commands, as_nobody(foreign, *commands), strict=True):
        assert (ended.code, ended.text) == (5, ""), command
        assert str(foreign.folder) in ended.sentence, command
        assert ended.sentence.endswith(": Permission denied"), command


def test_a_store_that_may_only_be_read_can_be_read_and_is_left_as_it_is(foreign: Cli) -> None:
    before = Path(foreign.database).read_bytes()
    Path(foreign.database).chmod(0o444)
    foreign.spool.chmod(0o555)
    foreign.folder.chmod(0o555)
    for command, ended in zip(READING, as_nobody(foreign, *READING), strict=True):
        assert ended.code == (3 if "cat" in command else 0), f"{command}: {ended.message}"
    for command, ended in zip(WRITING, as_nobody(foreign, *WRITING), strict=True):
        assert (ended.code, ended.text) == (5, ""), command
        assert ended.sentence == (
            f"journal {foreign.spool}/journal cannot be written: Permission denied"
        )
    assert Path(foreign.database).read_bytes() == before


def test_facts_that_may_not_be_ingested_are_said_to_wait(foreign: Cli) -> None:
    assert foreign.exec("--", "true").code == 0
    open_to_all(foreign.folder)
    log, status = as_nobody(foreign, "log", "status")
    assert (log.code, len(log.lines)) == (0, 2)
    assert log.sentence.startswith(f"newer facts may wait in {foreign.spool}: ")
    assert status.code == 0
    (warning,) = warnings_in(status)
    assert warning.startswith("4 facts of this machine not in the database yet: ")


def test_a_store_cannot_be_created_where_nobody_may_write(foreign: Cli) -> None:
    foreign.folder.chmod(0o555)
    inside = Cli(str(foreign.folder / "deeper" / "trail.db"))
    (ended,) = as_nobody(inside, "init")
    assert ended.code == 5
    assert str(inside.folder) in ended.sentence
    assert ended.sentence.endswith(": Permission denied")


@pytest.mark.parametrize("mode", [0, 0o444])
def test_a_spool_that_cannot_be_read_keeps_nobody_from_reading(foreign: Cli, mode: int) -> None:
    foreign.folder.chmod(0o777)
    Path(foreign.database).chmod(0o666)
    foreign.spool.chmod(mode)
    reading = [command for command in READING if command != "artifact cat abcdef"]
    for command, ended in zip(reading, as_nobody(foreign, *reading), strict=True):
        assert ended.code == 0, f"{command}: {ended.message}"
        if not command.startswith("db"):
            assert "Permission denied" in ended.message, command
    (status,) = as_nobody(foreign, "status")
    assert "invocations  1 (1 ok)" in status.lines
    (warning,) = warnings_in(status)
    assert warning.startswith("facts of this machine not in the database yet: ")


def warnings_in(ended: Ended) -> list[str]:
    """The warnings of `status`, without that of an old SQLite."""
    lines = ended.message.splitlines()
    return [line.removeprefix("warning: ") for line in lines if " SQLite " not in line]


def test_status_goes_on_where_the_spool_cannot_be_reached(foreign: Cli) -> None:
    closed = foreign.folder.parent / "closed"
    spool = f"--spool={closed / 'spool'}"
    assert foreign.exec(spool, "--", "true").code == 0
    foreign.ok("log", spool)
    open_to_all(foreign.folder)
    closed.chmod(0)
    (status,) = as_nobody(foreign, f"status {spool}")
    closed.chmod(0o755)
    assert status.code == 0
    assert "invocations  2 (2 ok)" in status.lines
    (warning,) = warnings_in(status)
    assert warning.endswith(f"journal {closed}/spool/journal cannot be read: Permission denied")


def test_without_a_home_folder_it_asks_for_the_store() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS],
        env={k: v for k, v in os.environ.items() if k not in ("HOME", "TOOLTRAIL_DB")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "tooltrail: there is no home folder; name the store with --db\n"


# The same as a user id without an entry in the password database.
HOMELESS = """
import pwd, sys
def getpwuid(uid): raise KeyError(uid)
pwd.getpwuid = getpwuid
from tooltrail.cli._app import app
from tooltrail.cli._failures import run
sys.argv = ["tooltrail", "log"]
sys.exit(run(app))
"""


def test_verify_says_which_object_it_may_not_read_and_goes_on(foreign: Cli) -> None:
    open_to_all(foreign.folder)
    with foreign.open() as store:
        session = store.open_session()
        for word in (b"first\n", b"second\n"):
            run_command(session, word * 20_000)
        closed, other = [view.path for view in store.reader.artifacts()]
    open_to_all(foreign.folder)
    foreign.folder.chmod(0o777)
    (foreign.folder / "artifacts" / closed).chmod(0)
    (ended,) = as_nobody(foreign, "artifact verify")
    assert ended.code == 5
    assert ended.text.startswith(f"unreadable {closed}: ")
    assert other not in ended.text
    assert ended.message.startswith("2 artifacts, ")
