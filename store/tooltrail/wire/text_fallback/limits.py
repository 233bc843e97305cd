"""What text can carry: any id and any name, and no flag but in words."""

from tooltrail.wire.capabilities import ANY_TEXT, Capabilities

NAME = "text-fallback"

_ANY_LENGTH = 1_000_000

CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id=ANY_TEXT,
    call_id_length=_ANY_LENGTH,
    call_id_scope="batch",
    tool_name=ANY_TEXT,
    tool_name_length=_ANY_LENGTH,
    forces_choice=False,
)
