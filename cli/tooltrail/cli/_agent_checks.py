"""Configurations of agents looked at as a whole, as a table and as records."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tooltrail.agents import CheckedAgent, check_agents
from tooltrail.cli._output import Record, counted
from tooltrail.records import NotFoundError

CHECK_FIELDS = (
    *("path", "agent_id", "name", "version", "tiers", "tools"),
    *("agent_digest", "schema_digest", "problems"),
)
"""JSON fields of a configuration."""


def check_paths(paths: Sequence[Path]) -> list[CheckedAgent]:
    """All configurations below folders, and those in files.

    Raises:
        NotFoundError: there is none.
    """
    checked = [one for path in paths for one in check_agents(path)]
    if not checked:
        raise NotFoundError(f"there is no *.yml and no *.yaml below {', '.join(map(str, paths))}")
    return checked


def check_rows(checked: Sequence[CheckedAgent]) -> Iterator[tuple[str, ...]]:
    """A line for each, for people."""
    for one in checked:
        config, found = one.config, one.problems
        verdict = counted(len(found), "problem") if found else "ok"
        if config is None:
            yield (str(one.path), "", "", "", "", "", verdict)
            continue
        result = "text" if config.output is None else "schema"
        tiers = str(len(config.ladder))
        yield (
            *(str(one.path), config.id, config.version or "", tiers, str(len(config.tools))),
            *(result, verdict),
        )


def check_records(checked: Sequence[CheckedAgent]) -> list[Record]:
    """The same for programs."""
    return [_record(one) for one in checked]


def _record(one: CheckedAgent) -> Record:
    config = one.config
    problems = [
        {"line": it.line, "column": it.column, "place": it.path, "message": it.message}
        for it in one.problems
    ]
    if config is None:
        return {**dict.fromkeys(CHECK_FIELDS), "path": str(one.path), "problems": problems}
    output = config.output
    return {
        "path": str(one.path),
        "agent_id": config.id,
        "name": config.name,
        "version": config.version,
        "tiers": [tier.name for tier in config.ladder],
        "tools": list(config.tools),
        "agent_digest": config.version_record.digest,
        "schema_digest": None if output is None else output.schema_checker.digest,
        "problems": problems,
    }
