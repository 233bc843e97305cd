"""Configurations of agents as they stand in files: read, looked for, and checked.

All problems of a file are reported at once, each with its line.
"""

import errno
import json
import os
import stat
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue, ValidationError

from tooltrail.agents._config_wording import complaints, unknown_key
from tooltrail.agents._yaml_documents import MAX_SIZE, decode, read_document
from tooltrail.agents._yaml_nodes import Fault, Node, NoDocumentError
from tooltrail.agents.config_problems import (
    AgentConfigError,
    AgentConfigWarning,
    ConfigProblem,
    Place,
    quoted,
    spell_path,
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
    """

    path: Path
    config: AgentConfig | None
    problems: tuple[ConfigProblem, ...] = ()
    warnings: tuple[ConfigProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """What became of a text: a configuration or problems, and where its parts stand."""

    config: AgentConfig | None = None
    root: Node | None = None
    found: tuple[Fault, ...] = ()
    ignored: tuple[Fault, ...] = ()


def load_agent(path: str | os.PathLike[str]) -> AgentConfig:
    """The configuration in a file; a folder stands for the `agent.yml` in it.

    Each unknown section is ignored with an `AgentConfigWarning`, and so is an empty `output`.

    Raises:
        AgentConfigError: it is none, or cannot be read.
        NotFoundError: there is no such file.
        UnavailableError: PyYAML is not installed.
    """
    file = Path(path, _USUAL_NAME) if Path(path).is_dir() else Path(path)
    try:
        reading = _read_file(file)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {file}") from error
    return _config_of(reading, str(file))


def read_agent(text: str, name: str) -> AgentConfig:
    """The configuration that a text of YAML or JSON spells; warns like `load_agent`.

    Args:
        text: at most 1 MiB of UTF-8.
        name: of the file, for errors.

    Raises:
        AgentConfigError: it is none.
        UnavailableError: PyYAML is not installed.
    """
    return _config_of(_read_text(text), name)


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
    readings = [(path, _read_present(path)) for path in find_agents(folder)]
    if strict:
        readings = [(path, _with_ignored(reading)) for path, reading in readings]
    return [
        CheckedAgent(
            path,
            reading.config,
            _problems(reading.found, path),
            _problems(reading.ignored, path),
        )
        for path, reading in _with_shared_ids(readings)
    ]


def _with_ignored(reading: _Reading) -> _Reading:
    """The same, but what was ignored is a problem."""
    if not reading.ignored:
        return reading
    return replace(reading, config=None, found=(*reading.found, *reading.ignored), ignored=())


def _problems(faults: Iterable[Fault], file: str | Path) -> tuple[ConfigProblem, ...]:
    ordered = sorted(faults, key=lambda fault: fault.place)
    return tuple(
        ConfigProblem(
            str(file), one.place.line, one.place.column, spell_path(one.path), one.message
        )
        for one in dict.fromkeys(ordered)
    )


def _config_of(reading: _Reading, file: str) -> AgentConfig:
    if reading.config is None:
        raise AgentConfigError(_problems(reading.found, file))
    for problem in _problems(reading.ignored, file):
        warnings.warn(str(problem), AgentConfigWarning, stacklevel=3)
    return reading.config


def _read_present(path: Path) -> _Reading:
    try:
        return _read_file(path)
    except FileNotFoundError:
        return _failed("there is no such file any more")


def _read_file(path: Path) -> _Reading:
    try:
        return _read_text(decode(_content(path)))
    except NoDocumentError as error:
        return _Reading(found=(error.fault,))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise
        return _failed(f"cannot be read: {os.strerror(error.errno or errno.EIO)}")


def _content(path: Path) -> bytes:
    """As much of a file as is needed to see that it is too large."""
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NoDocumentError(Place(1, 1), "no regular file")
        return file.read(MAX_SIZE + 1)


def _open_at_once(path: str, flags: int) -> int:
    # Else to open a pipe would wait for somebody who writes into it.
    return os.open(path, flags | os.O_NONBLOCK)


def _failed(message: str) -> _Reading:
    return _Reading(found=(Fault(Place(1, 1), (), message),))


def _read_text(text: str) -> _Reading:
    try:
        root, faults = read_document(text)
    except NoDocumentError as error:
        return _Reading(found=(error.fault,))
    found, config = list(faults), None
    document, ignored = _without_ignored(root)
    try:
        # As JSON and strictly: else `"5"` and `true` would pass for numbers.
        config = AgentConfig.model_validate_json(
            json.dumps(document), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        known = {fault.path for fault in faults}
        found += [fault for fault in complaints(error, root) if fault.path not in known]
    return _Reading(None if found else config, root, tuple(found), tuple(ignored))


def _without_ignored(root: Node) -> tuple[JsonValue, list[Fault]]:
    """A document without its parts that say nothing here, and a warning about each of these."""
    if not isinstance(root.value, dict):
        return root.value, []
    messages = {
        key: f"{unknown_key((key,))}; it is ignored" for key in root.value.keys() - _SECTIONS
    }
    if root.value.get("output") == {}:
        messages["output"] = "there is no `schema`: the agent answers in free text"
    document: JsonValue = {key: one for key, one in root.value.items() if key not in messages}
    return document, [Fault(*root.locate((key,)), text) for key, text in messages.items()]


def _iter_files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _refuse(error: OSError) -> None:
    raise UnavailableError(f"cannot list {error.filename}: {error.strerror}") from error


def _with_shared_ids(readings: Sequence[tuple[Path, _Reading]]) -> Iterable[tuple[Path, _Reading]]:
    paths: defaultdict[str, list[Path]] = defaultdict(list)
    for path, reading in readings:
        if (agent_id := _id_of(reading)) is not None:
            paths[agent_id].append(path)
    for path, reading in readings:
        others = [other for other in paths.get(_id_of(reading) or "", ()) if other != path]
        yield path, _sharing(reading, others)


def _sharing(reading: _Reading, others: Sequence[Path]) -> _Reading:
    if not others or reading.root is None:
        return reading
    message = f"{quoted(_id_of(reading) or '')} is also the id in {', '.join(map(str, others))}"
    return replace(reading, found=(*reading.found, Fault(*reading.root.locate(("id",)), message)))


def _id_of(reading: _Reading) -> str | None:
    """The id in a document, be the rest of it right or wrong."""
    member = None if reading.root is None else reading.root.members.get("id")
    return member.value if member is not None and isinstance(member.value, str) else None
