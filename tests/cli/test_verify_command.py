"""Everything that is stored, checked at once: a line for what is not right, a code that says so."""

from collections.abc import Iterator

import pytest
from tests.support.cli import Cli
from tests.support.recording import command_output, fail_tool, run_command, run_tool
from tests.support.rewording import reworded
from tests.support.sinks import retold

from tooltrail.artifacts import FrameIndex
from tooltrail.cli._output import print_array
from tooltrail.records import (
    Family,
    FamilyRegistry,
    Message,
    ToolCall,
    ToolDefinition,
    default_families,
)
from tooltrail.store import Session, open_store
from tooltrail.store.engines.sqlite_library import sqlite3

BIG = b"".join(b"line %d\n" % n for n in range(30_000))
THEN = reworded("command", "exit status 0\n", version=0)
VERSION = default_families().named("command").renderer.version
DRIFT = f"it was worded by renderer command 0, today's is command {VERSION}"


NO_MESSAGES = "0 messages compared with the ledger, 0 damaged"


def summaries(record: str, receipt: str, artifact: str, message: str = NO_MESSAGES) -> str:
    """What a whole check says at its end."""
    return (
        f"{record}\n{message}\n{receipt}\n{artifact}\n"
        "not checked: the ledger's own chain, sessions, "
        "and what lists show besides, as the exit status\n"
    )


def of_receipts(receipt: str) -> str:
    """What a check of receipts says at its end."""
    return f"{receipt}\nnothing else was checked\n"


def record(session: Session, *outputs: bytes) -> list[str]:
    """Run a command for each output; the ids."""
    return [str(run_command(session, output).invocation_id) for output in outputs]


def alter(cli: Cli, trigger: str, statement: str) -> None:
    """Change an evidence table behind the program's back."""
    with sqlite3.connect(cli.database) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)
    connection.close()


def with_unknown_family() -> FamilyRegistry:
    families = default_families()
    known = families.named("command")
    families.register(
        Family("unknown", known.result_types, known.projector, known.renderer, known.budget)
    )
    return families


def test_an_empty_store_is_right(cli: Cli) -> None:
    ended = cli.ok("verify")
    assert ended.text == ""
    assert ended.message == summaries(
        "0 records compared with the ledger, 0 damaged",
        "0 receipts worded anew, 0 drifted",
        "0 artifacts checked, 0 damaged",
    )
    assert cli.ok("verify", "--json").text == "[]\n"


