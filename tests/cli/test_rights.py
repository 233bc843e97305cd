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
    "log",
    "status",
    "show",
    "transcript",
    "session ls",
    "artifact ls",
    "artifact verify",
    "artifact cat abcdef",
    "db check",
    "db current",
)
WRITING = ("session open", "session close @last")
ALL = (*READING, *WRITING, "db upgrade", "db downgrade 0001 --yes")


@pytest.fixture
def foreign(cli: Cli) -> Iterator[Cli]:
    """A store that another user made, in a place that everybody may enter and read."""
    with cli.open() as store:
        run_command(store.open_session(), b"theirs\n")
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
    why = {
        "closed file": "it cannot be opened",
        "closed folder": "cannot be opened: Permission denied",
    }[kind]
    # Whoever runs the tests as an ordinary user owns these, and could still write the spool.
    (foreign.folder / "spool").chmod(0o555)
    Path(foreign.database).chmod(0 if kind == "closed file" else 0o444)
    foreign.folder.chmod(0 if kind == "closed folder" else 0o555)
    for command, ended in zip(ALL, as_nobody(foreign, *ALL), strict=True):
        assert (ended.code, ended.text) == (5, ""), command
        assert ended.sentence.endswith(why), command
    (init,) = as_nobody(foreign, "init")
    assert (init.code, init.text) == (5, "")
    assert init.sentence
    runs_unrecorded(foreign, why)


def runs_unrecorded(cli: Cli, why: str) -> None:
    """The command of exec runs where nothing can be written, and both sentences say so."""
    (ran,) = as_nobody(cli, "exec -- true")
    assert ran.code == 0
    away, lost = ran.message.splitlines()
    assert why in away
    assert lost.startswith("tooltrail: nothing was recorded: ")


def test_a_store_that_may_only_be_read_can_be_read_and_is_left_as_it_is(foreign: Cli) -> None:
    before = Path(foreign.database).read_bytes()
    Path(foreign.database).chmod(0o444)
    (foreign.folder / "spool").chmod(0o555)
    foreign.folder.chmod(0o555)
    for command, ended in zip(READING, as_nobody(foreign, *READING), strict=True):
        assert ended.code == (3 if "cat" in command else 0), f"{command}: {ended.message}"
    writing = (*WRITING, "gc --yes")
    for command, ended in zip(writing, as_nobody(foreign, *writing), strict=True):
        assert (ended.code, ended.text) == (5, ""), command
        assert ended.sentence.endswith("it is read-only")
    runs_unrecorded(foreign, "it is read-only")
    assert Path(foreign.database).read_bytes() == before


def test_a_store_cannot_be_created_where_nobody_may_write(foreign: Cli) -> None:
    foreign.folder.chmod(0o555)
    inside = Cli(str(foreign.folder / "deeper" / "trail.db"))
    (ended,) = as_nobody(inside, "init")
    assert ended.code == 5
    assert ended.sentence == f"database {inside.database} cannot be made: Permission denied"


def test_a_spool_that_nobody_may_read_is_said_by_status(foreign: Cli) -> None:
    foreign.folder.chmod(0o777)
    Path(foreign.database).chmod(0o666)
    spool = foreign.folder / "spool"
    for mode in (0, 0o444):
        spool.chmod(mode)
        ended, in_json = as_nobody(foreign, "status", "status --json")
        assert (ended.code, in_json.code) == (0, 0)
        assert "invocations  1 (1 success)" in ended.lines
        assert ended.lines[-1].endswith(", spool of unknown size")
        assert warnings_in(ended) == [
            f"the spool cannot be written, so no output can be captured in it: {spool}",
            f"the spool cannot be read, so its content is unknown: {spool}: Permission denied",
        ]
        (status,) = in_json.records
        unknown = ("spool_bytes", "kept", "unsettled", "waiting_streams", "set_aside")
        assert {status[name] for name in unknown} == {None}
        assert status["spool_unreadable"] == f"{spool}: Permission denied"
        assert status["is_spool_writable"] is False


