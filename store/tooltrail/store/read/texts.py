"""The texts of an invocation, byte for byte, checked against the facts of its ledger entries.

A column of `surfaces` holds the exact text, unless no database can store it. The exact bytes are
then a body, by the digest that the fact names. The same digest shows a text that was altered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from tooltrail.records import (
    DamageError,
    Digest,
    DigestMismatchError,
    InvalidRecordError,
    digest_of,
)
from tooltrail.records.facts import CallEnded, CallStarted, read_fact
from tooltrail.store.ingest.outcomes import whole_canonical
from tooltrail.store.read.bodies import Body


class Surfaces(NamedTuple):
    """The texts of an invocation; of one that has not ended, the arguments alone."""

    arguments: bytes
    output: bytes | None
    canonical: bytes | None
    receipt: bytes | None


@dataclass
class StoredTexts:
    """The texts of one invocation as its row of `surfaces` has them, and its two facts.

    Attributes:
        id: of the invocation.
        arguments: column of the row; None where it is erased or lost.
        output: likewise, and None until the call has ended.
        canonical: likewise, with references into the receipt.
        receipt: likewise.
        start_fact: JSON of the fact that started the call; None where its ledger entry is lost.
        end_fact: JSON of the fact that ended it.
        has_ended: whether the row of the invocation says so.
        wanted: digests of bodies that `read` missed.
    """

    id: UUID
    arguments: str | None
    output: str | None
    canonical: str | None
    receipt: str | None
    start_fact: str | None
    end_fact: str | None
    has_ended: bool
    wanted: set[Digest] = field(default_factory=set[Digest])

    def read(self, bodies: Mapping[Digest, Body]) -> Surfaces:
        """The exact texts.

        Args:
            bodies: those of `wanted`; what is missing here is added to `wanted`.

        Raises:
            DamageError: a text is lost or erased, or is not the text that was recorded.
        """
        start = self._fact(self.start_fact)
        if not isinstance(start, CallStarted):
            raise self._damage("start_entry names no start of this call")
        arguments = self._exact("arguments", self.arguments, start.arguments, bodies)
        found = Surfaces(arguments, None, None, None)
        if self.has_ended:
            found = self._ended(arguments, bodies)
        if not self.wanted <= bodies.keys():
            raise self._damage("bodies of it are not read yet")
        return found

    def _ended(self, arguments: bytes, bodies: Mapping[Digest, Body]) -> Surfaces:
        end = self._fact(self.end_fact)
        if not isinstance(end, CallEnded):
            raise self._damage("end_entry names no end of this call")
        shown = None if end.shown is None else end.shown.canonical
        seen = None if end.shown is None else end.shown.receipt
        receipt = self._exact("receipt", self.receipt, seen, bodies)
        canonical = self.canonical
        if canonical is not None:
            canonical = whole_canonical(canonical, receipt)
        return Surfaces(
            arguments,
            self._exact("output", self.output, end.output, bodies),
            self._exact("canonical", canonical, shown, bodies),
            receipt,
        )

    def _fact(self, document: str | None) -> object:
        if document is None:
            return None
        try:
            fact = read_fact(document.encode())
        except InvalidRecordError as error:
            raise self._damage(f"a ledger entry of it is no fact: {error}") from error
        is_mine = isinstance(fact, CallStarted | CallEnded) and fact.id == self.id
        return fact if is_mine else None

    def _exact(
        self, name: str, text: str | None, digest: Digest | None, bodies: Mapping[Digest, Body]
    ) -> bytes:
        """One text; without a digest, as this program rendered it, the column is all there is."""
        stored = None if text is None else text.encode()
        if stored is not None and (digest is None or digest_of(stored) == digest):
            return stored
        if digest is None:
            raise self._damage(f"{name} is erased or lost")
        if digest not in bodies:
            self.wanted.add(digest)
            return b""
        try:
            return bodies[digest].read()
        except DamageError as error:
            if stored is None:
                raise self._damage(f"{name} is erased or lost") from error
            raise DigestMismatchError(
                f"invocation {self.id} is damaged: {name} is not the text that was recorded",
                path=str(self.id),
            ) from error

    def _damage(self, problem: str) -> DamageError:
        return DamageError(f"invocation {self.id} is damaged: {problem}", path=str(self.id))


def text_from(data: bytes) -> str:
    """A text behind its bytes, whatever they are: lone surrogates and other bytes survive."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
