"""Loads and checks agent configurations, and lists them as a table or records."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from tooltrail.agents import (
    AgentConfig,
    AgentConfigWarning,
    CheckedAgent,
    ConfigProblem,
    check_agents,
    load_agent,
)
from tooltrail.cli._output import Members, Record, counted, say
from tooltrail.cli._tables import Columns
from tooltrail.records import NotFoundError


def load_config(path: Path) -> AgentConfig:
    """Load the configuration in a file or folder. Warnings about ignored parts go to stderr."""
    with warnings.catch_warnings(record=True) as ignored:
        warnings.simplefilter("always", AgentConfigWarning)
        config = load_agent(path)
    for warning in ignored:
        say(f"warning: {warning.message}")
    return config


def check_paths(paths: Sequence[Path], *, strict: bool) -> list[CheckedAgent]:
    """Check all configurations in these files and below these folders."""
    checked = [one for path in paths for one in check_agents(path, strict=strict)]
    if not checked:
        raise NotFoundError(f"no *.yml or *.yaml file in {', '.join(map(str, paths))}")
    return checked


def _verdict(one: CheckedAgent) -> str:
    if one.problems:
        return counted(len(one.problems), "problem")
    return counted(len(one.warnings), "warning") if one.warnings else "ok"


def _of_config(read: Callable[[AgentConfig], object]) -> Callable[[CheckedAgent], object]:
    return lambda one: None if one.config is None else read(one.config)


def _cell(read: Callable[[AgentConfig], str]) -> Callable[[CheckedAgent], str]:
    return lambda one: "" if one.config is None else read(one.config)


def _schema_digest(config: AgentConfig) -> str | None:
    return None if config.output is None else config.output.schema_checker.digest


def _records(problems: Sequence[ConfigProblem]) -> list[Record]:
    return [
        {"line": it.line, "column": it.column, "place": it.path, "message": it.message}
        for it in problems
    ]


CHECK_COLUMNS: Columns = {
    "FILE": lambda one: str(one.path),
    "AGENT": _cell(lambda config: config.id),
    "VERSION": _cell(lambda config: config.version or ""),
    "TIERS": _cell(lambda config: str(len(config.ladder))),
    "TOOLS": _cell(lambda config: str(len(config.tools))),
    "RESULT": _cell(lambda config: "text" if config.output is None else "schema"),
    "VERDICT": _verdict,
}

CHECK_MEMBERS: Members = {
    "path": lambda one: str(one.path),
    "agent_id": _of_config(lambda config: config.id),
    "name": _of_config(lambda config: config.name),
    "version": _of_config(lambda config: config.version),
    "tiers": _of_config(lambda config: [tier.name for tier in config.ladder]),
    "tools": _of_config(lambda config: list(config.tools)),
    "agent_digest": _of_config(lambda config: config.version_record.digest),
    "schema_digest": _of_config(_schema_digest),
    "problems": lambda one: _records(one.problems),
    "warnings": lambda one: _records(one.warnings),
}
"""JSON fields of a checked configuration."""
