"""The configuration of an agent: name, model, instructions, tools, limits and result schema.

`load_agent` reads a configuration from a file. The digest of its canonical JSON names the version
of the agent in the record.
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

from tooltrail.agents._endpoints import checked_url
from tooltrail.agents.schemas import OutputSchema
from tooltrail.records import AgentVersion, canonical_json
from tooltrail.records.authoring import Record

FormatName = Literal["openai", "openai-responses", "anthropic", "gemini", "ollama"]
"""The wire formats of models over HTTP."""

Positive = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _http_url(url: str) -> str:
    checked_url(url)
    return url


def _first_repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


Named = Annotated[str, AfterValidator(_not_blank)]


class _Section(Record):
    """A part of a configuration. Names are in camel case in the file."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Tier(_Section):
    """A model and its server. An agent tries its tiers in order until one has a result.

    Attributes:
        name: name for people.
        model: name of the model at its server.
        format: wire format of the server; None if the caller of the agent names it.
        base_url: URL of the server, without a password; None if the caller names the server, or for
            the provider's server.
        api_key_env: environment variable with the key; None for the provider's usual variable. A
            configuration never has the key itself.
    """

    name: Named
    model: Named
    format: FormatName | None = None
    base_url: Annotated[Named, AfterValidator(_http_url)] | None = None
    api_key_env: Named | None = None


class Limits(_Section):
    """Limits of one leg, which is one conversation with the model of one tier.

    Attributes:
        max_steps: answers of the model.
        max_time_ms: duration of the leg in milliseconds.
        max_tokens: input and output tokens in all, as the model's server counts them; None for no
            limit.
        max_attempts: submissions of a result, valid or not.
        max_reminders: reminders to a model that stopped without a result.
        max_answer_tokens: tokens of one answer.
        tool_timeout_ms: duration of one tool call in milliseconds.
        model_retries: retries of failed questions in all.
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
    """Context that is the same in every run."""

    system: str = ""


class Context(_Section):
    """Context before the task."""

    static: StaticContext = StaticContext()


class Output(_Section):
    """The result of the agent.

    Attributes:
        json_schema: `schema` in the file: JSON Schema (draft 2020-12) of the result, an object.
        strict: whether to ask a provider to enforce the schema, if it can.
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
        """The compiled schema."""
        return OutputSchema.of(self.json_schema)


class AgentConfig(_Section):
    """An agent.

    Attributes:
        format_version: `schema` in the file: the version of this format.
        id: id of the agent in all its versions.
        name: name for people.
        version: name of this version, given by its author.
        description: text for people.
        model: model of an agent with a single tier, which is named `default`.
        tiers: models in the order in which they are tried.
        context: instructions before the task.
        tools: names of the tools that the agent may call.
        limits: limits of each leg.
        output: schema of the result; None for free text.
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
            raise ValueError("an agent has `model` or `tiers`, not both")
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
        """All tiers in order; empty if the caller of the agent must name a model."""
        if self.model is not None:
            return (Tier(name="default", model=self.model),)
        return self.tiers

    def to_document(self) -> dict[str, Any]:
        """The content of a file with all defaults, because defaults may change later."""
        return self.model_dump(by_alias=True, mode="json")

    @property
    def version_record(self) -> AgentVersion:
        """The record of this version. Every change of the configuration is a new version."""
        document = canonical_json.encode_text(canonical_json.with_lists(self.to_document()))
        return AgentVersion(agent_id=self.id, version=self.version, document=document)
