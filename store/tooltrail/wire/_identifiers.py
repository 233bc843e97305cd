"""Ids and names that a format can carry, made of those that were recorded.

Both mappings are injective and deterministic: two different ids never become one, and the same
conversation always gives the same export. What must change gets part of a SHA-256 of the original,
never a cut alone, which would make one of two long ids that begin alike.
"""

import re
from collections.abc import Iterable
from hashlib import sha256

from tooltrail.records import ToolCall
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import ExportReport

_PREFIX = "call_"
_ID_DIGITS = 24
_NAME_DIGITS = 8
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SHOWN_CHARS = 60


class CallIds:
    """The ids of one export, given out call by call in the order of the conversation."""

    def __init__(self, capabilities: Capabilities, report: ExportReport) -> None:
        self._capabilities = capabilities
        self._report = report
        self._used: set[str] = set()

    def begin_batch(self) -> None:
        """A new batch of calls: where ids need only differ within one, they may repeat."""
        if self._capabilities.call_id_scope != "request":
            self._used.clear()

    def given(self, call_id: str, batch: int, where: str) -> str:
        """The id on the wire of a call that has one: its own, if that is legal and free."""
        wire_id = call_id if self._is_legal(call_id) else self._made(call_id, batch)
        if wire_id != call_id:
            detail = f"{call_id[:_SHOWN_CHARS]!a} is {wire_id} here"
            self._report.add("id_renamed", where, detail)
        self._used.add(wire_id)
        return wire_id

    def synthesised(self, batch: int, position: int, where: str) -> str:
        """An id for a call that has none."""
        wire_id = self._made(str(position), batch)
        self._report.add("id_synthesised", where, f"the call has no id; it is {wire_id} here")
        self._used.add(wire_id)
        return wire_id

    def _is_legal(self, call_id: str) -> bool:
        able = self._capabilities
        return (
            len(call_id) <= able.call_id_length
            and able.call_id.fullmatch(call_id) is not None
            and (able.call_id_scope == "none" or call_id not in self._used)
        )

    def _made(self, call_id: str, batch: int) -> str:
        attempt = 0
        while True:
            seed = f"{batch}\0{attempt}\0{call_id}".encode("utf-8", "surrogatepass")
            wire_id = self._spelled(sha256(seed).hexdigest())
            if wire_id not in self._used:
                return wire_id
            attempt += 1

    def _spelled(self, digits: str) -> str:
        able = self._capabilities
        wire_id = (_PREFIX + digits[:_ID_DIGITS])[: able.call_id_length]
        # A format may take no underscore, and ids of one length alone (Mistral: nine characters).
        return wire_id if able.call_id.fullmatch(wire_id) else digits[: able.call_id_length]


class ToolNames:
    """The names of one export's tools; the same one for definitions, choice, calls and results.

    A legal name stays what it is. What becomes of any other follows from the name alone, so that
    exports of the tools and of the history agree. If a legal name of the export is the same by
    chance, it gets other digits.
    """

    def __init__(self, capabilities: Capabilities, report: ExportReport) -> None:
        self._capabilities = capabilities
        self._report = report
        self._owners: dict[str, str] = {}
        self.renamed: dict[str, str] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Keep the legal ones of these names free of any that is made."""
        for name in map(_held, names):
            if self._is_legal(name):
                self._owners[name] = name

    def of(self, name: str, where: str) -> str:
        """The name on the wire."""
        if name in self.renamed:
            return self.renamed[name]
        wire_name = self._fit(_held(name))
        if wire_name != name:
            self.renamed[name] = wire_name
            detail = f"{name[:_SHOWN_CHARS]!a} is {wire_name} here"
            self._report.add("name_renamed", where, detail)
        return wire_name

    def _fit(self, name: str) -> str:
        if self._is_legal(name) and self._owners.setdefault(name, name) == name:
            return name
        attempt = 0
        while self._owners.setdefault(wire_name := self._made(name, attempt), name) != name:
            attempt += 1
        return wire_name

    def _is_legal(self, name: str) -> bool:
        able = self._capabilities
        return len(name) <= able.tool_name_length and able.tool_name.fullmatch(name) is not None

    def _made(self, name: str, attempt: int) -> str:
        seed = name if attempt == 0 else f"{attempt}\0{name}"
        digest = sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_DIGITS]
        stem = _ILLEGAL.sub("_", name)
        if not stem or not (stem[0].isalpha() or stem[0] == "_"):
            stem = f"_{stem}"
        return f"{stem[: self._capabilities.tool_name_length - _NAME_DIGITS - 1]}_{digest}"


def _held(name: str) -> str:
    """The name as calls have it, which is what a record can hold; a definition has any."""
    return ToolCall(tool_name=name).tool_name
