"""Policies: which family serves a tool, and the budgets of its results, identified by a digest.

A policy is stored with every record that it shaped, so that years later it is still known why a
preview ends where it does. It contains the budget of every family, and the overrides for single
tools. An override for a single call makes a separate policy.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, SerializeAsAny

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records._text_cuts import REACH
from tooltrail.records.budgets import (
    COMPACTION_CHARS,
    MAX_PREVIEW_CHARS,
    MAX_UTF8_BYTES,
    Budget,
    ErrorBudget,
    ReceiptChars,
)
from tooltrail.records.complaints import proposal
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.envelope import CompleteOutput
from tooltrail.records.errors import InvalidRecordError, NotFoundError
from tooltrail.records.family import Family

Number = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
"""A signed integer of 64 bits, as any JSON carries it; clamped where it is used."""

StreamBytes = Annotated[int, Field(strict=True, ge=0, lt=1 << 63)]


class FamilyRegistry:
    """The families that a store knows, by name and by the tools that they serve.

    Not safe to change while other threads record; register families at program start.

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
            InvalidRecordError: the family's name, or one of its tools, is already registered.
        """
        if family.name in self._by_name:
            raise InvalidRecordError(f"the family {family.name!r} is registered already")
        taken = family.tool_names & self._by_tool.keys()
        if taken:
            raise InvalidRecordError(f"tools that another family serves: {sorted(taken)}")
        self._by_name[family.name] = family
        self._by_tool.update(dict.fromkeys(family.tool_names, family))

    def __iter__(self) -> Iterator[Family]:
        return iter(self._by_name.values())

    def of_tool(self, tool_name: str) -> Family:
        """The family that serves a tool; the fallback (`generic`) if no other family does."""
        return self._by_tool.get(tool_name, self._fallback)

    def of_output(self, output: CompleteOutput, family: Family) -> Family:
        """The family that handles an output: the tool's family, or the one that has its type.

        Any tool may return content without its family's type, for example through a wrapper that
        only handles text. Recording such an output must not fail.
        """
        typed = (one for one in (family, *self) if isinstance(output.result, one.result_types))
        return next(typed, family)

    def find(self, name: str) -> Family | None:
        """The family of this name; None if it is not registered."""
        return self._by_name.get(name)

    def named(self, name: str) -> Family:
        """The family of this name.

        Raises:
            NotFoundError: no family of this name is registered.
        """
        family = self.find(name)
        if family is None:
            raise NotFoundError(f"no family is named {name!r}{proposal(name, self._by_name)}")
        return family


class ToolPolicy(Record):
    """The overrides for one tool.

    Attributes:
        family: the family that serves the tool, instead of its default family.
        stream_bytes: replaces the policy's `stream_bytes`.
        budget: numbers that replace those of the family, clamped to what the family allows.
        error: numbers that replace those of the policy's `error`, clamped too.
    """

    family: str | None = None
    stream_bytes: StreamBytes | None = None
    budget: Mapping[str, Number] = {}
    error: Mapping[str, Number] = {}


_NOTHING_OVERRIDDEN: Final = ToolPolicy()


class Policy(Record):
    """All settings that decide what is shown and what is stored as an artifact.

    Made by `default_policy`, by `policy_from_toml` from the text of a file, or by `stored_policy`
    from a stored document.

    Attributes:
        version: version of the meaning of these fields.
        stream_bytes: most bytes that a capture keeps of one stream; further bytes are counted and
            reported. None, the default, for no limit.
        compaction_chars: the budget of the compaction view; see `compact`.
        families: the budget of each family, by name.
        tools: the overrides for single tools, by tool name.
    """

    version: Literal[1] = 1
    stream_bytes: StreamBytes | None = None
    error: ErrorBudget = ErrorBudget()
    compaction_chars: Annotated[ReceiptChars, Field(strict=True)] = COMPACTION_CHARS
    families: Annotated[Mapping[str, SerializeAsAny[Budget]], Field(min_length=1)]
    tools: Mapping[str, ToolPolicy] = {}

    def stream_bytes_of(self, tool_name: str) -> int | None:
        """Most bytes that a capture keeps of one stream of a tool; None for no limit."""
        own = self._overrides(tool_name).stream_bytes
        return self.stream_bytes if own is None else own

    def error_budget_of(self, tool_name: str) -> ErrorBudget:
        """The bounds of the error payload of a tool.

        Raises:
            InvalidRecordError: the tool's numbers for errors are invalid.
        """
        numbers, place = self._overrides(tool_name).error, f"tools.{tool_name}.error."
        return self.error.overridden(numbers, place) if numbers else self.error

    def budget_of(self, family: Family, tool_name: str) -> Budget:
        """The budget for a tool that is served by a family.

        Raises:
            InvalidRecordError: the tool's numbers do not fit the family.
        """
        budget = self.families.get(family.name, family.budget)
        numbers, place = self._overrides(tool_name).budget, f"tools.{tool_name}.budget."
        return budget.overridden(numbers, place) if numbers else budget

    def family_of(self, tool_name: str, families: FamilyRegistry) -> Family:
        """The family that serves a tool: the policy's choice, else the registry's.

        Raises:
            NotFoundError: the policy names a family that is not registered.
        """
        name = self._overrides(tool_name).family
        return families.of_tool(tool_name) if name is None else families.named(name)

    def _overrides(self, tool_name: str) -> ToolPolicy:
        return self.tools.get(tool_name, _NOTHING_OVERRIDDEN)

    def for_tool(self, tool_name: str, **budget: int) -> Self:
        """A copy of the policy with other numbers for one tool; also used for a single call."""
        old = self._overrides(tool_name)
        tool = old.model_copy(update={"budget": {**old.budget, **budget}})
        return self.model_copy(update={"tools": {**self.tools, tool_name: tool}})

    def covering(self, families: FamilyRegistry) -> Self:
        """A copy of the policy with the default budgets of the families that it does not mention.

        Raises:
            InvalidRecordError: the numbers of a tool do not fit its family.
            NotFoundError: a tool is assigned to a family that is not registered.
        """
        missing = {f.name: f.budget for f in families if f.name not in self.families}
        policy = self.model_copy(update={"families": {**self.families, **missing}})
        for tool_name in policy.tools:
            policy.budget_of(policy.family_of(tool_name, families), tool_name)
            policy.error_budget_of(tool_name)
        return policy if missing else self

    def to_json(self) -> bytes:
        """The canonical JSON of all budgets."""
        return self._json

    @cached_property
    def _json(self) -> bytes:
        return canonical_json.encode(self.model_dump())

    @cached_property
    def digest(self) -> Digest:
        """The digest of `to_json()`: the policy's name in the store."""
        return digest_of(self.to_json())

    @cached_property
    def edge_bytes(self) -> int:
        """Bytes at either end of a stream that a capture keeps and a preview reads."""
        chars = [budget.preview_chars for budget in self.families.values()]
        chars += [tool.budget.get("preview_chars", 0) for tool in self.tools.values()]
        # `REACH` more characters, which decide whether a cut is allowed.
        return MAX_UTF8_BYTES * (min(max(chars), MAX_PREVIEW_CHARS) + REACH)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A policy with some fields replaced, validated; cached values are not copied."""
        del deep  # nothing in a policy changes
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **(update or {})})
