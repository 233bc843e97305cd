"""Lists and comparisons of agent versions, from files or from the record."""

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Self
from uuid import UUID

from tooltrail.agents import (
    AgentConfig,
    OutputSchema,
    SchemaChange,
    agent_of_document,
    compare_schemas,
    stored_agent,
)
from tooltrail.cli._agent_checks import load_config
from tooltrail.cli._location import Location
from tooltrail.cli._output import Members, attributes, counted, say, short_digest
from tooltrail.cli._tables import Columns
from tooltrail.cli._times import shown
from tooltrail.records import InvalidRecordError
from tooltrail.store import AgentVersionView, Store, iter_accepted_values


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between the result schemas of two agent versions.

    Attributes:
        changes: changes of the schema.
        refused: invocation ids of recorded results that the newer schema does not accept.
        checked_count: number of recorded results that were checked; None if not requested.
    """

    changes: tuple[SchemaChange, ...]
    refused: tuple[UUID, ...] = ()
    checked_count: int | None = None

    @classmethod
    def of(cls, old: str, new: str, location: Location, *, stored: bool) -> Self:
        """Compare two versions, and optionally check recorded results against the newer one."""
        if not stored and Path(old).exists() and Path(new).exists():
            return cls(compare_schemas(_schema(_load(old, None)), _schema(_load(new, None))))
        with location.open() as store:
            before, after = _load(old, store), _load(new, store)
            changes = compare_schemas(_schema(before), _schema(after))
            if not stored:
                return cls(changes)
            refused, count = _refused_by(store, before.id, _schema(after))
            return cls(changes, refused, count)

    @property
    def is_breaking(self) -> bool:
        """Whether the newer schema refuses a recorded result, or may refuse one."""
        return bool(self.refused) or any(change.effect == "breaking" for change in self.changes)

    def say_stored(self) -> None:
        """Print on stderr which recorded results are refused, if they were checked."""
        if self.checked_count is None:
            return
        say(f"{counted(self.checked_count, 'recorded result')}, {len(self.refused):,} refused")
        for invocation in self.refused:
            say(f"refused: {invocation}")


def _load(name: str, store: Store | None) -> AgentConfig:
    """Load an agent by the path of its file or folder, else by the digest of its version."""
    path = Path(name)
    if path.exists() or store is None:
        return load_config(path)
    return stored_agent(store.reader, name)


def _schema(config: AgentConfig) -> OutputSchema:
    if config.output is None:
        raise InvalidRecordError(f"agent {config.id} has no schema: its result is free text")
    return config.output.schema_checker


def _refused_by(store: Store, agent: str, schema: OutputSchema) -> tuple[tuple[UUID, ...], int]:
    """The recorded results that a schema refuses, and the number of recorded results."""
    refused: list[UUID] = []
    count = 0
    for accepted in iter_accepted_values(store.reader, agent):
        count += 1
        if schema.violations(accepted.value):
            refused.append(accepted.invocation_id)
    return tuple(refused), count


CHANGE_MEMBERS = attributes("effect", "kind", "path", "detail")
"""JSON fields of a schema change."""


CHANGE_COLUMNS: Columns = {
    "EFFECT": attrgetter("effect"),
    "CHANGE": attrgetter("kind"),
    "FIELD": lambda one: one.path or "(root)",
    "WHAT": attrgetter("detail"),
}


def _schema_digest(view: AgentVersionView) -> str | None:
    output = agent_of_document(view.document).output
    return None if output is None else output.schema_checker.digest


VERSION_MEMBERS: Members = {
    "agent_digest": attrgetter("digest"),
    **attributes("agent_id", "version"),
    "schema_digest": _schema_digest,
    **attributes("created_at", "document"),
}
"""JSON fields of an agent version."""

VERSION_COLUMNS: Columns = {
    "VERSION": lambda one: short_digest(one.digest),
    "AGENT": attrgetter("agent_id"),
    "CALLED": lambda one: one.version or "",
    "SCHEMA": lambda one: short_digest(_schema_digest(one)),
    "FIRST RUN": lambda one: shown(one.created_at),
}
