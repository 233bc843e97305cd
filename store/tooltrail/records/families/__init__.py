"""Which family serves a tool. A tool without a family of its own belongs to `generic`."""

from tooltrail.records.errors import InvalidRecordError, NotFoundError
from tooltrail.records.families import command, generic
from tooltrail.records.families._shared import indent_json
from tooltrail.records.families.command import (
    CommandOutput,
    CommandResult,
    CommandSummary,
    command_completed,
)
from tooltrail.records.families.generic import (
    ContentItem,
    ContentPreview,
    GenericOutput,
    GenericResult,
    generic_completed,
)
from tooltrail.records.projection import Family

__all__ = [
    "CommandOutput",
    "CommandResult",
    "CommandSummary",
    "ContentItem",
    "ContentPreview",
    "FamilyRegistry",
    "GenericOutput",
    "GenericResult",
    "command_completed",
    "default_families",
    "generic_completed",
    "indent_json",
]


class FamilyRegistry:
    """The families that a store knows, by name and by the tools that they serve.

    Not safe to change while other threads record; register at start.

    Raises:
        InvalidRecordError: two of the families share a name or a tool.
    """

    def __init__(self, fallback: Family, *families: Family) -> None:
        self._fallback = fallback
        self._by_name: dict[str, Family] = {}
        self._by_tool: dict[str, Family] = {}
        for family in (fallback, *families):
            self.register(family)

    def register(self, family: Family) -> None:
        """Add a family and the tools that it serves.

        Raises:
            InvalidRecordError: its name, or one of its tools, is taken.
        """
        if family.name in self._by_name:
            raise InvalidRecordError(f"the family {family.name!r} is registered already")
        taken = family.tool_names & self._by_tool.keys()
        if taken:
            raise InvalidRecordError(f"tools that another family serves: {sorted(taken)}")
        self._by_name[family.name] = family
        self._by_tool.update(dict.fromkeys(family.tool_names, family))

    def of_tool(self, tool_name: str) -> Family:
        """The family that serves a tool, `generic` when none does."""
        return self._by_tool.get(tool_name, self._fallback)

    def named(self, name: str) -> Family:
        """The family of this name.

        Raises:
            NotFoundError: there is none.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise NotFoundError(f"no family is named {name!r}") from None


def default_families() -> FamilyRegistry:
    """A fresh registry of all built-in families."""
    return FamilyRegistry(generic.FAMILY, command.FAMILY)
