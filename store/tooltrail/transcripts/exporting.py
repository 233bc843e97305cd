"""A transcript in a provider's own format: part of a request, ready to be merged into one."""

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
    """A session as the messages of a request, each call with what the model was shown.

    The report lists the differences of the conversation from the record, then what the format does
    not carry.

    Args:
        transcript: of the session; a call that is compacted has its compaction.
        format_name: of a wire format.
        policy: what becomes of what the format cannot carry.

    Raises:
        NotFoundError: there is no such format.
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    (conversation, changes), report = read_conversation(transcript), ExportReport()
    lenient = replace(policy, strict=False)
    export = wire_format(format_name).write_history(conversation, lenient)
    for change in (*changes, *export.report):
        report.add(change.kind, change.where, change.detail)
    if policy.strict and report:
        raise ExportRefusedError(report)
    return replace(export, report=report)


def write_export(export: Export) -> Iterator[str]:
    """An export as one JSON object, the items of its lists a line each."""
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
    """The writer of a wire format, for a transcript that is made to fit."""

    def write(transcript: Transcript) -> Iterator[str]:
        return write_export(export_transcript(transcript, format_name, policy))

    return write


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
