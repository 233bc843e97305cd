"""The entries of our hook in the settings of an agent.

    {"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "tooltrail hook …"}]}]}}

Claude Code and Codex have the same form. Every other byte of the file stays as it is.
"""

import os
import re
import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from tooltrail.cli._config_files import read_config
from tooltrail.cli._json_edits import appended, children_of, member, parse, removed, text_of
from tooltrail.cli._output import write_file
from tooltrail.records.errors import InvalidRecordError, UnavailableError

_HOOKS = "hooks"
_OURS = re.compile(r"""['"]?(?:\S*/)?tooltrail['"]? hook(?: |$)|.* -m tooltrail\.cli hook(?: |$)""")
_TIMEOUT_S = 10
"""Seconds after which an agent ends a hook. An event takes some hundredths of a second."""

BACKUP = ".before-tooltrail"
"""Ending of the copy of a settings file as it was before the last change."""


class Agent(NamedTuple):
    """Where an agent keeps its settings, and the events to record.

    Attributes:
        name: name of the agent.
        variable: environment variable that names its folder.
        folder: its folder in a project, and in the home folder by default.
        file: name of the file.
        events: the events.
    """

    name: str
    variable: str
    folder: str
    file: str
    events: tuple[str, ...]

    def settings(self, environment: Mapping[str, str], *, of_project: bool) -> Path:
        """The file with the settings of the project in the current folder, or of the user."""
        folder = environment.get(self.variable)
        if of_project:
            return Path(self.folder).absolute() / self.file
        return (Path(folder) if folder else Path.home() / self.folder) / self.file


_OF_BOTH = ("PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop")
AGENT_SETTINGS = {
    one.name: one
    for one in (
        Agent(
            "claude-code",
            "CLAUDE_CONFIG_DIR",
            ".claude",
            "settings.json",
            (*_OF_BOTH, "PostToolUseFailure", "PermissionDenied", "SessionStart", "SessionEnd"),
        ),
        Agent(
            "codex",
            "CODEX_HOME",
            ".codex",
            "hooks.json",
            (*_OF_BOTH, "SessionStart", "SessionEnd", "Stop"),
        ),
    )
}
"""The agents with hooks, by name."""


class Settings:
    """The settings file of an agent.

    Every method raises `InvalidRecordError` if the file is not JSON in the form of the settings,
    and `UnavailableError` if it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def install(self, agent: Agent, command: str) -> bool:
        """Let the agent run a command for each event; return whether the file has changed."""
        if self.installed() == dict.fromkeys(agent.events, command):
            return False
        with self._problems():
            data = _without_ours(self._read())
            entry = {_HOOKS: [{"type": "command", "command": command, "timeout": _TIMEOUT_S}]}
            for event in agent.events:
                data = appended(data, (_HOOKS, event), entry)
            self._write(data)
        return True

    def uninstall(self) -> bool:
        """Remove our entries; return whether there were any."""
        with self._problems():
            before = self._read()
            data = _without_ours(before)
            if data != before:
                self._write(data)
        return data != before

    def installed(self) -> dict[str, str]:
        """The command of each event for which our hook is installed."""
        with self._problems():
            found = _ours(self._read())
            return {event: text_of(member(nodes[0], "command")) for event, nodes in found}

    @contextmanager
    def _problems(self) -> Generator[None]:
        mask = os.umask(0o077)  # others cannot read a new file before it has its mode
        try:
            yield
        except (InvalidRecordError, UnicodeDecodeError) as error:
            raise InvalidRecordError(f"{self._path} cannot be used: {error}") from error
        except OSError as error:
            raise UnavailableError(f"{self._path} cannot be used: {error.strerror}") from error
        finally:
            os.umask(mask)

    def _read(self) -> bytes:
        try:
            return read_config(str(self._path))
        except FileNotFoundError:
            return b""

    def _write(self, data: bytes) -> None:
        """Replace the file at once, so that an agent reads the old or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            shutil.copy(self._path, f"{self._path}{BACKUP}")
        write_file(self._path, [data.decode()])


def _ours(data: bytes) -> Iterator[tuple[str, list[Node]]]:
    """Our handlers, each with its event, and with the nodes that hold it, the inner ones first."""
    hooks = member(parse(data), _HOOKS) if data.strip() else None
    for pair in children_of(hooks) if hooks is not None and hooks.type == "object" else ():
        event, groups = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        for group in _items(groups):
            for handler in _items(member(group, _HOOKS)):
                if _OURS.match(text_of(member(handler, "command"))):
                    yield text_of(event), [handler, group, pair, *_parent(hooks)]


def _items(array: Node | None) -> list[Node]:
    return children_of(array) if array is not None and array.type == "array" else []


def _parent(node: Node | None) -> list[Node]:
    return [] if node is None or node.parent is None else [node.parent]


def _without_ours(data: bytes) -> bytes:
    """The settings without our handlers, and without groups and events that are now empty."""
    while (found := next(_ours(data), None)) is not None:
        node, *holders = found[1]
        for holder in holders:
            if any(len(one.named_children) > 1 for one in _parent(node)):
                break  # it holds more, if only a comment
            node = holder
        data = removed(data, node)
    return data
