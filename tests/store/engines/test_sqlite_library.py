"""Which SQLite is used: that of the extra, unless it has the fault and is older."""

import json
import sqlite3 as standard  # noqa: TID251  compared with the one that is used
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from tests.support.cli import Cli

from tooltrail.store.engines.sqlite_library import library_in_use, sqlite3

WITHOUT = "import sys; sys.modules['pysqlite3'] = None; "
PROGRAM = f"{WITHOUT}from tooltrail.cli.__main__ import main; main()"


def installed(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]) -> ModuleType:
    """A library of this version in the place of the extra."""
    module = cast("ModuleType", SimpleNamespace(sqlite_version_info=version))
    monkeypatch.setitem(sys.modules, "pysqlite3", cast("ModuleType", SimpleNamespace()))
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", module)
    return module


def test_the_library_of_the_extra_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    of_extra = installed(monkeypatch, (3, 51, 3))
    newer = SimpleNamespace(sqlite_version_info=(99, 0, 0))
    monkeypatch.setitem(sys.modules, "sqlite3", cast("ModuleType", newer))
    assert library_in_use() is of_extra


def test_of_two_libraries_with_the_fault_the_newer_one_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_extra = installed(monkeypatch, (3, 51, 2))
    older = SimpleNamespace(sqlite_version_info=(3, 40, 1))
    monkeypatch.setitem(sys.modules, "sqlite3", cast("ModuleType", older))
    assert library_in_use() is of_extra


def test_an_older_one_is_not_used_although_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, (3, 7, 0))
    assert library_in_use() is standard


def test_without_the_extra_it_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", None)
    assert library_in_use() is standard


def test_status_names_the_library_that_is_used(tmp_path: Path) -> None:
    cli = Cli(str(tmp_path / "trail.db"))
    cli.ok("init")
    assert cli.ok("status", "--json").records[0]["engine"] == f"SQLite {sqlite3.sqlite_version}"


def test_a_store_goes_on_with_the_library_of_python(tmp_path: Path) -> None:
    cli = Cli(str(tmp_path / "trail.db"))

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", PROGRAM, *arguments]
        ended = subprocess.run(command, env=cli.full_environment, capture_output=True, check=True)
        return ended.stdout.decode()

    run("init")
    cli.exec("--", "echo", "by the newer one")
    run("exec", "--", "echo", "by the older one")
    assert f"SQLite {standard.sqlite_version}" in run("status")
    ids = [view["id"] for view in json.loads(run("log", "--json", "--reverse"))]
    assert [run("show", name, "--stream", "stdout") for name in ids] == [
        "by the newer one\n",
        "by the older one\n",
    ]
    run("verify")
    run("db", "check")
    assert cli.ok("verify").code == 0
