"""Fresh stores with a command line pointed at them."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.audit_guide import record_story
from tests.support.cli import Cli
from tests.support.new_stores import make_store


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder, where records go that no other spool takes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line of a fresh SQLite store."""
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    make_store(str(folder / "trail.db"), folder)
    return Cli(str(folder / "trail.db"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The command line of a store with the made-up project of the audit guide."""
    folder = tmp_path_factory.mktemp("story")
    with patch.dict(os.environ, {"TZ": "UTC", "COLUMNS": "100"}):
        cli = Cli(str(folder / "trail.db"))
        record_story(cli)
        yield cli


@pytest.fixture
def nowhere(tmp_path: Path) -> Cli:
    """The command line of a store that was never created."""
    return Cli(str(tmp_path / "nowhere" / "trail.db"))
