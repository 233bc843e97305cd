"""What the model asked for."""

from typing import Self

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, ToolName
from tooltrail.records._text_cuts import shorten

ARGUMENTS_PREVIEW_CHARS = 240
"""Characters of the arguments that a list of invocations shows."""

_PREVIEWED_CHARS = 16 * ARGUMENTS_PREVIEW_CHARS
"""Characters of the arguments that the preview is made of."""


class ToolCall(Record):
    """One request to run a tool, with the arguments exactly as the model sent them.

    Attributes:
        tool_name: the name that the model used; a blank one becomes `(unnamed)`, one beyond 256
            characters ends in an ellipsis, NUL and lone surrogates are escaped. The exact bytes of
            such a name are not kept.
        arguments_raw: the argument text as sent, also when it is not valid JSON.
        call_id: the provider's id for the call, which may repeat or be empty: data, not identity.
        title: a short human spelling of the arguments, a command line for instance.
    """

    tool_name: ToolName
    arguments_raw: str = "{}"
    call_id: str | None = None
    title: str | None = None

    @classmethod
    def of(cls, tool_name: str, arguments: JsonValue, *, call_id: str | None = None) -> Self:
        """A call whose arguments are a JSON value."""
        return cls(
            tool_name=tool_name,
            arguments_raw=canonical_json.encode_text(arguments),
            call_id=call_id,
        )

    @property
    def arguments_bytes(self) -> bytes:
        """The arguments as they are stored: UTF-8, lone surrogates included."""
        return self.arguments_raw.encode("utf-8", "surrogatepass")

    @property
    def arguments_preview(self) -> str:
        """The title, else the raw arguments, on one line and bounded."""
        # Arguments can hold a whole file; no run of white space that matters is this long.
        line = " ".join((self.title or self.arguments_raw)[:_PREVIEWED_CHARS].split())
        return shorten(storable(line), ARGUMENTS_PREVIEW_CHARS)


def storable(text: str) -> str:
    """Text that every database can carry: NUL and lone surrogates become escapes."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
