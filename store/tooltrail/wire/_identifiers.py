"""Turns recorded ids and tool names into ones that a format can carry.

Both mappings are injective and deterministic: two different ids never become equal, and the same
conversation always gives the same export. A changed id or name contains part of the SHA-256 of the
original. Truncation alone could make two long ids with a common beginning equal.
"""

import re
from collections.abc import Container, Iterable
from collections.abc import Set as AbstractSet
from hashlib import sha256
from itertools import count
from typing import TypeAlias, TypeVar

from tooltrail.records import (
    CallBlock,
    Message,
    MessageBlock,
    ResultBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.records.tool_calls import SERVER_SEPARATOR, name_with_server
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import ExportReport

NO_SERVERS: AbstractSet[str] = frozenset()
_SEPARATORS = re.compile(f"{SERVER_SEPARATOR}+")
_Tool: TypeAlias = tuple[str | None, str]
"""The server of a tool (None if it has no server), and the tool's name at that server."""

NamedT = TypeVar("NamedT", ToolCall, ResultBlock, ToolDefinition)

_PREFIX = "call_"
_ID_DIGITS = 24
_NAME_DIGITS = 8
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SHOWN_CHARS = 60


class CallIds:
    """The ids of one export, assigned call by call in the order of the conversation."""

    def __init__(self, capabilities: Capabilities, report: ExportReport) -> None:
        self._capabilities = capabilities
        self._report = report
        self._used: set[str] = set()

    def begin_batch(self) -> None:
        """Begin a batch of calls; ids may repeat across batches unless the scope is the request."""
        if self._capabilities.call_id_scope != "request":
            self._used.clear()

    def given(self, call_id: str, batch: int, where: str) -> str:
        """The id on the wire for a call with an id: its own id if that is legal and unused."""
        if self._is_legal(call_id):
            self._used.add(call_id)
            return call_id
        wire_id = self._made(call_id, batch)
        self._report.add("id_renamed", where, f"{call_id[:_SHOWN_CHARS]!a} is {wire_id} here")
        return wire_id

    def synthesised(self, batch: int, position: int, where: str) -> str:
        """Make an id for a call without one."""
        wire_id = self._made(str(position), batch)
        self._report.add("id_synthesised", where, f"the call has no id; it is {wire_id} here")
        return wire_id

    def _is_legal(self, call_id: str) -> bool:
        able = self._capabilities
        return (
            len(call_id) <= able.call_id_length
            and able.call_id.fullmatch(call_id) is not None
            and (able.call_id_scope == "none" or call_id not in self._used)
        )

    def _made(self, call_id: str, batch: int) -> str:
        seeds = (f"{batch}\0{attempt}\0{call_id}" for attempt in count())
        digests = (sha256(seed.encode("utf-8", "surrogatepass")).hexdigest() for seed in seeds)
        wire_id = next(one for one in map(self._spelled, digests) if one not in self._used)
        self._used.add(wire_id)
        return wire_id

    def _spelled(self, digits: str) -> str:
        able = self._capabilities
        wire_id = (_PREFIX + digits[:_ID_DIGITS])[: able.call_id_length]
        # A format may refuse underscores, or accept one length only (Mistral: nine characters).
        return wire_id if able.call_id.fullmatch(wire_id) else digits[: able.call_id_length]


class ToolNames:
    """The tool names of one export; definitions, choice, calls and results share them.

    A tool of a server is `server___tool`. A plain name of that form gets another separator in
    front. Any other legal name stays unchanged. The replacement for a name that the format refuses
    depends only on the tool, so that exports of the tools and of the history agree. If it equals
    a legal name of the export by chance, it gets other digits.

    Attributes:
        renamed: maps the name of each renamed tool to its name on the wire.
    """

    def __init__(self, capabilities: Capabilities, report: ExportReport) -> None:
        self._capabilities = capabilities
        self._report = report
        self._servers: set[str] | None = None if capabilities.names_servers else set()
        self._owners: dict[str, _Tool] = {}
        self._given: dict[_Tool, str] = {}
        self.renamed: dict[str, str] = {}

    def reserve(self, tools: Iterable[tuple[str | None, str]]) -> None:
        """Register the servers and names of all tools of the export.

        From then on their servers are known, and no made name equals one of their legal names.
        """
        held = [(server or None, _held(name)) for server, name in tools]
        if self._servers is not None:
            self._servers.update(server for server, _ in held if server)
        for tool in held:
            if (spelled := self._spelled(tool)) is not None:
                self._owners.setdefault(spelled, tool)

    def of(self, name: str, where: str, namespace: str | None = None) -> str:
        """The name on the wire."""
        tool = (namespace or None, _held(name))
        if tool not in self._given:
            self._given[tool] = wire_name = self._fit(tool)
            comes_back = self._servers is None and split_name(wire_name) == tool
            if wire_name != name and not comes_back:
                self._note(tool, name, wire_name, where)
        return self._given[tool]

    def beside_server(self, name: str, where: str) -> str:
        """The name on the wire of a tool whose server has a field; readers do not split it."""
        held = _held(name)
        return held if self._is_legal(held) else self.of(name, where)

    def _is_legal(self, name: str) -> bool:
        able = self._capabilities
        return len(name) <= able.tool_name_length and able.tool_name.fullmatch(name) is not None

    def _note(self, tool: _Tool, name: str, wire_name: str, where: str) -> None:
        server = tool[0]
        own = name_with_server(server, name)
        if own != wire_name:
            self.renamed[own] = wire_name
        of_server = "" if server is None else f" of {server[:_SHOWN_CHARS]!a}"
        detail = f"{name[:_SHOWN_CHARS]!a}{of_server} is {wire_name} here"
        self._report.add("name_renamed", where, detail)

    def _fit(self, tool: _Tool) -> str:
        spelled = self._spelled(tool)
        if spelled is not None and self._owners.setdefault(spelled, tool) == tool:
            return spelled
        attempt = 0
        while self._owners.setdefault(name := self._made(tool, attempt), tool) != tool:
            attempt += 1
        return name

    def _spelled(self, tool: _Tool) -> str | None:
        """The name that `split_name` turns back into the tool; None if there is no legal one."""
        server, name = tool
        spelled = spelled_name(server, name, self._servers)
        if server is not None and split_name(spelled, {server}) != tool:
            return None
        return spelled if self._is_legal(spelled) else None

    def _made(self, tool: _Tool, attempt: int) -> str:
        server, name = tool
        seed = name if server is None else f"{server}\0{name}"
        if attempt:
            seed = f"{attempt}\0{seed}"
        digest = sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_DIGITS]
        stem = _ILLEGAL.sub("_", name if server is None else f"{server}__{name}")
        if not stem or not (stem[0].isalpha() or stem[0] == "_"):
            stem = f"_{stem}"
        made = f"{stem[: self._capabilities.tool_name_length - _NAME_DIGITS - 1]}_{digest}"
        if not self._is_legal(made):  # Cohere refuses hyphens.
            made = made.replace("-", "_")
        # Readers must not split a made name.
        return _SEPARATORS.sub("__", made)


