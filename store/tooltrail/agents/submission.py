"""`submit_result`: the tool by which an agent returns its result, and the check of a submission.

The other tools get names that every format allows: a model sees `fs:read` as `fs_read`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.agents.configuration import AgentConfig, Output
from tooltrail.agents.schemas import StrictForm
from tooltrail.records import StructuredOutput, ToolDefinition
from tooltrail.wire import wire_format
from tooltrail.wire.capabilities import COMMON_NAME

SUBMIT_RESULT = "submit_result"
"""The name of the tool, in every format."""

STRICT_FORMATS = frozenset({"openai", "openai-responses"})
"""Formats whose provider can enforce a schema in its strict form."""

_ODD = re.compile(r"[^A-Za-z0-9_-]")

_DESCRIPTION = (
    "Submit final results. You MUST call this tool! If a result does not fit the schema, you get "
    "the list of errors. Correct them, and submit the complete result again."
)

INSTRUCTIONS = f"# \u26a0\ufe0f CRITICAL: You MUST call {SUBMIT_RESULT}() to return findings!"
"""The end of the system prompt of an agent with a schema."""

REMINDER = (
    f"There is no result yet: you stopped without calling `{SUBMIT_RESULT}`. Call it now with your "
    "result. Text does not count as a result."
)
"""The message to a model that stopped without a result."""


def submission_tool(config: AgentConfig, format_name: str) -> ToolDefinition | None:
    """The definition of `submit_result` for a wire format; None for an agent without a schema.

    Its parameters are the schema of the result. They have the strict form if the configuration
    asks for it, the provider enforces it, and the schema has one.
    """
    if config.output is None:
        return None
    strict = _strict_form(config.output, format_name)
    return ToolDefinition(
        name=SUBMIT_RESULT,
        description=_DESCRIPTION,
        parameters=config.output.schema_checker.plain if strict is None else strict.document,
        strict=None if strict is None else True,
    )


def _strict_form(output: Output, format_name: str) -> StrictForm | None:
    """The strict form that replaces the schema for this format; None to use the schema itself."""
    is_wanted = output.strict and format_name in STRICT_FORMATS
    return output.schema_checker.strict_form if is_wanted else None


@dataclass(slots=True)
class Judge:
    """Checks each submission of one leg against the schema.

    Attributes:
        format_name: wire format of the model.
        attempt_count: submissions so far, including unreadable ones.
    """

    agent: str
    output: Output
    format_name: str
    attempt_count: int = 0

    def judge(self, submitted: dict[str, JsonValue]) -> StructuredOutput:
        """Check a submission, which is the attempt that was counted last."""
        value = self.meant(submitted)
        schema = self.output.schema_checker
        return StructuredOutput.of(
            value,
            agent=self.agent,
            schema_digest=schema.digest,
            attempt=self.attempt_count,
            errors=schema.violations(value),
        )

    def meant(self, submitted: JsonValue) -> JsonValue:
        """The submitted value as the schema has it, even if the model used the strict form."""
        strict = _strict_form(self.output, self.format_name)
        return submitted if strict is None else strict.restore(submitted)


def offered_names(names: Iterable[str], format_name: str) -> Mapping[str, str]:
    """The names that a model sees, by the names of the tools. All names differ.

    Characters that a format may refuse become underscores. If two names would be equal, or the
    name is still not valid, the wire format makes the name.

    Args:
        names: names of tools in configurations, without duplicates.
        format_name: name of the wire format.
    """
    own = list(names)
    plain = {name: _ODD.sub("_", name) for name in own}
    counts = Counter((*plain.values(), SUBMIT_RESULT))
    offered = {
        name: one if counts[one] == 1 and COMMON_NAME.fullmatch(one) else name
        for name, one in plain.items()
    }
    definitions = [ToolDefinition(name=one) for one in offered.values()]
    mapped = wire_format(format_name).write_tools(definitions).names
    return {name: mapped.get(one, one) for name, one in offered.items()}
