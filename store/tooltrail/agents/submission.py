"""`submit_result`: the tool by which an agent gives back its result, and who judges that.

Beside that tool all others have names that every format takes: `fs:read` is `fs_read` to a model.
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
"""Formats whose provider holds a model to a schema in its strict form."""

_ODD = re.compile(r"[^A-Za-z0-9_-]")

_DESCRIPTION = (
    "Submit final results. You MUST call this tool! A result that does not fit the schema is "
    "answered with what is wrong with it; correct that, and submit the whole again."
)

INSTRUCTIONS = f"# \u26a0\ufe0f CRITICAL: You MUST call {SUBMIT_RESULT}() to return findings!"
"""What the system prompt of an agent with a schema ends with."""

REMINDER = (
    f"There is no result yet: you stopped without a call of `{SUBMIT_RESULT}`. Call it now with "
    "your result; text is not taken for one."
)
"""The message to a model that stopped without a result."""


def submission_tool(config: AgentConfig, format_name: str) -> ToolDefinition | None:
    """The tool as a model of this wire format is offered it; None for an agent of free text.

    Its parameters are the schema of the result. They are in the strict form if the configuration
    asks for that, the provider enforces it, and the schema can be said in it.
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
    """What a model of this format is asked to fit in place of the schema; None for the schema."""
    is_wanted = output.strict and format_name in STRICT_FORMATS
    return output.schema_checker.strict_form if is_wanted else None


@dataclass(slots=True)
class Judge:
    """Holds each submission of one leg against the schema.

    Attributes:
        format_name: of the wire format that the model is asked in.
        attempt_count: submissions so far, also those that could not be read.
    """

    agent: str
    output: Output
    format_name: str
    attempt_count: int = 0

    def judge(self, submitted: dict[str, JsonValue]) -> StructuredOutput:
        """The verdict on what was submitted, which is the attempt that was counted last."""
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
        """What was submitted as the schema has it, whatever form it was asked for in."""
        strict = _strict_form(self.output, self.format_name)
        return submitted if strict is None else strict.restore(submitted)


def offered_names(names: Iterable[str], format_name: str) -> Mapping[str, str]:
    """The names by which tools are offered to a model, by their own names; all differ.

    Odd characters become underscores. Where that would make two names one, or is no name yet, the
    name is left to the wire format, which gives each one of its own.

    Args:
        names: of tools, as configurations have them; none stands twice.
        format_name: of the wire format.
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
