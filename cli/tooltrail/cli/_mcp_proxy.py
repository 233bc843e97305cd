"""The work of `tooltrail mcp-proxy`: pass the traffic on, and record a copy of it in a thread.

Traffic never waits for the disk. A failure to record is one line on stderr.
"""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Self
from urllib.parse import urlsplit

from tooltrail.cli._mcp_recording import Copied, McpRecording, Sender
from tooltrail.cli._output import say
from tooltrail.cli._process import SpawnFailure, held_signals, run_child
from tooltrail.cli._recording import session_of
from tooltrail.importers.parts import Parts
from tooltrail.journal import Recorder, Session
from tooltrail.journal.clock import now
from tooltrail.records import DEFAULT_POLICY, default_families
from tooltrail.redaction import default_rules

BLOCK: Final = 1 << 16
_PAUSE_S: Final = 0.02
"""Recording begins this long after a message. Meanwhile, most calls are answered: this thread would
compete with the one that passes the answer on."""

_CLOSE_S: Final = 30
"""How long the end of the proxy waits for a slow disk."""


class CopyRecorder:
    """Records a copy of the traffic in a thread, until the end of its `with` block.

    Args:
        spool: spool of the store.
        source: the command line or the URL of the server.
        session: id or name of the session; None for a new one.
        server_name: the name of the server, for the names of its tools.
        is_redacting: whether credentials are replaced in the record.
    """

    def __init__(
        self,
        spool: Path,
        source: str,
        *,
        session: str | None,
        server_name: str | None,
        is_redacting: bool,
    ) -> None:
        self._copies = SimpleQueue[Copied | None]()
        self._has_failed = False
        self._recorder = Recorder(spool, policy=DEFAULT_POLICY, families=default_families())
        rules = default_rules() if is_redacting else None
        title = Parts(rules).clean_text("title", source)
        self._recording = McpRecording(
            self._recorder,
            lambda client: _session_of(self._recorder, session, title, client),
            rules=rules,
            server_name=server_name,
            report=self._fail,
        )
        self._thread = threading.Thread(target=self._record, daemon=True)
        self._thread.start()

    def copy(self, sender: Sender, data: bytes) -> None:
        """Record bytes of the traffic. Returns at once."""
        self._copies.put(Copied(sender, data, now(), time.monotonic_ns()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Record everything that waits, and end the calls that still run."""
        with held_signals():
            self._copies.put(None)
            self._thread.join(_CLOSE_S)

    def _record(self) -> None:
        try:
            while self._record_some():
                pass
            self._recording.close(Copied("proxy", b"", now(), time.monotonic_ns()))
        except Exception as error:  # noqa: BLE001  the traffic must go on
            self._fail(error)
        self._recorder.close()

    def _record_some(self) -> bool:
        """Record what waits; return whether there may be more."""
        copied = self._copies.get()
        time.sleep(_PAUSE_S)
        while copied is not None:
            self._recording.feed(copied)
            if self._copies.empty():
                break
            copied = self._copies.get()
        self._recording.flush()
        return copied is not None

    def _fail(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            say(f"tooltrail: a tool call is not recorded, the traffic goes on: {error}")


def _session_of(recorder: Recorder, named: str | None, title: str, client: str | None) -> Session:
    if named is None:
        return Session.open(recorder, title=title, agent=client)
    session, name = session_of(named)
    if name is not None:
        Session.open(recorder, name=name)
    return Session.join(recorder, session)  # others may go on with a session that was named


def shown_url(url: str) -> str:
    """The URL without the parts that may hold a credential."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def run_stdio(argv: Sequence[str], recorder: CopyRecorder) -> int:
    """Run a server, pass on what it and the client say, and return an exit code that mirrors it."""
    _pass_input_on(recorder)
    try:
        ended = run_child(
            argv,
            on_chunk=lambda name, data: recorder.copy("server", data) if name == "stdout" else None,
            on_idle=lambda: None,
        )
    except SpawnFailure as failure:
        say(f"tooltrail: {failure.message}")
        return failure.exit_code
    return ended.mirrored


def _pass_input_on(recorder: CopyRecorder) -> None:
    """Let the server inherit a pipe as its standard input, and pass on what the client sends."""
    source, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)

    def pump() -> None:
        # A server that closed its input ends the traffic in this direction.
        with suppress(OSError):
            while data := os.read(source, BLOCK):
                recorder.copy("client", data)  # before its answer
                write_all(writer, data)
        os.close(writer)

    threading.Thread(target=pump, daemon=True).start()


def write_all(descriptor: int, data: bytes) -> None:
    """Write exact bytes to a descriptor.

    Raises:
        OSError: the reader has closed the pipe.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
