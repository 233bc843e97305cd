"""Documents that are written without models are those that the models write."""

from itertools import product

import pytest
from tests.support.cases import each_case

from tooltrail.records import CompleteOutput, StreamRecord, ToolError
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.command_documents import CommandEnd, ended_document, failed_document
from tooltrail.records.facts import StreamFact
from tooltrail.records.families.command import CommandOutput

ROLES = ("stdout", "stderr", "order")
COMMANDS = ["ls -l", "", "a\nb\x1b[0m \u202e", "\udcff", "ä" * 300]
ENDS: list[tuple[int | None, int | None]] = [
    (0, None),
    (255, None),
    (None, 9),
    (None, 64),
    (None, None),
]


def fact_of(stream: StreamRecord) -> StreamFact:
    members = stream.model_dump()
    return StreamFact(
        **{name: members[name] for name in members if name in StreamFact.member_types}
    )


@each_case(("command", "end"), [*product(COMMANDS, ENDS)])
@each_case("timeout_ms", [None, 1500])
def test_the_end_of_a_command(
    command: str, end: tuple[int | None, int | None], timeout_ms: int | None
) -> None:
    out, err, order = (StreamRecord.from_bytes(role, b"a\nb") for role in ROLES)
    known = CommandEnd(command, "/tmp", *end, timeout_ms is not None, timeout_ms)
    result = CommandOutput(
        command=command,
        cwd="/tmp",
        exit_status=end[0],
        signal=end[1],
        timed_out=known.timed_out,
        timeout_ms=timeout_ms,
        stdout=out,
        stderr=err,
        order=order,
    )
    document = ended_document("exec", known, map(fact_of, (out, err, order)))
    assert document == CompleteOutput.success("exec", result).to_json()


def test_the_end_of_a_command_on_a_terminal() -> None:
    stream = StreamRecord.from_bytes("combined", b"text\r\n")
    result = CommandOutput(command="ls", exit_status=0, combined=stream)
    known = CommandEnd("ls", None, 0, None, False, None)
    document = ended_document("Bash", known, [fact_of(stream)])
    assert document == CompleteOutput.success("Bash", result).to_json()


@pytest.mark.parametrize("message", ["command 'x' is not found", "'\udcff'\x1b \u2028", "x " * 400])
def test_a_command_that_could_not_be_started(message: str) -> None:
    # The message quotes `argv`, which stands in the details byte for byte.
    error = ToolError(
        kind="command_spawn_failed",
        message=spelled_out(message),
        details={"argv": ["\udcff"], "cwd": None},
    )
    document = failed_document("exec", "command_spawn_failed", message, ["\udcff"], None)
    assert document == CompleteOutput.failure("exec", error).to_json()
