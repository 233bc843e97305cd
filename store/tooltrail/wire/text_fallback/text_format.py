"""The format of messages of text alone, for each family of models."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tooltrail.records import Conversation
from tooltrail.wire.exports import Export, ExportPolicy
from tooltrail.wire.formats import WireFormat, sturdy
from tooltrail.wire.text_fallback.asking import (
    read_tools,
    write_choice,
    write_structured,
    write_tools,
)
from tooltrail.wire.text_fallback.families import text_family
from tooltrail.wire.text_fallback.limits import CAPABILITIES, NAME
from tooltrail.wire.text_fallback.reading import read_history, read_response
from tooltrail.wire.text_fallback.streaming import TextAssembler
from tooltrail.wire.text_fallback.writing import is_result, write_history


def text_format(family_name: str) -> WireFormat:
    """The format that reads and writes the text of this family, whatever a policy names.

    Raises:
        NotFoundError: there is no such family.
    """

    def write(conversation: Conversation, policy: ExportPolicy) -> Export:
        return write_history(conversation, replace(policy, text_family=family_name))

    return _format(family_name, write)


def _format(family_name: str, write: Callable[[Conversation, ExportPolicy], Export]) -> WireFormat:
    family = text_family(family_name)
    return sturdy(
        WireFormat(
            name=NAME,
            capabilities=CAPABILITIES,
            read_response=partial(read_response, family),
            new_assembler=partial(TextAssembler, family),
            read_history=partial(read_history, family),
            write_history=write,
            is_result=is_result,
            write_tools=partial(write_tools, family),
            read_tools=read_tools,
            write_choice=write_choice,
            write_structured=write_structured,
        )
    )


FORMAT = _format("tool_result", write_history)
"""Writes the family that the policy names, and reads `tool_result`; see `text_format`."""
