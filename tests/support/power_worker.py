"""A process that records and ingests while its power is to fail.

    python -m tests.support.power_worker DB ARTIFACTS SPOOL

It says on standard output what is acknowledged, a line each:

ended N ID      the call of that number, and everything that it printed
message N ID    the message of that number
ingested        everything before is in the database
"""

import sys
from pathlib import Path
from random import Random

from tests.support.recording import command_output

from tooltrail.journal import segments
from tooltrail.records import Message, ToolCall
from tooltrail.store import Session, open_store

LINES = (1, 40, 1_700, 150)
"""Lines of 61 bytes that a call prints, by its number; the third kind becomes an artifact."""

_SEAL_BYTES = 60_000
"""Segments are deleted while records are made, and not only at the end."""


def printed(number: int) -> bytes:
    """What the call of a number prints: lines that cannot be compressed to nothing."""
    chance = Random(number)
    lines = [f"{number}", *(chance.randbytes(30).hex() for _ in range(LINES[number % len(LINES)]))]
    return ("\n".join(lines) + "\n").encode()


def main(database: str, artifacts: str, spool: str) -> None:
    """Record in four rounds, and ingest after each."""
    segments.SEAL_BYTES = _SEAL_BYTES  # type: ignore[misc]  # a constant of the format, smaller here
    with open_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        for turn in range(4):
            session = store.open_session(title=f"turn {turn}")
            for number in range(turn * 8, turn * 8 + 8):
                record(session, number)
            store.ingest()
            say("ingested")


def record(session: Session, number: int) -> None:
    """One message and one call."""
    message = session.message(Message.of("user", f"message {number}"))
    say("message", number, message)
    call = ToolCall.of("Bash", {"command": f"print {number}"}, call_id=str(number))
    invocation = session.start(call)
    invocation.finish(command_output(invocation, printed(number)))
    say("ended", number, invocation.id)


def say(*words: object) -> None:
    """Say what is acknowledged, at once."""
    print(*words, flush=True)  # noqa: T201  for the test that traces this process


if __name__ == "__main__":
    main(*sys.argv[1:])
