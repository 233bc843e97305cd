"""The work of `tooltrail exec`: record the start, run, record the end, mirror the status.

After the start is recorded, a failure to record does not affect the command. Only the standard
library and the journal are imported, so that short commands start fast.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tooltrail.cli._default_database import default_database
from tooltrail.cli._exec_options import (
    ARGUMENTS,
    Request,
    UsageProblem,
    read_request,
)
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import say_missing_driver
from tooltrail.cli._output import say
from tooltrail.cli._process import (
    ChildExit,
    SpawnFailure,
    held_signals,
    is_on_terminal,
    run_child,
)
from tooltrail.cli._recording import Recording, StreamCapture, used_policy
from tooltrail.cli._redaction import used_rules
from tooltrail.cli._standard import drop_unwritten, open_missing
from tooltrail.journal.frames import Cursor
from tooltrail.records.errors import InvalidRecordError, TooltrailError, UnavailableError
from tooltrail.redaction.rules import RuleSet
from tooltrail.store.engines.targets import is_there, parse_target
from tooltrail.store.roots import default_spool

_MOST_WAITING = 64
"""Number of waiting frames at which `exec` ingests."""

_HINT = "ingested"
"""File in the journal folder with the frame index at which `exec` last ingested."""


def main(arguments: Sequence[str]) -> int | None:
    """Run and record the command of a command line.

    Returns:
        The exit code, which mirrors the command; None if the help text is requested.
    """
    open_missing()
    try:
        request = read_request(arguments, os.environ)
        return None if request is None else run_recorded(request)
    except UsageProblem as problem:
        say(f"Usage: tooltrail exec [OPTIONS] {ARGUMENTS}")
        say("Try 'tooltrail exec -h' for help.\n")
        say(f"Error: {problem}")
        return ExitCode.USAGE
    except InvalidRecordError as error:
        say(f"tooltrail: {error}")
        return ExitCode.USAGE
    except TooltrailError as error:
        say(
            f"tooltrail: {error}; the command was not run: solve this problem, or name another"
            " --db or --spool"
        )
        return ExitCode.UNAVAILABLE
    finally:
        drop_unwritten()


def run_recorded(request: Request) -> int:
    """Run and record a command; return an exit code that mirrors the command.

    Raises:
        InvalidRecordError: the policy, or the name of the store or the session, is invalid.
        UnavailableError: the start cannot be recorded. The command was not run.
    """
    target = parse_target(request.db or default_database())
    spool = Path(request.spool) if request.spool else default_spool(target)
    has_database = True
    with suppress(UnavailableError):  # a database that cannot be reached hinders no record
        has_database = is_there(target)
    # If the journal cannot be reached, recording the start raises the error.
    has_journal = os.path.exists(spool / "journal")  # noqa: PTH110  never raises, unlike `Path.exists`
    if has_database and not has_journal:
        from tooltrail.store.opening import refuse_other_file  # noqa: PLC0415  once in a store's life

        refuse_other_file(target, spool)
    is_new = not (has_database or has_journal)
    rules = None if request.no_redact else used_rules()
    with Recording(request, spool, used_policy(request), rules) as recording:
        recording.start()
        say_missing_driver(target, spool)
        if is_new:
            say(f"tooltrail: recording into a new store at {target}")
        code = _run(request, recording, rules)
        if recording.end_cursor is not None:
            # A new store remembers the artifact root that is named for it.
            creates = bool(request.artifacts) and not has_database
            ingest_when_due(request, spool, recording.end_cursor, creates=creates)
    return code


def _run(request: Request, recording: Recording, rules: RuleSet | None) -> int:
    has_terminal = request.tty == "always" or (request.tty == "auto" and is_on_terminal())
    streams = StreamCapture(recording.capture, rules, has_terminal=has_terminal)
    try:
        ended = run_child(
            request.argv,
            on_chunk=streams.write,
            on_idle=streams.flush,
            cwd=request.cwd,
            timeout_s=request.timeout,
            grace_s=request.grace,
            has_terminal=has_terminal,
            inherited=recording.owner_descriptor,
        )
    except SpawnFailure as failure:
        say(f"tooltrail: {failure.message}")
        with held_signals():
            recording.fail(failure.kind, failure.message)
        return failure.exit_code
    _say_faults(ended)
    with held_signals():
        recording.end(ended, streams)
    return _code_of(ended)


def _code_of(ended: ChildExit) -> int:
    """The exit code of the command; `INCOMPLETE` instead of success if output was lost."""
    lost = ended.tee_error is not None and ended.mirrored in (ExitCode.OK, ExitCode.BROKEN_PIPE)
    return ExitCode.INCOMPLETE if lost else ended.mirrored


def _say_faults(ended: ChildExit) -> None:
    if ended.recorder_error is not None:
        say(f"tooltrail: recording stopped early: {ended.recorder_error}")
    if ended.tee_error is not None:
        say(f"tooltrail: output could not be passed on: {ended.tee_error.strerror}")


def ingest_when_due(request: Request, spool: Path, end: Cursor, *, creates: bool) -> None:
    """Ingest the journal into the database if many facts wait, or to create the store.

    Runs after the command has ended and its output is passed on. A failure is reported only if the
    store should have been created: the next reader may name no artifact root. Other failures are
    left to the next reader, since the facts are durable in the journal.
    """
    hint = spool / "journal" / _HINT
    try:
        before = int(hint.read_bytes())
    except (OSError, ValueError):
        before = 0
    if end.index - before <= _MOST_WAITING and not creates:
        return
    sys.stdout.flush()
    try:
        # Write the hint first, so that after a failure the next attempt comes 64 frames later.
        hint.touch(mode=0o600)
        hint.write_bytes(b"%d" % end.index)
        from tooltrail.store.opening import open_store  # noqa: PLC0415  slow, and rarely needed

        with open_store(
            request.db or default_database(), artifacts=request.artifacts, spool=spool
        ) as store:
            store.ingest()
    except Exception as error:  # noqa: BLE001  no error may change the exit code
        if creates:
            say(f"tooltrail: no store was created: {error}; create one with `tooltrail init`")
