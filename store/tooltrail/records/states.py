"""The final status of a call and the state of an invocation; imports no models, for fast lists."""

from typing import Literal

Status = Literal["success", "error"]
InvocationState = Literal["started", "success", "error", "interrupted", "denied", "cancelled"]
