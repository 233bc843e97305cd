"""The records are pure: importing them brings in no database, object store or command line."""

import os
import subprocess
import sys

import pytest

HEAVY = ["sqlalchemy", "alembic", "fsspec", "zstandard", "click", "rich", "sqlite3", "subprocess"]


LIGHT = ["canonical_json", "digests", "errors", "ids"]
"""Modules for programs that must start fast."""


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return imported_by("tooltrail.records")


def imported_by(module: str) -> set[str]:
    program = f"import sys, {module}; print(*sys.modules)"
    # A measured run would start coverage in the child, and coverage imports a database.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=quiet
    )
    return set(done.stdout.decode().split())


@pytest.mark.parametrize("name", HEAVY)
def test_importing_the_records_does_not_import(name: str, imported: set[str]) -> None:
    assert name not in imported


def test_importing_the_records_imports_the_records_and_no_other_room(imported: set[str]) -> None:
    rooms = {name.split(".")[1] for name in imported if name.startswith("tooltrail.")}
    assert rooms == {"records"}


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_module_needs_light_modules_and_the_standard_library_alone(name: str) -> None:
    imported = imported_by(f"tooltrail.records.{name}") - imported_by("sys")
    own = {
        "tooltrail",
        "tooltrail.records",
        "tooltrail.records.lazy_exports",
        *(f"tooltrail.records.{light}" for light in LIGHT),
    }
    assert {module for module in imported if module.startswith("tooltrail")} <= own
    assert {module.partition(".")[0] for module in imported - own} <= sys.stdlib_module_names
