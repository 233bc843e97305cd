"""What a request asks for besides its messages: a choice of tools."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call a tool.

    Attributes:
        mode: `auto`, `none`, `required` for any tool, or `tool` for those that are named.
        names: the tools that it may choose from; in mode `tool` one in most cases, in mode `auto`
            none where any may be called. A tool of a server is `server___tool`; a plain name that
            reads so is `___server___tool` where such a server has tools on offer.
        parallel: whether it may call several at once; None to leave that to the provider.
    """

    mode: Literal["auto", "none", "required", "tool"]
    names: tuple[str, ...] = ()
    parallel: bool | None = None
