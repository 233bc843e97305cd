"""How a call ended, and how an invocation stands; without models, for lists need none."""

from typing import Literal

Status = Literal["success", "error"]
InvocationState = Literal["started", "success", "error", "interrupted", "denied", "cancelled"]
