"""The sdist and the wheel build, and the wheel works in a clean environment."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packages, built from a copy so that nothing is left in the repository."""
    folder = tmp_path_factory.mktemp("dist")
    # The build tools of this environment are the pinned ones.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_every_wing_and_no_namespace_file(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "tooltrail/records/__init__.py",
        "tooltrail/records/py.typed",
        "tooltrail/store/__init__.py",
        "tooltrail/transcripts/__init__.py",
        "tooltrail/artifacts/testing.py",
        "tooltrail/migrations/env.py",
        "tooltrail/migrations/script.py.mako",
        "tooltrail/migrations/versions/0001_create_store.py",
        "tooltrail/cli/__main__.py",
    ):
        assert wanted in names
    assert "tooltrail/__init__.py" not in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_sdist_holds_what_is_needed_to_test_it(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("pyproject.toml", "constraints.txt", "Makefile", "LICENSE", "README.md"):
        assert wanted in names
    assert "tests/conftest.py" in names


@pytest.mark.timeout(600)
def test_the_wheel_works_in_a_clean_environment(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    venv.create(tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "--quiet"]
    # Python compiles only the modules that the commands below import.
    install = [*pip, "install", "--no-compile", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    env = {**os.environ, "TOOLTRAIL_DB": str(tmp_path / "store" / "tooltrail.db")}
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "PYTHONPATH"):
        env.pop(name, None)
    tooltrail = str(binaries / "tooltrail")

    def run(*args: str) -> bytes:
        return subprocess.run(
            [tooltrail, *args], cwd=tmp_path, env=env, check=True, stdout=subprocess.PIPE
        ).stdout

    run("init")
    assert run("exec", "--", "seq", "1", "50000") == run("show", "--stream", "stdout")
    assert json.loads(run("log", "--json"))[0]["exit_status"] == 0
    run("artifact", "verify")
    run("db", "check")
