"""A program is looked for as a shell does it."""

import errno
from pathlib import Path

import pytest

from tooltrail.cli._process.spawn import failure_of


def denied() -> OSError:
    """What the system says when a folder of PATH may not be entered, whether or not it matters."""
    return PermissionError(errno.EACCES, "Permission denied", "tool")


def test_a_folder_of_path_that_may_not_be_entered_hides_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    failure = failure_of(denied(), ["tool"], None)
    assert (failure.exit_code, failure.message) == (127, "command 'tool' is not found")


def test_a_program_that_is_seen_and_may_not_be_run_is_no_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "tool").touch()
    for argv in (["tool"], [str(tmp_path / "tool")]):
        assert failure_of(denied(), argv, None).exit_code == 126
