"""A process that records and ingests, for tests of power cuts.

    python -m tests.support.power_worker DB ARTIFACTS SPOOL

It prints one line for each acknowledgement:

ended N ID      call number N, with its complete output
message N ID    message number N
ingested        all facts before this line are in the database
"""

import sys
from pathlib import Path
from random import Random

from tests.support.recording import command_output

from tooltrail.journal import segments
from tooltrail.records import Message, ToolCall
from tooltrail.store import Session, open_store

LINES = (1, 40, 1_700, 150)
"""Lines of 61 bytes that a call prints, by its number; the third size becomes an artifact."""

_SEAL_BYTES = 60_000
"""Small, so that segments are deleted during recording and not only at the end."""


def printed(number: int) -> bytes:
    """The output of a call by number: lines that do not compress well."""
    chance = Random(number)
    lines = [f"{number}", *(chance.randbytes(30).hex() for _ in range(LINES[number % len(LINES)]))]
    return ("\n".join(lines) + "\n").encode()


def main(database: str, artifacts: str, spool: str) -> None:
    """Record in four rounds, and ingest after each round."""
    segments.SEAL_BYTES = _SEAL_BYTES  # type: ignore[misc]  # a constant of the format, smaller here
    with open_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        for turn in range(4):
            session = store.open_session(title=f"turn {turn}")
            for number in range(turn * 8, turn * 8 + 8):
                record(session, number)
            store.ingest()
            say("ingested")


def record(session: Session, number: int) -> None:
    """Record one message and one call."""
    message = session.message(Message.of("user", f"message {number}"))
    say("message", number, message)
    call = ToolCall.of("Bash", {"command": f"print {number}"}, call_id=str(number))
    invocation = session.start(call)
    invocation.finish(command_output(invocation, printed(number)))
    say("ended", number, invocation.id)


def say(*words: object) -> None:
    """Print an acknowledgement without buffering."""
    print(*words, flush=True)  # noqa: T201  for the test that traces this process


if __name__ == "__main__":
    main(*sys.argv[1:])
