"""The records are pure: importing them brings in no database, object store or command line."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = ["sqlalchemy", "alembic", "fsspec", "zstandard", "click", "rich", "sqlite3", "subprocess"]


@pytest.fixture(scope="module")
def imported() -> set[str]:
    program = "import json, sys, tooltrail.records; print(json.dumps(sorted(sys.modules)))"
    # A measured run would start coverage in the child, and coverage imports a database.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=quiet
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", HEAVY)
def test_importing_the_records_does_not_import(name: str, imported: set[str]) -> None:
    assert name not in imported


def test_importing_the_records_imports_the_records_and_no_other_room(imported: set[str]) -> None:
    rooms = {name.split(".")[1] for name in imported if name.startswith("tooltrail.")}
    assert rooms == {"records"}
