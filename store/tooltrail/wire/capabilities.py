"""What a wire format can carry, as values that exporters and their documentation share."""

import re
from dataclasses import dataclass
from typing import Literal

COMMON_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Names of tools that every format takes."""

ANY_TEXT = re.compile(r"[^\x00\ud800-\udfff]+")
"""Any text that can be sent (see `_clean_text`), but the empty one: two ids whose unsendable
characters are replaced by the same mark would become one."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The limits of one format.

    Attributes:
        needs_call_ids: whether a call and its result are paired by an id alone.
        call_id: what an id must be, as a whole.
        call_id_length: characters of an id at most.
        call_id_scope: within what an id may stand once: a whole request, one batch, or nothing.
        tool_name: what the name of a tool must be, as a whole.
        tool_name_length: characters of a name at most.
        server_field: whether a call has a field for the server of its tool: `any` has one, `own`
            has one in what goes back to the provider that said it, `none` has it in the name.
        names_servers: whether readers split every name, whatever servers they know.
        arguments_are_text: whether arguments travel as the text that the model wrote.
        takes_orphans: whether a result can stand without its call.
        has_error_flag: whether a result can say that the call failed.
        result_media: media types that a result can hold beside text.
        marks_empty_output: whether a marker stands for an empty result, since servers or templates
            want a text.
    """

    needs_call_ids: bool = True
    call_id: re.Pattern[str] = ANY_TEXT
    call_id_length: int = 64
    call_id_scope: Literal["request", "batch", "none"] = "request"
    tool_name: re.Pattern[str] = COMMON_NAME
    tool_name_length: int = 64
    server_field: Literal["none", "own", "any"] = "none"
    names_servers: bool = False
    arguments_are_text: bool = True
    takes_orphans: bool = False
    has_error_flag: bool = False
    result_media: frozenset[str] = frozenset()
    marks_empty_output: bool = True
