"""Other processes that use a store, and the way to end them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.cli import without_coverage

ROOT = Path(__file__).parents[2]
NOBODY = 65534
"""A user id without rights, for what root would never be refused."""


def run_python(
    code: str, *arguments: str, user: int | None = None, expected: int = 0, imports: str = ""
) -> tuple[str, str]:
    """Run code to its end and give stdout and stderr.

    Args:
        code: of a module; it may import from `tests`.
        arguments: for `sys.argv[1:]`.
        user: to become after everything was imported, when this process may.
        expected: exit status.
        imports: modules that are imported before the user changes, besides those that all need.
    """
    before = f"import {imports}\n" if imports else ""
    prelude = (
        "" if user is None or os.geteuid() else f"import os; os.setgid({user}); os.setuid({user})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS + before + prelude + code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=without_coverage(os.environ),
    )
    assert done.returncode == expected, done.stderr
    return done.stdout, done.stderr


def start_worker(
    *arguments: str, module: str, takes_input: bool = False, under: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start a module with arguments; by another program, if one is named."""
    return subprocess.Popen(
        [*under, sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE if takes_input else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=without_coverage(os.environ),
    )


# Imported before the user changes, who may not be allowed to read the interpreter's libraries.
_IMPORTS = """
import sys
import alembic.command, alembic.config, fsspec.implementations.local, psycopg
import sqlalchemy.dialects.sqlite
import tooltrail.artifacts, tooltrail.records, tooltrail.store
for package in (tooltrail.records, tooltrail.artifacts, tooltrail.store):
    for name in package.__all__:
        getattr(package, name)
"""
