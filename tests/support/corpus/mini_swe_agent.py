"""mini-SWE-agent: a conversation in which each answer of the model has one command for `bash`.

The next message is the result. There is no result if the answer had not exactly one command, and
no exit status if the command timed out or ended the run.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.corpus.calls import RecordedCall, as_list, ended, failed, interrupted

from tooltrail.records import ErrorKind

_COMMAND = re.compile(r"^```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL | re.MULTILINE)
_RETURNED = re.compile(r"<returncode>(-?\d+)</returncode>\n")
_OUTPUT = re.compile(r"<output>\n(.*)</output>\Z", re.DOTALL)
_TIMED_OUT = re.compile(
    r"The last command <command>.*</command> timed out and has been killed\.\n"
    r"The output of the command was:\n <output>\n(.*)\n</output>",
    re.DOTALL,
)
_NO_CALL = "<response_example>"
"""Part of the message that asks the model for another answer."""


def read(path: Path) -> Iterator[RecordedCall]:
    """The commands of a run."""
    document = json.loads(path.read_bytes())
    messages = as_list(document) or document["messages"]
    talk = [(message["role"], _text(message["content"])) for message in messages]
    for (role, text), (_, answer) in pairwise([*talk, ("", None)]):
        commands = _COMMAND.findall(text or "") if role == "assistant" else []
        if commands and _NO_CALL not in (answer or ""):
            yield _call(commands[-1], answer)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _call(command: str, answer: str | None) -> RecordedCall:
    arguments = {"command": command}
    if answer is None:
        return interrupted("bash", arguments)
    timed_out = _TIMED_OUT.match(answer)
    if timed_out is not None:
        details = {"output": timed_out[1]}
        kind = ErrorKind.COMMAND_TIMED_OUT
        return failed("bash", arguments, "the command timed out and was killed", kind, details)
    returned = _RETURNED.match(answer)
    if returned is None:
        return RecordedCall("bash", arguments, (answer,))
    body = answer[returned.end() :]
    output = _OUTPUT.fullmatch(body)
    # If the output was too long, the log has its beginning and end, with a notice between.
    text = body if output is None else output[1]
    return RecordedCall("bash", arguments, (answer,), ended(int(returned[1]), text, command))
