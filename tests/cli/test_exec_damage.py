"""What is damaged before it is stored is said by whoever records it."""

import pytest
from tests.support.cli import Cli

from tooltrail.artifacts import artifact_path
from tooltrail.cli._recording import _Recording  # pyright: ignore[reportPrivateUsage]  it is altered between its steps
from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall


def test_output_that_was_altered_after_it_was_captured_is_said_to_be_damaged(
    cli: Cli, capfd: pytest.CaptureFixture[str]
) -> None:
    with cli.open() as store:
        invocation = store.start_alone(ToolCall(tool_name="exec"), family="command")
        recording = _Recording(invocation)
        capture = invocation.capture("stdout")
        for number in range(40):
            capture.write(b"%d\n" % number * 1000)
            capture.flush()
        stream = capture.close()
        assert stream.staged is not None
        data = bytearray(stream.staged.read_bytes())
        data[30] ^= 1
        stream.staged.write_bytes(data)
        result = CommandOutput(
            command="make",
            exit_status=0,
            stdout=recording.captured(stream),
            stderr=StreamRecord.from_bytes("stderr", b""),
        )
        recording.finish(CompleteOutput.success("exec", result), verbose=False)
    path = artifact_path(stream.record.digest)
    said = f"tooltrail: artifact {path} is damaged: it was altered after it was captured\n"
    assert tuple(capfd.readouterr()) == ("", said)
    assert cli.run("artifact", "verify").code == 1