def test_a_spool_that_may_only_be_read_is_counted_and_a_warning(foreign: Cli) -> None:
    foreign.folder.chmod(0o777)
    Path(foreign.database).chmod(0o666)
    spool = foreign.folder / "spool"
    spool.chmod(0o555)
    (ended,) = as_nobody(foreign, "status")
    assert ended.code == 0
    assert warnings_in(ended) == [
        f"the spool cannot be written, so no output can be captured in it: {spool}"
    ]


@pytest.mark.parametrize("closed", ["spool/kept", "closed"])
def test_what_may_not_be_looked_into_of_a_spool_is_a_warning_of_status(
    foreign: Cli, closed: str
) -> None:
    foreign.folder.chmod(0o777)
    Path(foreign.database).chmod(0o666)
    (foreign.folder / "closed" / "spool").mkdir(parents=True)
    spool = foreign.folder / ("spool" if closed == "spool/kept" else "closed/spool")
    (foreign.folder / closed).mkdir(exist_ok=True)
    (foreign.folder / closed).chmod(0)
    status, log, repaired = as_nobody(
        foreign, f"status --spool {spool}", f"log --spool {spool}", f"repair --spool {spool}"
    )
    assert (status.code, log.code) == (0, 0)
    assert "its content is unknown" in warnings_in(status)[-1]
    assert "Permission denied" in warnings_in(status)[-1]
    if closed == "closed":
        assert repaired.code == 5
        assert repaired.message == f"tooltrail: spool {spool} cannot be read: Permission denied\n"


@pytest.mark.parametrize("mode", [0, 0o444])
def test_a_folder_of_the_spool_that_may_not_be_searched_keeps_nobody_from_reading(
    foreign: Cli, mode: int
) -> None:
    """As that of another user's invocation, whose output waits in a spool of both."""
    foreign.folder.chmod(0o777)
    (foreign.folder / "artifacts").rename(foreign.folder / "away")
    foreign.exec("--", "seq", "90000")
    (foreign.folder / "away").rename(foreign.folder / "artifacts")
    open_to_all(foreign.folder)
    foreign.folder.chmod(0o777)
    Path(foreign.database).chmod(0o666)
    (folder,) = (path for path in (foreign.folder / "spool").glob("????????-*") if path.is_dir())
    folder.chmod(mode)
    why = f"{folder} cannot be read: Permission denied"
    reading = ("log", "session ls", "artifact ls", "gc", "show @last")

    status, verify, stream, *others = as_nobody(
        foreign, "status", "verify", "show @last --stream stdout", *reading
    )

    for command, ended in zip(reading, others, strict=True):
        assert ended.code == 0, command
        assert f"what needs repair is unknown: {why}\n" in ended.message, command
    assert f"and whether it waits is not known: {why}" in others[-1].text
    assert status.code == 0
    unknown = "the spool cannot be read, so its content is unknown"
    assert f"{unknown}: {why}" in warnings_in(status)
    assert (verify.code, stream.code) == (4, 5)
    assert f"and whether it waits is not known: {why}" in verify.text
    assert f"and whether it waits is not known: {why}" in stream.message
    # Whoever may search it is told what there is.
    folder.chmod(0o755)
    ended, log = as_nobody(foreign, "status", "log")
    assert "is unknown" not in ended.message + log.message
    assert "1 invocation with output that waits for the artifacts" in log.message


def warnings_in(ended: Ended) -> list[str]:
    """The warnings of `status`, without that of an old SQLite."""
    lines = ended.message.splitlines()
    return [line.removeprefix("warning: ") for line in lines if " SQLite " not in line]


def test_without_a_home_folder_it_asks_for_the_store() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS],
        env={k: v for k, v in os.environ.items() if k not in ("HOME", "TOOLTRAIL_DB")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("Error: there is no home folder; name the store with --db\n")


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
