"""Loads, checks and compares agents, and lists checks, versions, changes and outcomes of runs."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tooltrail.agents import (
    AgentConfig,
    AgentConfigWarning,
    AgentStatistics,
    CheckedAgent,
    ConfigProblem,
    OutputSchema,
    SchemaChange,
    agent_of_document,
    check_agents,
    compare_schemas,
    load_agent,
    stored_agent,
)
from tooltrail.agents.config_problems import quoted
from tooltrail.cli._location import Location
from tooltrail.cli._output import (
    Members,
    Record,
    attributes,
    counted,
    duration_of,
    say,
    short_digest,
    write,
)
from tooltrail.cli._tables import Columns, print_table
from tooltrail.cli._times import shown
from tooltrail.records import DamageError, InvalidRecordError, NotFoundError
from tooltrail.records.complaints import proposal
from tooltrail.store import (
    AgentVersionView,
    Reader,
    Store,
    agent_versions,
    iter_accepted_values,
)
from tooltrail.store.read.agent_runs import OnError


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
    return [_with_unknown_tools(one) for one in checked]


def _with_unknown_tools(checked: CheckedAgent) -> CheckedAgent:
    """The same result, with a warning for each tool that is not built in.

    It is never a problem, because a program can offer tools of its own.
    """
    from tooltrail.workspace.making import BUILT_IN  # noqa: PLC0415  only `check` needs it

    if checked.config is None or checked.document is None:
        return checked
    found = [
        checked.document.problem(
            ("tools", position),
            f"no built-in tool has the name {quoted(name)}{proposal(name, BUILT_IN)}",
        )
        for position, name in enumerate(checked.config.tools)
        if name not in BUILT_IN
    ]
    return replace(checked, warnings=tuple(sorted([*checked.warnings, *found])))


class Comparison(NamedTuple):
    """The changes between the result schemas of two agent versions, and their effect on the record.

    `refused` are the invocations whose recorded results the newer schema does not accept, of
    `checked_count` recorded results.
    """

    changes: Sequence[SchemaChange]
    refused: Sequence[UUID]
    checked_count: int


def compare_agents(old: str, new: str, location: Location, *, stored: bool) -> Comparison:
    """Compare two versions, and with `stored` check recorded results against the newer one.

    The store is opened only if it is needed.
    """
    if not stored and Path(old).exists() and Path(new).exists():
        return _compared(load_config(Path(old)), load_config(Path(new)), None)
    with location.open() as store:
        before, after = _load(old, store), _load(new, store)
        return _compared(before, after, store if stored else None)


def _compared(before: AgentConfig, after: AgentConfig, store: Store | None) -> Comparison:
    schema = _schema(after)
    changes = compare_schemas(_schema(before), schema)
    found = () if store is None else iter_accepted_values(store.reader, before.id)
    is_refused = {one: bool(schema.violations(value)) for one, value in found}
    return Comparison(changes, [one for one, is_so in is_refused.items() if is_so], len(is_refused))


def _load(name: str, store: Store) -> AgentConfig:
    """Load an agent by the path of its file or folder, else by the digest of its version."""
    path = Path(name)
    return load_config(path) if path.exists() else stored_agent(store.reader, name)


def _schema(config: AgentConfig) -> OutputSchema:
    if config.output is None:
        raise InvalidRecordError(f"agent {config.id} has no schema: its result is free text")
    return config.output.schema_checker


def _digest_of_schema(config: AgentConfig) -> str | None:
    return None if config.output is None else config.output.schema_checker.digest


def _verdict(one: CheckedAgent) -> str:
    if one.problems:
        return counted(len(one.problems), "problem")
    return counted(len(one.warnings), "warning") if one.warnings else "ok"


def _of_config(
    read: Callable[[AgentConfig], object],
) -> Callable[["CheckedAgent | RecordedVersion"], object]:
    return lambda one: None if one.config is None else read(one.config)


def _cell(
    read: Callable[[AgentConfig], str],
) -> Callable[["CheckedAgent | RecordedVersion"], str]:
    return lambda one: "" if one.config is None else read(one.config)


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
    "schema_digest": _of_config(_digest_of_schema),
    "problems": lambda one: _records(one.problems),
    "warnings": lambda one: _records(one.warnings),
}
"""JSON fields of a checked configuration."""

CHANGE_MEMBERS = attributes("effect", "kind", "path", "detail")
"""JSON fields of a schema change."""


CHANGE_COLUMNS: Columns = {
    "EFFECT": attrgetter("effect"),
    "CHANGE": attrgetter("kind"),
    "FIELD": lambda one: one.path or "(root)",
    "WHAT": attrgetter("detail"),
}


class RecordedVersion(NamedTuple):
    """A recorded version of an agent, and its configuration; None if that cannot be read."""

    view: AgentVersionView
    config: AgentConfig | None


def recorded_versions(
    reader: Reader, agent: str | None, on_error: OnError
) -> list[RecordedVersion]:
    """The recorded versions of one agent, or of all; see `agent_versions`."""
    found: list[RecordedVersion] = []
    for view in agent_versions(reader, agent, on_error=on_error):
        config: AgentConfig | None = None
        try:
            config = agent_of_document(view.document)
        except DamageError as error:
            on_error(error)
        found.append(RecordedVersion(view, config))
    return found


VERSION_MEMBERS: Members = {
    "agent_digest": attrgetter("view.digest"),
    "agent_id": attrgetter("view.agent_id"),
    "version": attrgetter("view.version"),
    "schema_digest": _of_config(_digest_of_schema),
    "created_at": attrgetter("view.created_at"),
    "document": attrgetter("view.document"),
}
"""JSON fields of an agent version."""

VERSION_COLUMNS: Columns = {
    "VERSION": lambda one: short_digest(one.view.digest),
    "AGENT": attrgetter("view.agent_id"),
    "CALLED": lambda one: one.view.version or "",
    "SCHEMA": _cell(lambda config: short_digest(_digest_of_schema(config))),
    "FIRST RUN": lambda one: shown(one.view.created_at),
}


def print_statistics(found: Sequence[AgentStatistics]) -> None:
    """Print tables of runs and tiers, of errors by field, and of escalations."""
    rows = ([cell(one) for cell in _COLUMNS.values()] for one in found)
    print_table([*_COLUMNS], rows, right=[*_COLUMNS][3:])
    totals = [one for one in found if one.tier is None]
    errors = [(one, path, count) for one in totals for path, count in one.errors.most_common()]
    escalations = [
        (one, f"{before} → {after}: {outcome}", count)
        for one in totals
        for (before, after, outcome), count in one.escalations.most_common()
    ]
    for counts, number, what in (
        (errors, "ERRORS", "FIELD"),
        (escalations, "TIMES", "ESCALATION"),
    ):
        if counts:
            write("\n")
            rows = (
                [one.agent_id, short_digest(one.schema_digest), f"{count:,}", text]
                for one, text, count in counts
            )
            print_table(("AGENT", "SCHEMA", number, what), rows, right=(number,))


def _number(name: str) -> Callable[[AgentStatistics], str]:
    return lambda one: f"{getattr(one, name):,}"


def _percent(name: str) -> Callable[[AgentStatistics], str]:
    return lambda one: "" if (share := getattr(one, name)) is None else f"{share:.1%}"


_COLUMNS: Columns = {
    "AGENT": attrgetter("agent_id"),
    "SCHEMA": lambda one: short_digest(one.schema_digest),
    "TIER": lambda one: one.tier or "(all)",
    "RUNS": _number("count"),
    "OPEN": _number("open_count"),
    "OK": _number("success_count"),
    "RATE": _percent("success_rate"),
    "1ST TRY": _percent("first_try_rate"),
    "SUBMITTED": _number("attempt_count"),
    "REJECTED": _number("rejected_count"),
    "MISSING": _number("missing_count"),
    "LOST": _number("lost_count"),
    "P50": lambda one: duration_of(one.duration_ms(0.5)),
    "P95": lambda one: duration_of(one.duration_ms(0.95)),
}


def _escalations(one: AgentStatistics) -> list[Record]:
    return [
        {"from": before, "to": after, "outcome": outcome, "count": count}
        for (before, after, outcome), count in one.escalations.items()
    ]


STATISTICS_MEMBERS: Members = {
    **attributes("agent_id", "schema_digest", "tier", "count", "open_count", "success_count"),
    **attributes("success_rate", "first_try_count", "first_try_rate", "attempt_count"),
    **attributes("rejected_count", "missing_count", "lost_count", "reminder_count"),
    **attributes("input_tokens", "output_tokens"),
    "p50_ms": lambda one: one.duration_ms(0.5),
    "p95_ms": lambda one: one.duration_ms(0.95),
    "outcomes": lambda one: dict(one.outcomes),
    "errors": lambda one: dict(one.errors),
    "escalations": _escalations,
}
"""JSON fields of the statistics of an agent."""
