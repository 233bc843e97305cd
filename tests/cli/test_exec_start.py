"""`exec` starts light: what it loads. `python -m benchmarks starting` measures what it costs."""

import subprocess
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM, clean_environment, without_coverage

FORBIDDEN = {
    *("alembic", "click", "fsspec", "psycopg", "pydantic", "pysqlite3", "rich", "sqlalchemy"),
    *("sqlite3", "zstandard"),
    # Slow parts of the standard library.
    *("argparse", "asyncio", "ast", "concurrent", "dataclasses", "inspect", "logging", "socket"),
    # Rooms of ours that load one of these.
    *("tooltrail.artifacts.capture", "tooltrail.records.policy", "tooltrail.store.store"),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A store of its own, and modules that are compiled once."""
    quiet = without_coverage(clean_environment())
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **quiet,
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
        "TOOLTRAIL_DB": str(tmp_path / "trail.db"),
    }


def loaded(environment: dict[str, str], *arguments: str) -> set[str]:
    """The modules that the program loads."""
    command = [PROGRAM[0], "-X", "importtime", *PROGRAM[1:], "exec", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def forbidden_in(modules: set[str]) -> set[str]:
    return {name for name in modules if name in FORBIDDEN or name.partition(".")[0] in FORBIDDEN}


def test_exec_loads_neither_the_database_nor_models_nor_the_command_line(
    environment: dict[str, str],
) -> None:
    for arguments in (["--", "true"], ["--session", "x", "--", "seq", "99"], ["/no/such/command"]):
        done = subprocess.run([*PROGRAM, "exec", *arguments], env=environment, check=False)
        assert done.returncode in {0, 127}
    modules = loaded(environment, "--", "true")
    assert "tooltrail.cli._exec" in modules
    assert forbidden_in(modules) == set()


def test_long_output_loads_the_codec_and_nothing_else(environment: dict[str, str]) -> None:
    modules = loaded(environment, "--", "seq", "20000")
    assert forbidden_in(modules) & {"pydantic", "sqlalchemy", "fsspec", "click"} == set()
    assert "zstandard" in modules
