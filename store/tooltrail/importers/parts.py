"""The bodies and files of one fact, from which the secrets were removed.

The complete outputs among them equal those of `CompleteOutput`, and are made without the slow
import of models; a test compares them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tooltrail.importers import events
from tooltrail.records import command_documents as documents
from tooltrail.records._error_text import one_line
from tooltrail.records.counted_streams import INLINE_BYTES, CountedStream
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import UnavailableError
from tooltrail.records.facts import RedactionFact, StreamFact
from tooltrail.redaction import RuleSet, redact_json, redactions

_MOST_BYTES: Final = (1 << 63) - 1

_LOSS: Final = "the source of the import has only a part"
_MESSAGE_CHARS: Final = 1000
_SUMMARY_CHARS: Final = 200


class Parts:
    """Collects the parts of one fact.

    Args:
        rules: the secrets to replace; None if there are none in the line.

    Attributes:
        bodies: the bodies of the fact.
        files: the spool files of the fact.
        redacted: the secrets that were replaced.
    """

    def __init__(self, rules: RuleSet | None) -> None:
        self.bodies: list[bytes] = []
        self.files: list[Path] = []
        self.redacted: tuple[RedactionFact, ...] = ()
        self._rules = rules

    def add(self, field: str, data: bytes) -> Digest:
        """Add a part as a body, and return its digest."""
        kept = self.clean(field, data)
        self.bodies.append(kept)
        return digest_of(kept)

    def clean(self, field: str, data: bytes) -> bytes:
        """A part without its secrets. JSON stays JSON."""
        if self._rules is None or not self._rules.may_match(data):
            return data
        kept, found = redact_json(data, self._rules)
        self.redacted += redactions(field, found)
        return kept

    def clean_text(self, field: str, text: str) -> str:
        """A text without its secrets."""
        return self.clean(field, encoded(text)).decode("utf-8", "surrogatepass")

    def stream(self, role: str, data: bytes, output: events.Output, folder: Path) -> StreamFact:
        """Add a stream: a short one as a body, a long one as a file in a folder of the spool.

        Raises:
            UnavailableError: the file cannot be written.
        """
        kept = self.clean(role, data)
        if len(kept) <= INLINE_BYTES:
            self.bodies.append(kept)
            fact = StreamFact.of(CountedStream.of(role, kept))
        else:
            from tooltrail.artifacts.capture import Capture  # noqa: PLC0415  loads the codec

            path = folder / f"{role}.zst"
            with Capture(role, path, edge_bytes=0) as capture:
                capture.write(kept)
            captured = capture.close()
            if captured.staged is None or captured.counted.loss_reason is not None:
                raise UnavailableError(f"{path} cannot be written: {captured.counted.loss_reason}")
            self.files.append(captured.staged)
            fact = StreamFact.of(captured.counted, f"{folder.name}/{captured.staged.name}")
        if role not in output.lost:
            return fact
        produced = min(max(output.lost[role], fact.size + 1), _MOST_BYTES)
        return fact.replaced(produced_size=produced, loss_reason=_LOSS)


def encoded(text: str) -> bytes:
    """A text as it is stored: UTF-8, including lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def success_document(
    tool_name: str, output: events.Output, streams: Sequence[StreamFact], *, is_command: bool
) -> bytes:
    """The complete output of a tool that did its work."""
    if is_command:
        command, cwd, status = output.command or "", output.cwd, output.exit_status
        end = documents.CommandEnd(
            command, cwd, status, signal=None, timed_out=False, timeout_ms=None
        )
        return documents.ended_document(tool_name, end, streams)
    members = {one.role: documents.stream_members(one) for one in streams}
    structured = members.pop("structured", None)
    content = [{"media_type": "text/plain", "stream": one} for one in members.values()]
    summary = f"tool returned {len(content)} content {'item' if len(content) == 1 else 'items'}"
    result = {"content": content, "structured": structured}
    return documents.output_document(tool_name, summary, result=result)


def failure_document(tool_name: str, kind: str, text: str, streams: Sequence[StreamFact]) -> bytes:
    """The complete output of a tool that failed, with the output that its source has."""
    message = one_line(text, _MESSAGE_CHARS) or "(no message)"
    error = {
        "kind": kind,
        "message": message,
        "details": None,
        "recovery_hint": None,
        "retryable": False,
    }
    summary = one_line(message, _SUMMARY_CHARS)
    if not streams:
        return documents.output_document(tool_name, summary, error=error)
    partial = [documents.stream_members(one) for one in streams]
    return documents.output_document(tool_name, summary, error=error, partial_output=partial)
