"""What an agent is: its name, its instructions, what it may use, and what it must give back.

A configuration is data; `load_agent` reads one from a file. Its canonical JSON names the version of
the agent in the record.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from tooltrail.agents.schemas import OutputSchema
from tooltrail.records import AgentVersion, canonical_json
from tooltrail.records.authoring import Record

FormatName = Literal["openai", "openai-responses", "anthropic", "gemini", "ollama"]
"""The wire formats that models are asked in."""

Positive = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _first_repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


Named = Annotated[str, AfterValidator(_not_blank)]


class _Section(Record):
    """Part of a configuration: names are in camel case in the file, as in the rest of it."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Tier(_Section):
    """One rung of the ladder: a model, and how it is reached.

    Attributes:
        name: what people call it.
        model: the name that its server knows.
        format: the wire format that its server speaks; None where whoever runs the agent says so.
        base_url: of its server; None for the same, or for the provider's own.
        api_key_env: the variable of the environment that has the key; None for the provider's usual
            one. The key itself has no place in a configuration.
    """

    name: Named
    model: Named
    format: FormatName | None = None
    base_url: Named | None = None
    api_key_env: Named | None = None


class Limits(_Section):
    """Bounds of one leg, which is one conversation with the model of one tier.

    Attributes:
        max_steps: answers of the model.
        max_time_ms: from the beginning, in milliseconds.
        max_tokens: of input and output together, as the model's server counts them; None for any.
        max_attempts: submissions of a result, valid or not.
        max_reminders: how often the model is reminded that a result is missing when it stops.
        max_answer_tokens: of one answer.
        tool_timeout_ms: for one call of a tool, in milliseconds.
        model_retries: how often a question is put again that came to nothing, in all.
    """

    max_steps: Positive = 50
    max_time_ms: Positive = 30 * 60 * 1000
    max_tokens: Positive | None = None
    max_attempts: Positive = 5
    max_reminders: Annotated[int, Field(ge=0, le=1000)] = 1
    max_answer_tokens: Positive = 8192
    tool_timeout_ms: Positive = 5 * 60 * 1000
    model_retries: Annotated[int, Field(ge=0, le=1000)] = 2


class StaticContext(_Section):
    """What the model reads in every run."""

    system: str = ""


class Context(_Section):
    """What the model reads before the task."""

    static: StaticContext = StaticContext()


class Output(_Section):
    """What the agent must give back.

    Attributes:
        json_schema: `schema` in the file: JSON Schema (draft 2020-12) of its result, of an object.
        strict: whether a provider that can enforce the schema is asked to.
    """

    json_schema: dict[str, JsonValue] = Field(alias="schema")
    strict: bool = False

    @field_validator("json_schema")
    @classmethod
    def _is_enforced(cls, document: dict[str, JsonValue]) -> dict[str, JsonValue]:
        OutputSchema.of(document)
        return document

    @cached_property
    def schema_checker(self) -> OutputSchema:
        """The schema, ready to check values."""
        return OutputSchema.of(self.json_schema)


class AgentConfig(_Section):
    """One agent.

    Attributes:
        format_version: `schema` in the file: the version of this format.
        id: the same for all versions of the agent.
        name: what people call it.
        version: what its author calls this version of it.
        description: for people.
        model: of an agent with a single tier, which is named `default`.
        tiers: the ladder, the first one first; what ends without a result goes on with the next.
        context: what the model reads before the task.
        tools: the names of the tools that it may call.
        limits: of each leg.
        output: what it must give back; None for free text.
    """

    format_version: Literal["kb.agent/1"] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    name: Named
    version: Named | None = None
    description: str | None = None
    model: Named | None = None
    tiers: tuple[Tier, ...] = ()
    context: Context = Context()
    tools: tuple[Named, ...] = ()
    limits: Limits = Limits()
    output: Output | None = None

    @model_validator(mode="after")
    def _one_ladder(self) -> Self:
        if self.model is not None and self.tiers:
            raise ValueError("an agent has `model` or `tiers`, and not both")
        return self

    @field_validator("tiers")
    @classmethod
    def _names_differ(cls, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
        if (name := _first_repeated(tier.name for tier in tiers)) is not None:
            raise ValueError(f"two tiers have the name `{name}`")
        return tiers

    @field_validator("tools")
    @classmethod
    def _tools_differ(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        if (name := _first_repeated(tools)) is not None:
            raise ValueError(f"the tool `{name}` is named twice")
        return tools

    @property
    def ladder(self) -> tuple[Tier, ...]:
        """All tiers in order; none where whoever runs the agent is to name a model."""
        if self.model is not None:
            return (Tier(name="default", model=self.model),)
        return self.tiers

    def to_document(self) -> dict[str, Any]:
        """As a file would have it, what has its default included: it may be another one later."""
        return self.model_dump(by_alias=True, mode="json")

    @property
    def version_record(self) -> AgentVersion:
        """What is recorded of this version; every change of the configuration makes another."""
        document = canonical_json.encode_text(canonical_json.with_lists(self.to_document()))
        return AgentVersion(agent_id=self.id, version=self.version, document=document)
