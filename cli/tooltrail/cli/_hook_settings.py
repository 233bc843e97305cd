"""The entries of our hook in the settings of an agent.

    {"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "tooltrail hook …"}]}]}}

Claude Code and Codex have the same form. Every other byte of the file stays as it is.
"""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from tooltrail.cli._config_files import read_config
from tooltrail.cli._json_edits import added, children_of, member, parse, removed, text_of
from tooltrail.records.errors import InvalidRecordError, TooltrailError, UnavailableError

_HOOKS = "hooks"
_FOLDER = r"""'(?:[^']|'"'"')*/|"[^"]*/|\S*/"""
"""The folder of a program on a command line: in quotes if its path has a space."""
_OURS = re.compile(
    rf"""(?:{_FOLDER})?['"]?tooltrail['"]? hook(?: |$)|.* -m tooltrail\.cli hook(?: |$)"""
)
_TIMEOUT_S = 10
"""Seconds after which an agent ends a hook. An event takes some hundredths of a second."""

BACKUP = ".before-tooltrail"
"""Ending of a copy of a settings file: `install` keeps it without our entries, `uninstall` with."""


class Agent(NamedTuple):
    """Where an agent keeps its settings, and the events to record.

    Attributes:
        variable: environment variable that names its folder.
        folder: its folder in a project, and in the home folder by default.
        file: name of the file.
        events: the events.
        switch: name of the setting that switches off every hook; None if there is none.
    """

    variable: str
    folder: str
    file: str
    events: tuple[str, ...]
    switch: str | None = None

    def settings(self, *, of_project: bool) -> Path:
        """The file with the settings of the project in the current folder, or of the user."""
        of_user = Path(os.environ.get(self.variable) or Path.home() / self.folder)
        return (Path(self.folder).absolute() if of_project else of_user) / self.file

    def switched_off_in(self) -> Path | None:
        """The file with the setting that switches off every hook; None if the hooks are on.

        The settings of the project count before the user's, and its local ones before the shared
        ones. A file that cannot be read is ignored.
        """
        of_project = self.settings(of_project=True)
        paths = (of_project.with_suffix(".local.json"), of_project, self.settings(of_project=False))
        for path in paths if self.switch else ():
            with suppress(TooltrailError):
                is_off = Settings(path).switch(str(self.switch))
                if is_off is not None:
                    return path if is_off else None
        return None


