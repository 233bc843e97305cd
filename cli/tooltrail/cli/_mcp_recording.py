"""The record of the traffic between an MCP client and its server.

The traffic is JSON-RPC 2.0 with one message on each line. A call begins with the request of the
client, and ends with the response that has its id; requests of the server have ids of their own.
Everything else, such as a line that is not JSON, is not recorded.
"""

import base64
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import JsonValue

from tooltrail import records
from tooltrail.cli._output import say
from tooltrail.cli._process import held_signals
from tooltrail.cli._recording import session_of
from tooltrail.importers.parts import Parts, encoded
from tooltrail.importers.values import NOTHING
from tooltrail.journal import Entry, Invocation, Recorder, Session
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.environment import NOT_REDACTED
from tooltrail.records.canonical_json import MAX_DEPTH, encode
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import RedactionFact
from tooltrail.redaction import RuleSet
from tooltrail.wire.mcp import read_call
from tooltrail.wire.mcp.asking import read_tools
from tooltrail.wire.mcp.results import read_outcome
from tooltrail.wire.members import JsonObject, object_in, objects_in, text_in

Sender: TypeAlias = Literal["client", "server", "proxy"]
"""Who made a message. The proxy itself answers a request that cannot reach its server."""

_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
_TRANSPORT_FAILED: Final = "transport_failed"
_NO_ID: Final = "null"
_PROTOCOL_ERROR: Final = "protocol_error"
_NS_PER_MS: Final = 1_000_000
_PAUSE_S: Final = 0.02
"""Recording begins this long after a message. Meanwhile, most calls are answered: this thread would
compete with the one that passes the answer on."""

_MOST_TOGETHER: Final = 256
"""The most facts that are appended together, about."""

_MOST_REPORTS: Final = 100
"""How many reports of progress are kept for one call: the first ones."""

_CLOSE_S: Final = 30
"""How long the end of the proxy waits for a slow disk."""


_TOKEN: Final = re.compile(rb'[][{}]|"[^"\\]*(?:\\.[^"\\]*)*"|[^][{}"]+|"')
"""A bracket of JSON, a text, which may hold other brackets, or what is between these."""


