"""Where a session took place: host, user, folder and program, for the auditor."""

import getpass
import os
import platform
import socket
from importlib.metadata import version

from tooltrail.records.canonical_json import encode_text


def current_environment() -> dict[str, str | int]:
    """Facts of this process that a later reader cannot find out any more."""
    return {
        "host": socket.gethostname(),
        "user": _user(),
        "cwd": _cwd(),
        "pid": os.getpid(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "tooltrail": version("tooltrail"),
    }


def environment_json(environment: dict[str, str | int]) -> str:
    """The canonical JSON under which an environment is stored."""
    return encode_text(environment)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no passwd entry for this uid, as in many containers
        return str(os.getuid())


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  the name as the system spells it
    except FileNotFoundError:
        return ""