_BOTH = ("PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "SessionStart", "SessionEnd")
"""The events of both agents."""
_OF_CLAUDE = (*_BOTH, "PostToolUseFailure", "PermissionDenied")
_OF_CODEX = (*_BOTH, "Stop")
AGENT_SETTINGS = {
    "claude-code": Agent(
        "CLAUDE_CONFIG_DIR", ".claude", "settings.json", _OF_CLAUDE, "disableAllHooks"
    ),
    "codex": Agent("CODEX_HOME", ".codex", "hooks.json", _OF_CODEX),
}
"""The agents with hooks, by name."""


class Settings:
    """The settings file of an agent.

    Every method raises `InvalidRecordError` if the file is not JSON in the form of the settings,
    and `UnavailableError` if it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        # A symbolic link, as dotfile managers make, stays a link.
        self._path = Path(os.path.realpath(path))
        self._copy = self._path.with_name(self._path.name + BACKUP)

    def installed(self) -> dict[str, str]:
        """The command of each event for which our hook is installed."""
        with self._problems():
            return _installed(_read(self._path))

    def switch(self, name: str) -> bool | None:
        """The value of a setting that is true or false; None if the file does not say."""
        with self._problems():
            found = member(parse(_read(self._path)), name)
            return None if found is None else found.type == "true"

    def replace_ours(self, commands: dict[str, str]) -> bool:
        """Let each event have one command of ours, and no other; return whether that is new."""
        with self._problems():
            before = _read(self._path)
            if (found := _installed(before)) == commands:
                return False
            others = self._others(before, found)
            self._write(others if commands else before, _with_ours(others, commands))
            return True

    def _others(self, data: bytes, found: dict[str, str]) -> bytes:
        """The settings without our entries, as they were before the install if the copy says so."""
        try:
            copy = read_config(str(self._copy))
            keeps_hooks = member(parse(copy), _HOOKS) is not None
            if _with_ours(copy, found) == data:
                return copy
        except (OSError, InvalidRecordError):  # there is no copy that can be used
            keeps_hooks = False
        return _without_ours(data, keeps_hooks=keeps_hooks)

    @contextmanager
    def _problems(self) -> Generator[None]:
        try:
            yield
        except InvalidRecordError as error:
            raise InvalidRecordError(f"{self._path} cannot be used: {error}") from error
        except OSError as error:
            raise UnavailableError(f"{self._path} cannot be used: {error.strerror}") from error

    def _write(self, before: bytes, data: bytes) -> None:
        """Replace the file at once, so that an agent reads the old or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        staged = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        has_file = self._path.exists()
        mode = self._path.stat().st_mode & 0o777 if has_file else 0o600
        if not mode & stat.S_IWUSR:
            raise PermissionError(errno.EACCES, "the file is read-only")
        if not self._copy.is_dir():  # a folder in the way is not ours
            self._copy.unlink(missing_ok=True)  # of an earlier file
            if has_file:
                _write_file(self._copy, before, mode)
        _write_file(staged, data, mode)
        staged.replace(self._path)


def _read(path: Path) -> bytes:
    """The content of a file; empty if there is no file."""
    try:
        return read_config(str(path))
    except FileNotFoundError:
        return b""


def _write_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file that at no time more users may read than its mode says."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(descriptor, mode)


def _ours(data: bytes) -> Iterator[tuple[str, list[Node]]]:
    """Our handlers, each with its event, and with the nodes that hold it, the inner ones first.

    Raises `InvalidRecordError` if the hooks are not in the form of the settings.
    """
    hooks = member(parse(data), _HOOKS)
    if hooks is None:
        return
    if hooks.type != "object":
        raise InvalidRecordError(f"{_HOOKS} in it is not an object")
    for pair in children_of(hooks):
        event, groups = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        is_array = groups is not None and groups.type == "array"
        if not is_array and text_of(event) in {*_OF_CLAUDE, *_OF_CODEX}:
            raise InvalidRecordError(f"{text_of(event)} in it is not an array")
        for group in _items(groups):
            for handler in _items(member(group, _HOOKS)):
                if _OURS.match(text_of(member(handler, "command"))):
                    yield text_of(event), [handler, group, pair, hooks.parent or hooks]


def _items(array: Node | None) -> list[Node]:
    return children_of(array) if array is not None and array.type == "array" else []


def _installed(data: bytes) -> dict[str, str]:
    """Our command of each event that has one."""
    return {event: text_of(member(nodes[0], "command")) for event, nodes in _ours(data)}


def _with_ours(data: bytes, commands: dict[str, str]) -> bytes:
    """The settings with an entry of ours for each event."""
    for event, command in sorted(commands.items(), reverse=True):
        entry = {_HOOKS: [{"type": "command", "command": command, "timeout": _TIMEOUT_S}]}
        data = added(data, (_HOOKS, event), entry)
    return data


def _without_ours(data: bytes, *, keeps_hooks: bool) -> bytes:
    """The settings without our handlers, and without groups and events that are now empty.

    The object of all hooks is removed with the last event unless `keeps_hooks`.
    """
    while (found := next(_ours(data), None)) is not None:
        node, *holders = found[1]
        for holder in holders[:-1] if keeps_hooks else holders:
            if node.parent is not None and len(node.parent.named_children) > 1:
                break  # it holds more, if only a comment
            node = holder
        data = removed(data, node)
    return data
