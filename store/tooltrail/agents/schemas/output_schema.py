"""A JSON Schema of which every keyword is enforced."""

from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from tooltrail.records import Digest, SchemaViolation, canonical_json, digest_of


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

    def __init__(self, faults: tuple[SchemaFault, ...]) -> None:
        super().__init__(
            "; ".join(f"{fault.pointer or '(root)'}: {fault.message}" for fault in faults)
        )
        self.faults = faults


class OutputSchema:
    """A schema that was looked at as a whole. Safe to share between threads.

    Attributes:
        document: the schema.
        digest: of its canonical JSON.
    """

    def __init__(self, document: dict[str, JsonValue]) -> None:
        self.document = document
        self.digest: Digest = digest_of(canonical_json.encode(document))

    @classmethod
    def of(cls, document: dict[str, JsonValue]) -> Self:
        """The schema, if all of it is enforced.

        Raises:
            UnsupportedSchemaError: it is no schema, or has a keyword that is not enforced.
        """
        return cls(document)

    def violations(self, value: JsonValue) -> tuple[SchemaViolation, ...]:
        """Every way in which a value breaks the schema; none for one that fits."""
        raise NotImplementedError
