"""Passes the traffic of `tooltrail mcp-proxy` on between a client and a server on stdio."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tooltrail.cli._mcp_recording import McpRecorder
from tooltrail.cli._output import say
from tooltrail.cli._process import SpawnFailure, run_child

BLOCK: Final = 1 << 16


def run_stdio(argv: Sequence[str], recorder: McpRecorder) -> int:
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
    recorder.copy("server", b"\n")
    return ended.mirrored


def _pass_input_on(recorder: McpRecorder) -> None:
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
        recorder.copy("client", b"\n")  # the last message may have no newline
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
