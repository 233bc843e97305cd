"""Finds, reads and checks configuration files of agents.

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

from tooltrail.agents._config_wording import complaints, read_pointer, unknown_key
from tooltrail.agents._yaml import MAX_SIZE, Document, decode, read_document
from tooltrail.agents.config_problems import (
    AgentConfigError,
    AgentConfigWarning,
    ConfigProblem,
    quoted,
)
from tooltrail.agents.configuration import AgentConfig
from tooltrail.agents.schemas import contradictions_of
from tooltrail.records import NotFoundError, UnavailableError

_SUFFIXES = (".yml", ".yaml")
_NAMED = 3
"""The most files with the same id that a problem names."""

_USUAL_NAME = "agent.yml"

_PROJECT_AGENTS = Path(".kb", "agents")
"""Folder of agent configurations in a project, relative to its root."""

_SECTIONS = frozenset(info.alias or name for name, info in AgentConfig.model_fields.items())


@dataclass(frozen=True, slots=True)
class CheckedAgent:
    """The result of checking a file.

    Attributes:
        config: the configuration; None if it is not valid.
        problems: all problems. An id that two files share is a problem of both; their
            configurations are valid otherwise.
        warnings: unknown sections and an `output` without a schema, which are ignored; and parts of
            the schema that no value can satisfy.
        document: the parsed document with positions; None if the file cannot be parsed.
    """

    path: Path
    config: AgentConfig | None
    problems: tuple[ConfigProblem, ...] = ()
    warnings: tuple[ConfigProblem, ...] = ()
    document: Document | None = field(default=None, repr=False, compare=False)


def load_agent(path: str | os.PathLike[str]) -> AgentConfig:
    """Load the configuration of a file, or of the `agent.yml` in a folder.

    Gives an `AgentConfigWarning` for each of the warnings of `CheckedAgent`.

    Raises:
        AgentConfigError: the file is not a valid configuration, or cannot be read.
        NotFoundError: the file does not exist.
        UnavailableError: PyYAML is not installed.
    """
    file = Path(path, _USUAL_NAME) if Path(path).is_dir() else Path(path)
    if not file.exists():
        raise NotFoundError(f"{file} does not exist")
    return _config_of(_read_file(file))


def read_agent(text: str, name: str) -> AgentConfig:
    """Read a configuration from YAML or JSON text; warns like `load_agent`.

    Args:
        text: at most 1 MiB in UTF-8.
        name: name of the file, for messages.

    Raises:
        AgentConfigError: the text is not a valid configuration.
        UnavailableError: PyYAML is not installed.
    """
    return _config_of(_read_text(text, Path(name)))


def find_agents(folder: str | os.PathLike[str]) -> list[Path]:
    """The configuration files of a project or folder, sorted by path.

    For the root of a project, the files `.kb/agents/**/agent.yml`. For any other folder, all files
    `*.yml` and `*.yaml` below it. For a file, that file, whatever its name. Hidden files and
    folders inside the folder are skipped, and links to folders are not followed.

    Raises:
        NotFoundError: the folder does not exist.
        UnavailableError: a folder cannot be listed.
    """
    top = Path(folder)
    if not top.exists():
        raise NotFoundError(f"{top} does not exist")
    if not top.is_dir():
        return [top]
    agents = top / _PROJECT_AGENTS
    if agents.is_dir():
        return sorted(path for path in _iter_files(agents) if path.name == _USUAL_NAME)
    return sorted(_iter_files(top))


def check_agents(folder: str | os.PathLike[str], *, strict: bool = False) -> list[CheckedAgent]:
    """Check all files of `find_agents`.

    Args:
        folder: a project, a folder or a file.
        strict: whether warnings are problems.

    Raises:
        NotFoundError: the folder does not exist.
        UnavailableError: a folder cannot be listed, or PyYAML is not installed.
    """
    checked = list(_with_shared_ids([_read_file(path) for path in find_agents(folder)]))
    return [_without_warnings(one) for one in checked] if strict else checked


def _without_warnings(checked: CheckedAgent) -> CheckedAgent:
    """The same result with its warnings as problems."""
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
    """The content of a file, at most one byte over the limit.

    Raises:
        AgentConfigError: the file cannot be read.
    """
    try:
        # Opening a pipe would wait for a writer.
        if not stat.S_ISFIFO(path.stat().st_mode):
            with path.open("rb") as file:
                return file.read(MAX_SIZE + 1)
        message = "not a regular file"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    raise AgentConfigError([ConfigProblem(str(path), 1, 1, "", message)])


def _read_text(text: str, path: Path) -> CheckedAgent:
    """Check a text.

    Raises:
        AgentConfigError: the text cannot be parsed.
    """
    document = read_document(text, str(path))
    value, found_warnings = _without_ignored(document)
    problems, config = set(document.problems), None
    try:
        # Strict, so that `"5"` and `true` are not numbers. JSON mode, so that a list fits a tuple.
        config = AgentConfig.model_validate_json(
            json.dumps(value), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        known = {problem.path for problem in problems}
        found = {document.problem(about, message) for about, message in complaints(error)}
        problems |= {problem for problem in found if problem.path not in known}
    else:
        schema = {} if config.output is None else config.output.json_schema
        for fault in contradictions_of(schema):
            place = ("output", "schema", *read_pointer(fault.pointer))
            found_warnings.append(document.problem(place, fault.message))
    return CheckedAgent(
        path,
        None if problems else config,
        tuple(sorted(problems)),
        tuple(sorted(found_warnings)),
        document,
    )


def _without_ignored(document: Document) -> tuple[JsonValue, list[ConfigProblem]]:
    """The value of a document without ignored parts, and a warning for each ignored part."""
    value = document.value
    if not isinstance(value, dict):
        return value, []
    messages = {key: unknown_key((key,)) for key in value.keys() - _SECTIONS}
    if value.get("output") == {}:
        messages["output"] = "there is no `schema`: the agent answers in free text"
    found = [document.problem((key,), message) for key, message in messages.items()]
    return {key: one for key, one in value.items() if key not in messages}, found


def _iter_files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _refuse(error: OSError) -> None:
    raise UnavailableError(f"cannot list {error.filename}: {error.strerror}") from error


def _with_shared_ids(checked: Sequence[CheckedAgent]) -> Iterator[CheckedAgent]:
    """The same results, with a problem for each id that several files share."""
    paths: defaultdict[str | None, list[Path]] = defaultdict(list)
    for one in checked:
        paths[_id_of(one)].append(one.path)
    for one in checked:
        agent_id = _id_of(one)
        others = [str(path) for path in paths[agent_id] if path != one.path]
        if one.document is None or agent_id is None or not others:
            yield one
            continue
        more = f" and {len(others) - _NAMED} more files" if len(others) > _NAMED else ""
        message = f"{quoted(agent_id)} is also the id in {', '.join(others[:_NAMED])}{more}"
        shared = one.document.problem(("id",), message)
        yield replace(one, problems=tuple(sorted([*one.problems, shared])))


def _id_of(checked: CheckedAgent) -> str | None:
    """The id in the document, even if the rest of the document is not valid."""
    value = None if checked.document is None else checked.document.value
    agent_id = value.get("id") if isinstance(value, dict) else None
    return agent_id if isinstance(agent_id, str) else None
