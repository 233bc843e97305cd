"""Where a call ran: host, user, folder, process and git commit, for the auditor.

Uses the standard library only, and starts no other program.
"""

import os
import pwd
import sys
import time
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from tooltrail.records.canonical_json import encode

_PERIOD_S: Final = 0.1
"""Seconds of caching, since reading the commit takes half as long as recording a call."""

_MOST_REF_BYTES: Final = 1 << 20
"""The most bytes that are read of a file of git."""

_MOST_CACHED: Final = 16
"""The most environments that are cached."""

NOT_REDACTED: Final = {"redaction": "off"}
"""The member of an environment in which secrets are recorded as they are."""


def environment_json(more: Mapping[str, str] = {}) -> bytes:
    """The current environment of this process as canonical JSON.

    Members: `host`, `user`, `cwd`, `pid`, `platform`, `python`, and `git_commit` inside a
    repository; and those in `more`. The commit changes while a process runs, so it is read again
    every 0.1 s.
    """
    try:
        cwd = os.getcwd()  # noqa: PTH109  the name as the system spells it
    except FileNotFoundError:
        cwd = ""
    period = int(time.monotonic() / _PERIOD_S)
    return _encoded(os.getpid(), cwd, period, tuple(more.items()))


@lru_cache(maxsize=_MOST_CACHED)
def _encoded(
    pid: int,
    cwd: str,
    period: int,  # noqa: ARG001  part of the cache's key
    more: tuple[tuple[str, str], ...],
) -> bytes:
    system, commit = os.uname(), git_commit(Path(cwd)) if cwd else None
    environment: dict[str, str | int] = {
        "host": system.nodename,
        "user": _user(os.getuid()),
        "cwd": cwd,
        "pid": pid,
        "platform": f"{system.sysname}-{system.release}-{system.machine}",
        "python": ".".join(map(str, sys.version_info[:3])),
        **dict(more),
    }
    if commit is not None:
        environment["git_commit"] = commit
    return encode(environment)


def git_commit(folder: Path) -> str | None:
    """The checked-out commit of the repository that contains a folder; None without one."""
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        try:
            if git.is_file():  # a worktree or a submodule: `gitdir: PATH`
                git = parent / _read(git).removeprefix("gitdir: ")
            elif not git.is_dir():
                continue
            return _commit_in(git)
        except OSError:
            return None
    return None


def _commit_in(git: Path) -> str | None:
    head = _read(git / "HEAD")
    if not head.startswith("ref: "):
        return head or None
    ref = head.removeprefix("ref: ")
    shared = git
    if (git / "commondir").is_file():
        shared = git / _read(git / "commondir")
    for place in (git / ref, shared / ref):
        if place.is_file():
            return _read(place) or None
    packed = shared / "packed-refs"
    lines = _read(packed).splitlines() if packed.is_file() else []
    found = (line.split(" ", 1)[0] for line in lines if line.endswith(f" {ref}"))
    return next(found, None)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_REF_BYTES).decode("utf-8", "replace").strip()


def current_actor() -> str:
    """The user and the machine of this process: `user@host`."""
    return f"{_user(os.getuid())}@{os.uname().nodename}"


@cache
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):  # no passwd entry for this uid, as in many containers
        return str(uid)
