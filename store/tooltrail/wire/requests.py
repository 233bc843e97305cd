"""The choice of tools that a request makes."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call a tool.

    Attributes:
        mode: `auto`, `none`, `required` (a call of any tool), or `tool` (a call of a named tool).
        names: the tools that the model may choose from: mostly one in mode `tool`; empty in mode
            `auto` to allow any. A tool of a server is `server___tool`. A plain name of this form
            is written `___server___tool` if that server offers tools.
        parallel: whether the model may call several tools at once; None: the provider decides.
    """

    mode: Literal["auto", "none", "required", "tool"]
    names: tuple[str, ...] = ()
    parallel: bool | None = None
