"""Runs a child process the way a shell would, with a copy of its output going to a recorder.

Standard library only; knows nothing of the store. Works on Linux and macOS. `run_child` is the
whole interface: it starts a command in a process group of its own, passes its two streams on
untouched and at once, forwards signals, lends it the terminal, keeps a time limit, and says how it
ended.
"""

from tooltrail.cli._process.outcome import (
    ChildExit,
    ChunkHandler,
    SpawnFailure,
    SpawnFailureKind,
    StreamName,
)
from tooltrail.cli._process.relay import held_signals
from tooltrail.cli._process.run import is_on_terminal, run_child

__all__ = [
    "ChildExit",
    "ChunkHandler",
    "SpawnFailure",
    "SpawnFailureKind",
    "StreamName",
    "held_signals",
    "is_on_terminal",
    "run_child",
]
