"""What is damaged before it is stored is said by whoever records it."""

from tests.support.cli import Cli

from tooltrail.cli._recording import _Recording  # pyright: ignore[reportPrivateUsage]  it is altered between its steps
from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall


def test_output_that_was_altered_after_it_was_captured_is_found_by_verifying(cli: Cli) -> None:
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
    assert cli.run("artifact", "verify").code == 1
