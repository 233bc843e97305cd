"""A call that was recorded when it had ended is read as any other."""

from datetime import UTC, datetime, timedelta

from tests.support.cli import Cli
from tests.support.ended import BASH, made

from tooltrail.store import EndedCall

BIG = b"a line of a long output\n" * 20_000
MOMENT = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_every_reading_command_reads_it(cli: Cli) -> None:
    with cli.open() as store, store.open_session(title="imported") as session:
        finished = session.record(
            EndedCall(
                BASH,
                made(BIG, b"slow\n", 3),
                started_at=MOMENT,
                finished_at=MOMENT + timedelta(hours=1),
            )
        )
    name = str(finished.invocation_id)
    (record,) = cli.ok("log", "--json").records
    assert (record["id"], record["duration_ms"]) == (name, 3_600_000)
    assert cli.ok("show", name, "--stream", "stdout").stdout == BIG
    assert "slow" in cli.ok("transcript", str(session.id)).text
    assert cli.ok("verify", "--receipts").text == ""
    assert cli.ok("db", "check").message == "no problem found\n"
    assert cli.ok("status").code == 0