def test_what_today_s_program_recorded_is_right(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        record(session, b"short\n", BIG)
        run_tool(session, "text", tool="lookup")
        fail_tool(session)
        session.start(ToolCall(tool_name="Bash"))
        session.add_message("user", "run it")
        session.record_message(Message.of("assistant", "done"), payload=b"{}")
        session.offer_tools([ToolDefinition(name="Bash")])
    ended = cli.ok("verify")
    assert ended.text == ""
    assert ended.message == summaries(
        "5 records compared with the ledger, 0 damaged",
        "4 receipts worded anew, 0 drifted",
        "1 artifact checked, 0 damaged",
        "3 messages compared with the ledger, 0 damaged",
    )
    assert cli.ok("verify", "--receipts").message == of_receipts(
        "4 receipts worded anew, 0 drifted"
    )


def test_a_message_that_was_altered_has_a_line(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        session.add_message("user", "no, stop")
        altered = session.add_message("user", "go on")
    other = "(SELECT body_digest FROM messages WHERE key = 1)"
    alter(cli, "messages_no_update", f"UPDATE messages SET body_digest = {other} WHERE key = 2")
    ended = cli.run("verify")
    assert ended.code == 1
    told = "not what the ledger commits to: body digest"
    assert ended.lines == [f"damaged      message  {altered}: {told}"]
    assert "2 messages compared with the ledger, 1 damaged" in ended.message.splitlines()


def test_each_receipt_that_drifted_has_a_line(cli: Cli) -> None:
    with open_store(cli.database, families=THEN) as store:
        session = store.open_session()
        drifted = record(session, b"one\n", BIG)
        fail_tool(session)
    with cli.open() as store:
        record(store.open_session(), b"three\n")
    for flags in (["--receipts"], []):
        ended = cli.run("verify", *flags)
        assert ended.code == 1
        assert ended.lines == [f"drifted      receipt  {name}: {DRIFT}" for name in drifted]
        assert "4 receipts worded anew, 2 drifted" in ended.message.splitlines()


def test_json_has_a_record_for_everything_that_was_checked(cli: Cli) -> None:
    with cli.open() as store:
        (sound,) = record(store.open_session(), BIG)
        path = store.reader.artifacts()[0].path
    with open_store(cli.database, families=THEN) as store:
        (drifted,) = record(store.open_session(), b"one\n")
    ended = cli.run("verify", "--json")
    assert ended.code == 1
    assert ended.records == [
        {
            "schema_version": 1,
            "check": check,
            "name": name,
            "state": state,
            "reason": reason,
        }
        for check, name, state, reason in (
            ("record", sound, "ok", ""),
            ("record", drifted, "ok", ""),
            ("receipt", sound, "ok", ""),
            ("receipt", drifted, "drifted", DRIFT),
            ("artifact", path, "ok", ""),
        )
    ]
    assert [r["name"] for r in cli.run("verify", "--json", "--receipts").records] == [
        sound,
        drifted,
    ]


def test_one_session_can_be_checked_alone(cli: Cli) -> None:
    with open_store(cli.database, families=THEN) as store:
        first, second = store.open_session(), store.open_session()
        record(first, BIG)
        (drifted,) = record(second, b"two\n")
    ended = cli.run("verify", "--session", "@last")
    assert ended.code == 1
    assert ended.lines == [f"drifted      receipt  {drifted}: {DRIFT}"]
    counted = "1 record compared with the ledger, 0 damaged", "1 receipt worded anew, 1 drifted"
    assert ended.message == summaries(*counted, "0 artifacts checked, 0 damaged")
    of_first = cli.run("verify", "--session", str(first.id))
    assert of_first.message == summaries(*counted, "1 artifact checked, 0 damaged")
    assert cli.run("verify", "--session", "ffffffff").code == 3


def test_what_cannot_be_compared_is_incomplete(cli: Cli) -> None:
    with open_store(cli.database, families=with_unknown_family()) as store:
        call = ToolCall(tool_name="theirs")
        session = store.open_session()
        record(session, b"one\n")
        invocation = session.start(call, family="unknown")
        invocation.finish(command_output(invocation))
    ended = cli.run("verify", "--receipts")
    assert ended.code == 4
    assert ended.lines == [
        f"incomparable receipt  {invocation.id}: the family 'unknown' is not known to this program"
    ]
    assert ended.message == of_receipts("2 receipts worded anew, 0 drifted, 1 incomparable")


UNREADABLE = "is damaged: a row holds what was never stored"


@pytest.mark.parametrize(
    ("trigger", "statement", "reason"),
    [
        (
            "canonical_results_no_update",
            "UPDATE canonical_results SET document = document || ' ' WHERE invocation_key = 2",
            "a document of invocation {name} is damaged: it has another digest",
        ),
        (
            "invocations_no_update",
            "UPDATE invocations SET started_at = 'yesterday' WHERE key = 2",
            f"database {{database}} {UNREADABLE}",
        ),
        (
            "complete_outputs_no_update",
            "UPDATE complete_outputs SET document = x'ff' WHERE invocation_key = 2",
            f"database {{database}} {UNREADABLE}",
        ),
    ],
)
def test_a_damaged_record_is_named_and_the_rest_is_checked(
    cli: Cli, trigger: str, statement: str, reason: str
) -> None:
    with cli.open() as store:
        names = record(store.open_session(), b"one\n", b"two\n", BIG)
    alter(cli, trigger, statement)
    reason = reason.format(name=names[1], database=cli.database)
    ended = cli.run("verify")
    assert ended.code == 1
    assert ended.lines == [
        f"damaged      {check} {names[1]}: {reason}" for check in ("record  ", "receipt ")
    ]
    assert ended.message == summaries(
        "3 records compared with the ledger, 1 damaged",
        "3 receipts worded anew, 0 drifted, 1 damaged",
        "1 artifact checked, 0 damaged",
    )


def test_a_policy_that_is_no_text_is_damage(cli: Cli) -> None:
    with cli.open() as store:
        (name,) = record(store.open_session(), BIG)
        digest = store.policy.digest
    alter(cli, "policies_no_update", "UPDATE policies SET document = CAST(document AS BLOB)")
    ended = cli.run("verify")
    assert ended.code == 1
    assert ended.lines == [
        f"damaged      receipt  {name}: policy {digest} is damaged: it is not text"
    ]
    assert ended.message == summaries(
        "1 record compared with the ledger, 0 damaged",
        "1 receipt worded anew, 0 drifted, 1 damaged",
        "1 artifact checked, 0 damaged",
    )


@pytest.mark.parametrize(
    ("trigger", "statement", "problem"),
    [
        ("ledger_entries_no_delete", "DELETE FROM ledger_entries", "the ledger has no entry "),
        ("complete_outputs_no_delete", "DELETE FROM complete_outputs", "missing: complete output"),
        (
            "output_streams_no_delete",
            "DELETE FROM output_streams WHERE role = 'stdout'",
            "stream stdout of the complete output has no row",
        ),
        ("invocations_no_update", "UPDATE invocations SET seq = 7", "not what the ledger "),
    ],
)
def test_a_record_without_its_proof_is_not_right(
    cli: Cli, trigger: str, statement: str, problem: str
) -> None:
    with cli.open() as store:
        (name,) = record(store.open_session(), b"one\n")
    alter(cli, trigger, statement)
    ended = cli.run("verify")
    assert ended.code == 1
    (line,) = ended.lines
    assert line.startswith(f"damaged      record   {name}: {problem}")
    assert ended.message == summaries(
        "1 record compared with the ledger, 1 damaged",
        "1 receipt worded anew, 0 drifted",
        "0 artifacts checked, 0 damaged",
    )


def test_a_list_that_cannot_be_read_does_not_end_the_other_checks(cli: Cli) -> None:
    with cli.open() as store:
        record(store.open_session(), BIG)
    alter(cli, "artifacts_no_update", "UPDATE artifacts SET created_at = 'yesterday'")
    ended = cli.run("verify")
    assert ended.code == 1
    assert ended.lines == [
        f"damaged      artifact {cli.database}: database {cli.database} {UNREADABLE}"
    ]
    assert ended.message == summaries(
        "1 record compared with the ledger, 0 damaged",
        "1 receipt worded anew, 0 drifted",
        "1 artifact checked, 1 damaged",
    )


@pytest.mark.parametrize(("data", "state", "code"), [(b"x", "damaged", 1), (None, "missing", 4)])
def test_a_bad_artifact_is_named(cli: Cli, data: bytes | None, state: str, code: int) -> None:
    with cli.open() as store:
        record(store.open_session(), BIG)
        path = store.reader.artifacts()[0].path
    stored = cli.folder / "artifacts" / path
    stored.chmod(0o644)
    stored.unlink()
    if data is not None:
        stored.write_bytes(data)
    ended = cli.run("verify")
    assert ended.code == code
    (line,) = ended.lines
    assert line.startswith(f"{state:12} artifact {path}: ")
    found = "1 damaged" if state == "damaged" else f"0 damaged, 1 {state}"
    assert ended.message == summaries(
        "1 record compared with the ledger, 0 damaged",
        "1 receipt worded anew, 0 drifted",
        f"1 artifact checked, {found}",
    )
    assert cli.ok("verify", "--receipts").text == ""


def test_drift_outweighs_what_is_missing(cli: Cli) -> None:
    with open_store(cli.database, families=THEN) as store:
        record(store.open_session(), BIG)
        path = store.reader.artifacts()[0].path
    (cli.folder / "artifacts" / path).unlink()
    ended = cli.run("verify")
    assert ended.code == 1
    assert ended.message == summaries(
        "1 record compared with the ledger, 0 damaged",
        "1 receipt worded anew, 1 drifted",
        "1 artifact checked, 0 damaged, 1 missing",
    )


def test_words_of_a_family_do_nothing_on_a_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("\x1b[2Jgone")

    with cli.open() as store:
        (name,) = record(store.open_session(), b"one\n")
    monkeypatch.setattr(
        "tooltrail.store.opening.default_families", lambda: reworded("command", fail)
    )
    (line,) = cli.run("verify", "--receipts").lines
    assert line == (
        f"drifted      receipt  {name}: today's command family cannot word the canonical result: "
        "RuntimeError: �[2Jgone"
    )


def test_an_array_is_printed_while_its_records_come(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    def records() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        assert capfdbinary.readouterr().out == b'[{"schema_version": 1, "n": 1}'
        yield {"n": 2}

    print_array(records())
    assert capfdbinary.readouterr().out == b',\n {"schema_version": 1, "n": 2}]\n'


def lying_object(cli: Cli) -> tuple[str, FrameIndex]:
    """Record one artifact, and have its index count other newlines in two of its frames."""
    with cli.open() as store:
        record(store.open_session(), BIG)
        (artifact,) = store.reader.artifacts()
        index = store.archive.index_of(artifact.path)
    assert index is not None
    assert len(index) > 1
    file = cli.folder / "artifacts" / artifact.path
    data = file.read_bytes()[: index.frames_size]
    file.chmod(0o600)
    file.write_bytes(data + retold(index, newlines={0: -3, 1: 3}).to_bytes())
    return artifact.path, index


def test_an_index_that_lies_is_damage_and_each_frame_is_named(cli: Cli) -> None:
    path, index = lying_object(cli)
    said = [
        f"its index: frame {frame}: newlines {count:,} found, {count + more:,} expected"
        for frame, count, more in ((0, index.newlines_in(0), -3), (1, index.newlines_in(1), 3))
    ]
    ended = cli.run("verify")
    assert ended.code == 1
    (line,) = ended.lines
    assert line.startswith(f"damaged      artifact {path}: artifact {path} ")
    assert line.endswith("; ".join(said))
    ended = cli.run("artifact", "verify", path, "--json")
    assert ended.code == 1
    (verdict,) = ended.records
    assert (verdict["state"], verdict["differences"]) == ("damaged", said)
    assert verdict["reason"].endswith("; ".join(said))
    # Reading lines by it is refused, bytes are read.
    ended = cli.run("artifact", "tail", "-n", "9000", path)
    assert (ended.code, ended.stdout) == (1, b"")
    assert "newlines in frame 0, which has" in ended.sentence
    assert cli.ok("artifact", "cat", "--bytes", "5:90000", path).stdout == BIG[5:90_000]


@pytest.mark.parametrize("kind", ["missing", "altered"])
def test_an_object_whose_index_is_missing_or_altered_is_damage(cli: Cli, kind: str) -> None:
    path, index = lying_object(cli)
    file = cli.folder / "artifacts" / path
    data = bytearray(file.read_bytes())
    if kind == "missing":
        del data[index.frames_size :]
    else:
        data[-40] ^= 1
    file.write_bytes(data)
    ended = cli.run("verify")
    assert ended.code == 1
    assert ended.lines[0].startswith(f"damaged      artifact {path}: ")
    assert "index" in ended.lines[0]


def test_a_row_with_other_lines_is_damage_and_keeps_nobody_from_reading(cli: Cli) -> None:
    with cli.open() as store:
        record(store.open_session(), BIG)
        (artifact,) = store.reader.artifacts()
    alter(cli, "artifacts_no_update", "UPDATE artifacts SET line_count = 29999")
    ended = cli.run("artifact", "verify")
    assert ended.code == 1
    assert "30,000 lines found, 29,999 expected" in ended.text
    for verb in ("head", "tail"):
        assert cli.ok("artifact", verb, "-n", "30000", artifact.path).stdout == BIG
