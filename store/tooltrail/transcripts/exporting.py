"""Exports a transcript in the format of a provider, as part of a request."""

import json
from collections.abc import Iterator
from dataclasses import replace

from tooltrail.transcripts.conversations import read_conversation
from tooltrail.transcripts.formats import Writer
from tooltrail.transcripts.transcript import Transcript
from tooltrail.wire import (
    DEFAULT_EXPORT_POLICY,
    Export,
    ExportPolicy,
    ExportRefusedError,
    ExportReport,
    wire_format,
)


def export_transcript(
    transcript: Transcript, format_name: str, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
) -> Export:
    """Export a session as the messages of a request, each call with the receipt that was shown.

    The report lists the differences of the conversation from the record, then the losses of the
    format.

    Args:
        transcript: transcript of the session; compacted calls have their compacted receipts.
        format_name: name of a wire format.
        policy: how to export content that the format cannot represent.

    Raises:
        NotFoundError: there is no such format.
        ExportRefusedError: the export would differ from the record, and the policy is strict.
    """
    # The other ways to write a call without a result are ways of the format.
    fills, report = policy.unanswered == "mark", ExportReport()
    conversation, changes = read_conversation(transcript, fills=fills)
    lenient = replace(policy, strict=False)
    export = wire_format(format_name).write_history(conversation, lenient)
    for change in (*changes, *export.report):
        report.add(change.kind, change.where, change.detail)
    if policy.strict and report:
        raise ExportRefusedError(report)
    return replace(export, report=report)


def write_export(export: Export) -> Iterator[str]:
    """Yield an export as one JSON object, with one line for each item of a list."""
    separator = "{"
    for name, value in export.request.items():
        yield f"{separator}{json.dumps(name)}:"
        separator = ",\n"
        if isinstance(value, list):
            lines = ",".join("\n" + _dump(item) for item in value)
            yield f"[{lines}\n]"
        else:
            yield _dump(value)
    yield "}\n" if export.request else "{}\n"


def provider_writer(format_name: str, policy: ExportPolicy = DEFAULT_EXPORT_POLICY) -> Writer:
    """Return a writer of a wire format, for example for `fit`."""

    def write(transcript: Transcript) -> Iterator[str]:
        return write_export(export_transcript(transcript, format_name, policy))

    return write


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
