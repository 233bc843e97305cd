"""Producers start light: the log loads the standard library and a few small modules."""

import json
import os
import subprocess
import sys

import pytest

LIGHT = {
    "tooltrail",
    "tooltrail.journal",
    "tooltrail.records",
    *(f"tooltrail.journal.{name}" for name in ("ends", "forks", "frames", "log", "owners")),
    *(f"tooltrail.journal.{name}" for name in ("reading", "segments")),
    *("tooltrail.artifacts", "tooltrail.artifacts.private_files"),
    *(f"tooltrail.records.{name}" for name in ("canonical_json", "digests", "errors")),
    *(
        f"tooltrail.records.{name}"
        for name in ("fact_spelling", "facts", "frozen", "states", "times")
    ),
    "tooltrail.records.lazy_exports",
}
"""Modules of Tooltrail that the log needs, to write and to read."""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    program = (
        "import json, sys; before = set(sys.modules); "
        "import tooltrail.journal.log, tooltrail.journal.owners, tooltrail.journal.reading; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    # A measured run would start coverage in the child.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=quiet
    )
    return set(json.loads(done.stdout))


def test_importing_the_log_loads_a_few_small_modules_of_ours(loaded: set[str]) -> None:
    ours = {name for name in loaded if name.partition(".")[0] == "tooltrail"}
    assert ours | {"tooltrail"} == LIGHT


def test_importing_the_log_loads_the_standard_library_and_nothing_else(loaded: set[str]) -> None:
    others = {name.partition(".")[0] for name in loaded} - {"tooltrail"}
    assert others - sys.stdlib_module_names == set()


@pytest.mark.parametrize("name", ["asyncio", "sqlite3", "subprocess", "socket", "logging", "email"])
def test_importing_the_log_does_not_load(name: str, loaded: set[str]) -> None:
    assert name not in loaded
