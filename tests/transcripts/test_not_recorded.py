"""Transcripts of imported calls whose source has only some of their surfaces."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import import_one, opened, write_lines
from tests.support.call_facts import moment, next_id, started

from tooltrail.journal import Entry, JournalLog
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import CallEnded, SourceFact
from tooltrail.transcripts import (
    FORMATS,
    Transcript,
    conversation_of,
    export_transcript,
    fit,
    load_transcript,
    provider_writer,
)
from tooltrail.wire import ExportPolicy

CALL = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"}
END = {"type": "mcp_tool_call_end", "call_id": "c1", "result": {"Ok": {"lines": ["x" * 900] * 9}}}
PROVIDERS = ("openai", "openai-responses", "anthropic", "bedrock", "ollama", "gemini", "cohere")
ABSENCE = "receipt is not recorded: its source does not contain it"


def transcript_of(folder: Path, receipt: str | None, *, has_output: bool = False) -> Transcript:
    """A session of Codex with one call that has ended."""
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": "s1"}),
        ("response_item", CALL),
        *([("event_msg", END)] if has_output else []),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": receipt}),
    ]
    at = "2026-04-11T23:00:01Z"
    lines = ({"timestamp": at, "type": kind, "payload": one} for kind, one in payloads)
    import_one(folder, write_lines(folder / "s.jsonl", lines))
    with opened(folder) as reader:
        return load_transcript(reader, "@last")


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_a_receipt_that_is_not_recorded_is_not_a_call_that_has_not_ended(
    tmp_path: Path, style: str
) -> None:
    text = "".join(FORMATS[style](transcript_of(tmp_path, None)))
    assert f"[no result: {ABSENCE}]" in text
    assert "has not ended" not in text


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_export_says_that_the_call_has_ended(tmp_path: Path, name: str) -> None:
    export = export_transcript(transcript_of(tmp_path, None), name)
    text = json.dumps(export.request)
    assert f"[the call has ended: success; {ABSENCE}]" in text
    assert "interrupted" not in text
    assert "ERROR" not in text
    assert '"is_error": true' not in text
    (change,) = export.report.of_kind("result_missing")
    assert change.where == "messages[1].results[0]"


def test_the_other_ways_to_write_a_missing_result_stay(tmp_path: Path) -> None:
    transcript = transcript_of(tmp_path, None)
    texts = {
        way: json.dumps(
            export_transcript(transcript, "openai", ExportPolicy(unanswered=way)).request
        )
        for way in ("unknown", "drop")
    }
    assert "[unknown: what the model was shown" in texts["unknown"]
    assert texts["drop"] == '{"messages": []}'


def test_a_receipt_without_an_output_is_in_every_format(tmp_path: Path) -> None:
    transcript = transcript_of(tmp_path, "what the model saw")
    for writer in (*FORMATS.values(), *map(provider_writer, PROVIDERS)):
        fitted = fit(transcript, 1, writer)
        assert fitted.transcript.compacted == {}
        assert "what the model saw" in "".join(writer(fitted.transcript))


def test_a_result_that_the_model_may_not_have_seen_is_not_compacted(tmp_path: Path) -> None:
    transcript = transcript_of(tmp_path, None, has_output=True)
    (call,) = (one for one in conversation_of(transcript).messages if one.role == "tool")
    assert ABSENCE in call.model_dump_json()
    assert fit(transcript, 1, provider_writer("anthropic")).transcript.compacted == {}


def record(folder: Path, *entries: Entry) -> None:
    JournalLog(folder / "tooltrail.db-spool" / "journal").record(entries)


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_arguments_that_are_no_text_are_in_every_format(tmp_path: Path, style: str) -> None:
    record(tmp_path, started(next_id(), next_id(), arguments=b'{"a":"\xff"}'))
    with opened(tmp_path) as reader:
        transcript = load_transcript(reader, "@last")
        assert "".join(FORMATS[style](transcript))


def test_the_source_of_an_end_alone_says_what_is_not_recorded(tmp_path: Path) -> None:
    session, call = next_id(), next_id()
    source = SourceFact(format="codex", file="/a.jsonl", offset=7, digest=digest_of(b"line"))
    end = CallEnded(
        session=session,
        id=call,
        at=moment(1),
        state="success",
        output=digest_of(b""),
        source=source,
    )
    record(tmp_path, started(session, call), Entry(end, [b""]))
    with opened(tmp_path) as reader:
        detail = reader.invocation(call)
    assert detail.source is not None
    assert detail.source.offset == 7
    assert detail.not_recorded == ("output", "canonical", "receipt")
