"""The limits of a wire format, as values that exporters and their documentation share."""

import re
from dataclasses import dataclass
from typing import Literal

COMMON_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Tool names that every format accepts."""

ANY_TEXT = re.compile(r"[^\x00\ud800-\udfff]+")
"""Any non-empty text without unsendable characters (see `_clean_text`): replacing those could make
two different ids equal."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The limits of one format.

    Attributes:
        needs_call_ids: whether only an id pairs a call with its result.
        call_id: the pattern that a complete id must match.
        call_id_length: the maximum length of an id in characters.
        call_id_scope: the scope within which ids are unique: a request, one batch, or none.
        tool_name: the pattern that a complete tool name must match.
        tool_name_length: the maximum length of a name in characters.
        server_field: where a call names the server of its tool: `any` in a field of every call,
            `own` in a field only of calls sent back to their provider, `none` in the tool name.
        names_servers: whether readers split every tool name, even without a list of servers.
        arguments_are_text: whether arguments are sent as the text that the model wrote.
        takes_orphans: whether a result without its call can be sent.
        has_error_flag: whether a result has a flag for a failed call.
        result_media: the media types that a result can contain besides text.
        marks_empty_output: whether an empty result is written as a marker, since servers or
            templates require a text.
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
