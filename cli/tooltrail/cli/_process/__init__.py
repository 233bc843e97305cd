"""Runs a child process like a shell, and passes a copy of its output to a recorder.

Uses only the standard library and does not know the store. Works on Linux and macOS. The interface
is `run_child`: it starts a command in its own process group, passes both streams on unchanged and
at once, forwards signals, lends the child the terminal, enforces a time limit, and returns how the
child ended.
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
