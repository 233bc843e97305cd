"""The user's data folder (XDG Base Directory Specification), without pathlib, which takes 5 ms."""

import os
from collections.abc import Mapping


def data_folder(environment: Mapping[str, str] = os.environ) -> str | None:
    """The folder for stores of this user; None if the user has no home folder."""
    folder = environment.get("XDG_DATA_HOME", "")
    if not folder.startswith("/"):  # the specification requires that a relative value is ignored
        home = os.path.expanduser("~")  # noqa: PTH111  see above
        if not home.startswith("/"):
            return None
        folder = f"{home}/.local/share"
    return f"{folder}/tooltrail"
