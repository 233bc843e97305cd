"""The numbers that say how a command ended."""

from typing import Annotated

from pydantic import Field

MAX_MS = (1 << 64) - 1
"""The longest time that a counter of any system can tell, in milliseconds."""

Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
ExitStatus = Annotated[int, Field(ge=0, le=255)]
SignalNumber = Annotated[int, Field(ge=1, le=128)]
