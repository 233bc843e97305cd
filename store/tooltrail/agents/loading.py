"""Configurations of agents as they stand in files: read, looked for, and checked.

All problems of a file are reported at once, each with its line.
"""

import json
import os
import stat
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue, ValidationError

from tooltrail.agents._config_wording import complaints, unknown_key
from tooltrail.agents._yaml import MAX_SIZE, Document, decode, read_document
from tooltrail.agents.config_problems import (
    AgentConfigError,
    AgentConfigWarning,
    ConfigProblem,
    quoted,
)
from tooltrail.agents.configuration import AgentConfig
from tooltrail.records import NotFoundError, UnavailableError

_SUFFIXES = (".yml", ".yaml")

_USUAL_NAME = "agent.yml"

_PROJECT_AGENTS = Path(".kb", "agents")
"""Where a project keeps the configurations of its agents, below its root."""

_SECTIONS = frozenset(info.alias or name for name, info in AgentConfig.model_fields.items())


@dataclass(frozen=True, slots=True)
class CheckedAgent:
    """A file that was looked at.

    Attributes:
        config: what it holds; None where that is no configuration.
        problems: everything that is wrong; none for a file that is as it should be. That two files
            have the same id is a problem of both, which are read all the same.
        warnings: what was ignored in it: unknown sections, and an `output` without a schema.
        document: where its parts stand; None where that cannot be told.
    """

    path: Path
    config: AgentConfig | None
    problems: tuple[ConfigProblem, ...] = ()
    warnings: tuple[ConfigProblem, ...] = ()
    document: Document | None = field(default=None, repr=False, compare=False)


def load_agent(path: str | os.PathLike[str]) -> AgentConfig:
    """The configuration in a file; a folder stands for the `agent.yml` in it.

    Each unknown section is ignored with an `AgentConfigWarning`, and so is an empty `output`.

    Raises:
        AgentConfigError: it is none, or cannot be read.
        NotFoundError: there is no such file.
        UnavailableError: PyYAML is not installed.
    """
    file = Path(path, _USUAL_NAME) if Path(path).is_dir() else Path(path)
    if not file.exists():
        raise NotFoundError(f"there is no file {file}")
    return _config_of(_read_file(file))


def read_agent(text: str, name: str) -> AgentConfig:
    """The configuration that a text of YAML or JSON spells; warns like `load_agent`.

    Args:
        text: at most 1 MiB of UTF-8.
        name: of the file, for errors.

    Raises:
        AgentConfigError: it is none.
        UnavailableError: PyYAML is not installed.
    """
    return _config_of(_read_text(text, Path(name)))


def find_agents(folder: str | os.PathLike[str]) -> list[Path]:
    """The configurations of a project, or of a folder, in the order of their paths.

    In the root of a project these are the files `.kb/agents/**/agent.yml`. In any other folder
    these are all files `*.yml` and `*.yaml` in it and below it. Hidden files and folders are passed
    over, but for a folder that is named itself; a file that is named itself is taken whatever it is
    called. Links to folders are not followed.

    Raises:
        NotFoundError: there is no such folder.
        UnavailableError: a folder cannot be listed.
    """
    top = Path(folder)
    if not top.exists():
        raise NotFoundError(f"there is no folder {top}")
    if not top.is_dir():
        return [top]
    agents = top / _PROJECT_AGENTS
    if agents.is_dir():
        return sorted(path for path in _iter_files(agents) if path.name == _USUAL_NAME)
    return sorted(_iter_files(top))


def check_agents(folder: str | os.PathLike[str], *, strict: bool = False) -> list[CheckedAgent]:
    """All files of `find_agents`, each with what it holds and what is wrong with it.

    Args:
        folder: or a file.
        strict: whether what would be ignored with a warning is a problem.

    Raises:
        NotFoundError: there is no such folder.
        UnavailableError: a folder cannot be listed, or PyYAML is not installed.
    """
    checked = list(_with_shared_ids([_read_file(path) for path in find_agents(folder)]))
    return [_without_warnings(one) for one in checked] if strict else checked


def _without_warnings(checked: CheckedAgent) -> CheckedAgent:
    """The same, but what was ignored is a problem."""
    if not checked.warnings:
        return checked
    problems = tuple(sorted(checked.problems + checked.warnings))
    return replace(checked, config=None, problems=problems, warnings=())


def _config_of(checked: CheckedAgent) -> AgentConfig:
    if checked.config is None:
        raise AgentConfigError(checked.problems)
    for warning in checked.warnings:
        warnings.warn(str(warning), AgentConfigWarning, stacklevel=3)
    return checked.config


def _read_file(path: Path) -> CheckedAgent:
    try:
        return _read_text(decode(_content(path), str(path)), path)
    except AgentConfigError as error:
        return CheckedAgent(path, None, error.problems)


def _content(path: Path) -> bytes:
    """As much of a file as is needed to see that it is too large."""
    try:
        # To open a pipe would wait for somebody who writes into it.
        if not stat.S_ISFIFO(path.stat().st_mode):
            with path.open("rb") as file:
                return file.read(MAX_SIZE + 1)
        message = "no regular file"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    raise AgentConfigError([ConfigProblem(str(path), 1, 1, "", message)])


def _read_text(text: str, path: Path) -> CheckedAgent:
    """What a text holds.

    Raises:
        AgentConfigError: its structure cannot be read to its end.
    """
    document = read_document(text, str(path))
    value, ignored = _without_ignored(document)
    problems, config = set(document.problems), None
    try:
        # As JSON and strictly: else `"5"` and `true` would pass for numbers.
        config = AgentConfig.model_validate_json(
            json.dumps(value), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        known = {problem.path for problem in problems}
        found = {document.problem(about, message) for about, message in complaints(error)}
        problems |= {problem for problem in found if problem.path not in known}
    return CheckedAgent(
        path, None if problems else config, tuple(sorted(problems)), ignored, document
    )


def _without_ignored(document: Document) -> tuple[JsonValue, tuple[ConfigProblem, ...]]:
    """A document without its parts that say nothing here, and a warning about each of these."""
    value = document.value
    if not isinstance(value, dict):
        return value, ()
    messages = {key: unknown_key((key,)) for key in value.keys() - _SECTIONS}
    if value.get("output") == {}:
        messages["output"] = "there is no `schema`: the agent answers in free text"
    found = (document.problem((key,), message) for key, message in messages.items())
    return {key: one for key, one in value.items() if key not in messages}, tuple(sorted(found))


def _iter_files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _refuse(error: OSError) -> None:
    raise UnavailableError(f"cannot list {error.filename}: {error.strerror}") from error


def _with_shared_ids(checked: Sequence[CheckedAgent]) -> Iterator[CheckedAgent]:
    """The same, with a problem for each file whose id another one has."""
    paths: defaultdict[str | None, list[Path]] = defaultdict(list)
    for one in checked:
        paths[_id_of(one)].append(one.path)
    for one in checked:
        agent_id = _id_of(one)
        others = [str(path) for path in paths[agent_id] if path != one.path]
        if one.document is None or agent_id is None or not others:
            yield one
            continue
        message = f"{quoted(agent_id)} is also the id in {', '.join(others)}"
        shared = one.document.problem(("id",), message)
        yield replace(one, problems=tuple(sorted([*one.problems, shared])))


def _id_of(checked: CheckedAgent) -> str | None:
    """The id in the document, be the rest of it right or wrong."""
    value = None if checked.document is None else checked.document.value
    agent_id = value.get("id") if isinstance(value, dict) else None
    return agent_id if isinstance(agent_id, str) else None
