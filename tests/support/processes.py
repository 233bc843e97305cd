"""Other processes that use a store."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.cli import without_coverage

ROOT = Path(__file__).parents[2]
NOBODY = 65534
"""A user id without rights, for tests of denied access; root is never denied."""


def run_python(
    code: str, *arguments: str, user: int | None = None, expected: int = 0, imports: str = ""
) -> tuple[str, str]:
    """Run code to its end, and return stdout and stderr.

    Args:
        code: code of a module; it may import from `tests`.
        arguments: values of `sys.argv[1:]`.
        user: user to become after all imports, if this process has the right.
        expected: expected exit status.
        imports: further modules to import before the user changes.
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
    """Start a module with arguments, under another program if one is given."""
    return subprocess.Popen(
        [*under, sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE if takes_input else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=without_coverage(os.environ),
    )


# Imported before the user changes, since that user may not read the interpreter's libraries.
_IMPORTS = """
import sys
import alembic.command, alembic.config, fsspec.implementations.local, psycopg
import sqlalchemy.dialects.sqlite
import tooltrail.artifacts, tooltrail.records, tooltrail.store
for package in (tooltrail.records, tooltrail.artifacts, tooltrail.store):
    for name in package.__all__:
        getattr(package, name)
"""
