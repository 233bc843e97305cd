"""Where a session took place, also where a process has no name, no folder and odd ones."""

import json
import os
import pwd
from pathlib import Path

import pytest

from tooltrail.store import Store
from tooltrail.store.environment import current_environment, environment_json


def test_the_facts_of_this_process_are_named() -> None:
    found = current_environment()
    assert set(found) == {"host", "user", "cwd", "pid", "platform", "python", "tooltrail"}
    assert found["pid"] == os.getpid()
    assert found["cwd"] == str(Path.cwd())
    assert json.loads(environment_json(found)) == found


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert current_environment()["user"] == str(os.getuid())


def test_a_folder_that_is_gone_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert current_environment()["cwd"] == ""
    finally:
        os.chdir(tmp_path)


def test_a_folder_with_a_name_that_is_no_text_is_recorded(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "odd \udcff"
    odd.mkdir()
    monkeypatch.chdir(odd)
    session = store.open_session()
    view = store.reader.session(session.id)
    assert json.loads(view.environment)["cwd"] == {"$tooltrail.text": f"{tmp_path}/odd \\udcff"}