def spelled_name(
    namespace: str | None, tool_name: str, servers: Container[str] | None = None
) -> str:
    """The name on the wire of a tool, with its server if it has one.

    `servers` are those that the reader knows; None if it accepts any name as a server.
    """
    if namespace:
        return name_with_server(namespace, tool_name)
    if _reads_as_both(tool_name, servers):
        return f"{SERVER_SEPARATOR}{tool_name}"
    return tool_name


def split_name(name: str, servers: Container[str] | None = None) -> tuple[str | None, str]:
    """Split a name on the wire into server and tool; reverses `spelled_name`.

    The name is split at the first separator if a known server precedes it. A server whose name
    contains the separator or ends with an underscore cannot be split; its tools get made names.
    """
    server, separator, tool_name = name.partition(SERVER_SEPARATOR)
    if not (separator and tool_name):
        return None, name
    if server:
        return (server, tool_name) if _is_known(server, servers) else (None, name)
    return None, tool_name if _reads_as_both(tool_name, servers) else name


def split_servers(message: Message, servers: AbstractSet[str]) -> Message:
    """The message, with the names of these servers' tools split; see `split_name`."""
    if not servers:
        return message
    return message.model_copy(
        update={"blocks": tuple(_split_block(block, servers) for block in message.blocks)}
    )


def split_tools(
    tools: Iterable[ToolDefinition], servers: AbstractSet[str]
) -> tuple[ToolDefinition, ...]:
    """Like `split_servers`, for tool definitions."""
    return tuple(_split(tool, "name", servers) for tool in tools)


def _split_block(block: MessageBlock, servers: AbstractSet[str]) -> MessageBlock:
    if isinstance(block, CallBlock):
        return block.model_copy(update={"call": _split(block.call, "tool_name", servers)})
    return _split(block, "tool_name", servers) if isinstance(block, ResultBlock) else block


def _split(one: NamedT, member: str, servers: AbstractSet[str]) -> NamedT:
    """Move the server out of the tool name into the namespace, unless that is set already."""
    whole: str | None = getattr(one, member)
    if not whole or one.namespace is not None:
        return one
    server, name = split_name(whole, servers)
    return one if name == whole else one.model_copy(update={"namespace": server, member: name})


def _reads_as_both(name: str, servers: Container[str] | None) -> bool:
    """Whether a plain name looks like `server___tool`, with or without separators in front."""
    while name.startswith(SERVER_SEPARATOR):
        name = name.removeprefix(SERVER_SEPARATOR)
    server, separator, tool_name = name.partition(SERVER_SEPARATOR)
    return bool(separator and tool_name) and _is_known(server, servers)


def _is_known(server: str, servers: Container[str] | None) -> bool:
    return servers is None or server in servers


def _held(name: str) -> str:
    """The name as a call records it; a definition accepts any name, a call does not."""
    return ToolCall(tool_name=name).tool_name
