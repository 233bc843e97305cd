"""What is in the way of enforcing a schema, and where."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Something in a schema that is not enforced, or is no schema.

    Attributes:
        pointer: JSON pointer (RFC 6901) to it in the schema; empty for the schema itself.
        message: what is wrong, in one sentence.
    """

    pointer: str
    message: str


class UnsupportedSchemaError(ValueError):
    """A schema that cannot be enforced as a whole.

    Attributes:
        faults: everything that is in the way.
    """

    def __init__(self, faults: Iterable[SchemaFault]) -> None:
        self.faults = tuple(faults)
        lines = (f"{fault.pointer or '(root)'}: {fault.message}" for fault in self.faults)
        super().__init__("; ".join(lines))


def below(pointer: str, *parts: str | int) -> str:
    """The pointer to a place below another one."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join((pointer, *(f"/{part}" for part in escaped)))
