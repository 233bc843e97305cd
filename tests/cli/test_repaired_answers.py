"""Answers of models that a kill cut off: who says so, and what `tooltrail repair` says of them."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.cli import Cli
from tests.support.cut_off_answers import CHUNKS, cut_off_answer

from tooltrail.store import open_store
from tooltrail.store._recording.answer_journal import iter_answers

SIZE = len(CHUNKS[0])


@pytest.fixture
def session(cli: Cli) -> UUID:
    with open_store(cli.database) as store:
        return store.open_session().id


def answer_file(cli: Cli) -> Path:
    (answer,) = iter_answers(cli.folder / "spool")
    return answer.path


def test_it_is_said_and_repaired(cli: Cli, session: UUID) -> None:
    cut_off_answer(str(cli.database), session, 1)
    assert cli.ok("log").message == (
        "tooltrail: 1 answer of models cut off by a kill: `tooltrail repair`\n"
    )
    status = cli.ok("status")
    assert "1 answer of models cut off by the end of their program" in status.message
    (told,) = cli.ok("status", "--json").records
    assert told["unsettled"]["answers"] == 1
    dry = cli.ok("repair", "--dry-run").message
    assert dry.startswith(
        f"0 invocations would be ended as interrupted, 0 B would be recovered, 0 running\n"
        f"1 answer of models cut off by a kill would be recorded, {SIZE} B\n"
    )
    ended = cli.ok("repair")
    assert ended.stdout == b""
    assert f"1 answer of models cut off by a kill recorded, {SIZE} B\n" in ended.message
    assert "Let me add." in cli.ok("transcript", str(session)).text
    assert cli.ok("log").message == ""
    assert cli.ok("verify").code == 0


def test_programs_are_told_which_message_it_became(cli: Cli, session: UUID) -> None:
    cut_off_answer(str(cli.database), session, 2)
    name = answer_file(cli).name.removeprefix("answer-")
    assert cli.ok("repair", "--json").records == [
        {
            "schema_version": 1,
            "invocation_id": None,
            "outcome": "answer",
            "recovered_bytes": SIZE + len(CHUNKS[1]),
            "lost_bytes": 0,
            "reason": f"message {name}",
            "kept_in": None,
        }
    ]
    assert cli.ok("repair", "--json").records == []


def test_one_that_cannot_be_read_is_left_and_said(cli: Cli, session: UUID) -> None:
    cut_off_answer(str(cli.database), session, 1)
    path = answer_file(cli)
    head, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "v": 9}).encode() + b"\n" + rest)
    ended = cli.run("repair")
    assert ended.code == 4
    assert f"what came of message {path.name.removeprefix('answer-')} is left" in ended.message
    (row,) = cli.run("repair", "--json").records
    assert (row["outcome"], row["recovered_bytes"]) == ("unreadable", 0)
    assert "none that this program knows" in row["reason"]
    assert path.exists()
