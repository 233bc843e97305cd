"""The format of messages of text alone, for each family of models."""

from dataclasses import replace
from functools import partial

from tooltrail.records import Conversation
from tooltrail.wire._writing import Writing
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.members import JsonObject
from tooltrail.wire.text_fallback import asking
from tooltrail.wire.text_fallback.families import text_family
from tooltrail.wire.text_fallback.limits import CAPABILITIES, NAME
from tooltrail.wire.text_fallback.reading import TextAssembler, read_history, read_response
from tooltrail.wire.text_fallback.writing import is_result, write_history


def text_format(family_name: str) -> WireFormat:
    """The format that reads and writes the text of this family, whatever a policy names.

    Raises:
        NotFoundError: there is no such family.
    """
    family = text_family(family_name)
    return WireFormat(
        name=NAME,
        capabilities=CAPABILITIES,
        response_reader=partial(read_response, family),
        new_assembler=partial(TextAssembler, family),
        history_reader=partial(read_history, family),
        history_writer=partial(_write_as, family_name),
        is_result=is_result,
        tools_writer=partial(asking.write_tools, family),
        tools_reader=asking.read_tools,
        choice_writer=None,
    )


def _write_as(family_name: str, writing: Writing, conversation: Conversation) -> JsonObject:
    writing.policy = replace(writing.policy, text_family=family_name)
    return write_history(writing, conversation)


FORMAT = replace(text_format("tool_result"), history_writer=write_history)
"""Writes the family that the policy names, and reads `tool_result`; see `text_format`."""