class LineSplitter:
    """Splits a stream of bytes into lines, without their ends."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes, and return the lines that they complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join([*self._held, end])
            self._held.clear()
            yield line
        self._held.append(rest)


class Copied(NamedTuple):
    """Bytes of the traffic, when they passed, and which secrets were replaced in them."""

    sender: Sender
    data: bytes
    at: datetime
    clock_ns: int
    redacted: tuple[RedactionFact, ...] = ()


@dataclass
class _RunningCall:
    """A call without a response so far.

    Attributes:
        invocation: what is recorded of it.
        clock_ns: when it began, by a monotonic clock.
        token: what the server names in its reports of progress on this call; `null` for none.
        progress: these reports, the first ones.
        redacted: the secrets that were replaced in these reports.
        progress_count: the number of all these reports.
    """

    invocation: Invocation
    clock_ns: int
    token: str
    progress: list[JsonValue] = field(default_factory=list[JsonValue])
    redacted: list[RedactionFact] = field(default_factory=list[RedactionFact])
    progress_count: int = 0


class McpRecorder:
    """Records a copy of the traffic in a thread, until the end of its `with` block.

    Traffic never waits for the disk. A failure to record costs the calls that run at that time, and
    no later ones; the first one is reported on stderr.

    Args:
        spool: spool of the store.
        source: the command line or the URL of the server.
        session: id or name of the session; None for a new one.
        server_name: the name of the server, for the names of its tools.
        rules: the secrets to replace in the record; None for none.
    """

    def __init__(
        self,
        spool: Path,
        source: str,
        *,
        session: str | None,
        server_name: str | None,
        rules: RuleSet | None,
    ) -> None:
        self._source, self._named, self._rules = source, session, rules
        self._server_name = server_name and Parts(rules).clean_text("server name", server_name)
        self._environment = NOT_REDACTED if rules is None else NOTHING
        self._recorder = Recorder(
            spool, policy=records.DEFAULT_POLICY, families=records.default_families()
        )
        self._copies = SimpleQueue[Copied | None]()
        self._thread = threading.Thread(target=self._record, daemon=True)
        self._has_failed = False
        self._lines: defaultdict[Sender, LineSplitter] = defaultdict(LineSplitter)
        self._client: str | None = None
        self._opened: Session | None = None
        self._entries: list[Entry] = []
        self._running: dict[str, _RunningCall] = {}
        self._lists: dict[str, bool] = {}  # by request, whether it continues the list before
        self._tools: tuple[records.ToolDefinition, ...] = ()
        self._offered: tuple[records.ToolDefinition, ...] | None = None

    def copy(self, sender: Sender, data: bytes) -> None:
        """Record bytes of the traffic. Returns at once."""
        self._copies.put(Copied(sender, data, now(), time.monotonic_ns()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with held_signals():
            self._copies.put(None)
            self._thread.join(_CLOSE_S)

    def _record(self) -> None:
        is_idle = True
        for copied in iter(self._copies.get, None):
            if is_idle:
                time.sleep(_PAUSE_S)
            for line in self._lines[copied.sender].feed(copied.data):
                try:
                    self._add_line(line, copied)
                except Exception as error:  # noqa: BLE001  the record of other calls goes on
                    self._fail(error)
            is_idle = self._copies.empty()
            if is_idle or len(self._entries) >= _MOST_TOGETHER:
                self._flush()
        last = Copied("proxy", b"", now(), time.monotonic_ns())
        try:
            for call in self._running.values():
                self._end(call, last, _failure(call, _TRANSPORT_FAILED, "the connection ended"))
            self._flush()
            if self._opened is not None:
                self._opened.__exit__()
        except records.TooltrailError as error:
            self._fail(error)
        self._recorder.close()

    def _flush(self) -> None:
        entries, self._entries = self._entries, []
        try:
            self._recorder.append(entries)
        except records.TooltrailError as error:
            # The start of a running call may be lost. Its end would then be rejected.
            self._running.clear()
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            say(f"tooltrail: the record is not complete, the traffic goes on: {error}")

    def _session(self) -> Session:
        """The session, which is opened when there is something to record."""
        named = self._named
        if self._opened is None and named is None:
            title = Parts(self._rules).clean_text("title", self._source)
            self._opened = Session.open(
                self._recorder, title=title, agent=self._client, environment=self._environment
            )
        elif self._opened is None:
            session, name = session_of(Parts(self._rules).clean_text("session", named or ""))
            if name is not None:
                Session.open(self._recorder, name=name, environment=self._environment)
            self._opened = Session.join(self._recorder, session)  # others may go on with it
        return self._opened

    def _add_line(self, line: bytes, copied: Copied) -> None:
        original = message = message_in(line)
        parts = Parts(self._rules)
        # The complete message, without escapes that would hide a secret from the rules.
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        kept = parts.clean("request" if copied.sender == "client" else "response", encoded(text))
        if parts.redacted:
            message = message_in(kept)
        _clean_base64(message, parts)
        copied = copied._replace(redacted=parts.redacted)
        if copied.sender == "client":
            self._add_request(message, original, copied)
        elif "method" not in message:
            self._add_response(message, key_of(original, "id"), copied)
        elif message["method"] == "notifications/progress":
            token = key_of(object_in(original.get("params")), "progressToken")
            self._add_progress(message, token, parts)

    def _add_request(self, message: JsonObject, original: JsonObject, copied: Copied) -> None:
        """Record a request. The `original` has its ids as the peers send them."""
        key, method = key_of(original, "id"), message.get("method")
        params = object_in(message.get("params"))
        about = params.get("clientInfo") or object_in(params.get("_meta")).get(_CLIENT_INFO)
        self._client = text_in(object_in(about).get("name")) or self._client
        if method == "notifications/cancelled":
            cancelled = key_of(object_in(original.get("params")), "requestId")
            if (call := self._running.pop(cancelled, None)) is not None:
                words = str(params.get("reason") or "the client cancelled the call")
                self._end(call, copied, _failure(call, records.ErrorKind.CANCELLED, words))
        elif method == "tools/list":
            self._lists[key] = params.get("cursor") is not None
        elif method == "tools/call" and message.get("id") is not None:
            self._running[key] = self._start(message, original, copied)

    def _add_response(self, message: JsonObject, key: str, copied: Copied) -> None:
        continues, call = self._lists.pop(key, None), self._running.pop(key, None)
        if continues is not None and "result" in message:
            self._offer(message, continues=continues)
        if call is None:
            return
        try:
            self._end(call, copied, *_output_of(call, message, copied.sender))
        except (records.TooltrailError, ValueError) as error:
            words = f"the result cannot be recorded: {error}"
            failure = _failure(call, records.ErrorKind.OUTPUT_PERSISTENCE_FAILED, words)
            self._end(call, copied, failure)
            raise

    def _add_progress(self, message: JsonObject, token: str, parts: Parts) -> None:
        for call in self._running.values():
            if call.token == token != _NO_ID:
                call.progress_count += 1
                if call.progress_count <= _MOST_REPORTS:
                    encode({"progress": [message.get("params")]})  # else the end would be rejected
                    call.progress.append(message.get("params"))
                    call.redacted.extend(parts.redacted)

    def _start(self, message: JsonObject, original: JsonObject, copied: Copied) -> _RunningCall:
        recorder = self._recorder
        invocation = Invocation(
            recorder,
            self._session().id,
            read_call(message).model_copy(update={"namespace": self._server_name}),
            recorder.families.named("generic"),
            recorder.policy,
            invocation_id=new_id(),
            started_at=copied.at,
        )
        self._append(invocation.start_entry(recorder.owner.name()), redacted=copied.redacted)
        about = object_in(object_in(original.get("params")).get("_meta"))
        return _RunningCall(invocation, copied.clock_ns, key_of(about, "progressToken"))

    def _end(
        self,
        call: _RunningCall,
        copied: Copied,
        output: records.CompleteOutput,
        extras: Mapping[str, JsonValue] = NOTHING,
    ) -> None:
        entry, _ = call.invocation.end_entry(
            output,
            at=max(copied.at, call.invocation.started_at),
            duration_ms=(copied.clock_ns - call.clock_ns) // _NS_PER_MS,
            seen=None,
        )
        named = {
            "result": dict(extras),
            "request": call.invocation.call.extras,
            "progress": call.progress,
            "progress_count": call.progress_count,
        }
        members = {name: one for name, one in named.items() if one}
        document = [encode(members)] if members else []
        entry = entry._replace(bodies=[*entry.bodies, *document])
        digest = digest_of(document[0]) if document else None
        self._append(entry, redacted=(*call.redacted, *copied.redacted), extras=digest)

    def _append(self, entry: Entry, **members: Any) -> None:
        self._entries.append(entry._replace(fact=entry.fact.replaced(**members)))

    def _offer(self, message: JsonObject, *, continues: bool) -> None:
        """Record the tools of a list, unless they are the same as before."""
        named = {"namespace": self._server_name}
        tools = tuple(tool.model_copy(update=named) for tool in read_tools(message))
        self._tools = (*self._tools, *tools) if continues else tools
        is_last = object_in(message.get("result")).get("nextCursor") is None
        if is_last and self._tools != self._offered:
            self._session().offer_tools(self._tools)
            self._offered = self._tools


def _output_of(
    call: _RunningCall, message: JsonObject, sender: Sender
) -> tuple[records.CompleteOutput, JsonObject]:
    """The output of a call in its response, and the members that have no place in the output.

    An answer of another shape than a result, such as a request for input, is kept as one value.
    """
    error, result = message.get("error"), message.get("result")
    if error is not None:
        kind = _TRANSPORT_FAILED if sender == "proxy" else _PROTOCOL_ERROR
        return _failure(call, kind, text_in(object_in(error).get("message")) or "", error), {}
    name = call.invocation.tool_name
    outcome = read_outcome(object_in(result))
    if isinstance(outcome, records.ResultBlock):
        return records.complete_output_of_result(name, outcome), outcome.extras
    return records.CompleteOutput.success(name, records.GenericOutput.of(structured=result)), {}


def _failure(
    call: _RunningCall, kind: str, words: str, details: JsonValue = None
) -> records.CompleteOutput:
    error = records.ToolError(kind=kind, message=words, details=details)
    return records.CompleteOutput.failure(call.invocation.tool_name, error)


def _clean_base64(message: JsonObject, parts: Parts) -> None:
    """Replace the secrets in content that the record decodes, such as that of a resource."""
    for block in objects_in(object_in(message.get("result")).get("content")):
        for holder in (block, object_in(block.get("resource"))):
            for member in ("data", "blob"):
                with suppress(ValueError):  # it is not base64
                    decoded = base64.b64decode(text_in(holder.get(member)) or "", validate=True)
                    kept = parts.clean(member, decoded)
                    if kept != decoded:
                        holder[member] = base64.b64encode(kept).decode()


def message_in(line: bytes) -> JsonObject:
    """The message of a line; empty if the line is not a JSON object.

    A message that is nested too deep to be read has null in place of its innermost values. It is
    still nested too deep to be recorded, but has its id.
    """
    try:
        return object_in(json.loads(line.decode("utf-8", "surrogatepass")))
    except RecursionError:
        line = _cut_at_depth(line, 2 * MAX_DEPTH)
    except ValueError:
        return {}
    with suppress(ValueError, RecursionError):  # brackets without an end cannot be cut
        return object_in(json.loads(line.decode("utf-8", "surrogatepass")))
    return {}


def _cut_at_depth(line: bytes, levels: int) -> bytes:
    """The JSON of a line with null in place of values that are nested deeper."""
    kept, depth = list[bytes](), 0
    for found in _TOKEN.finditer(line):
        depth += found[0] in b"[{"
        if depth <= levels:
            kept.append(found[0])
        elif depth == levels + 1 and found[0] in b"[{":
            kept.append(b"null")
        depth -= found[0] in b"]}"
    return b"".join(kept)


def key_of(members: JsonObject, name: str) -> str:
    """An id as a key: the number 1 and the text "1" are two ids, 1 and 1.0 are one."""
    value = members.get(name)
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
