"""The four example agents, run end to end against a server that speaks each wire format.

The server holds each request to the types of the official client and to the rules of its provider;
what it refuses fails the run.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents.scenarios import AGENTS, BAD, GOOD, Ran, example, free_text, run_scripted
from tests.support.agents.scripted_provider import FORMATS, Delivery, Refusal, Step
from tests.support.agents.spelled_answers import Call, asks, says
from tests.support.evidence import check_evidence

from tooltrail.agents import QuestionFailed, RunFailedError, agent_statistics
from tooltrail.agents.submission import INSTRUCTIONS
from tooltrail.records import canonical_json
from tooltrail.store import InvocationDetail, Store, iter_legs
from tooltrail.transcripts import export_transcript, load_transcript

in_each_format = pytest.mark.parametrize("wire_format", FORMATS)

PROSE = "Here is my result:\n```json\n" + json.dumps(GOOD["reviewer"]) + "\n```"


def submits(agent: str, call_id: str | None = "call_s") -> Call:
    return Call("submit_result", GOOD[agent], call_id)


def calls_of(store: Store, ran: Ran, leg: int = 0) -> list[InvocationDetail]:
    _, _, calls = store.reader.conversation(ran.run.legs[leg].session_id)
    return calls


def check(store: Store, ran: Ran) -> None:
    """Nothing was refused by the provider, and everything in the store is what was recorded."""
    assert ran.provider.refused == []
    assert ran.provider.script == []
    check_evidence(store)
    for leg in range(len(ran.run.legs)):
        assert "started" not in {call.summary.state for call in calls_of(store, ran, leg)}


@in_each_format
@pytest.mark.parametrize(
    ("agent", "stream"), [*((agent, True) for agent in AGENTS), ("tester", False)]
)
def test_an_agent_that_submits_well_at_once(
    store: Store, tmp_path: Path, wire_format: str, agent: str, *, stream: bool
) -> None:
    script = [says("I look.", Call("fs_read", {"path": "a.py"}, "c1")), asks(submits(agent))]
    ran = run_scripted(store, example(agent), wire_format, script, root=tmp_path, stream=stream)
    assert (ran.run.outcome, ran.run.result) == ("submitted", GOOD[agent])
    assert ran.run.legs[0].ended.input_tokens == 20
    assert ran.run.legs[0].ended.output_tokens == 10
    [read, submitted] = calls_of(store, ran)
    assert [read.summary.family, submitted.summary.family] == ["file_read", "structured_output"]
    assert read.receipt is not None
    assert "x = 1" in read.receipt.text
    assert "x = 1" in json.dumps(ran.bodies[1])
    assert ran.run.legs[0].ended.result_id == submitted.summary.id
    check(store, ran)


@in_each_format
def test_json_in_prose_is_no_result_and_the_model_is_told_so(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    script = [says(PROSE), asks(submits("reviewer"))]
    ran = run_scripted(store, example("reviewer"), wire_format, script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    assert ran.run.legs[0].ended.reminder_count == 1
    asked = json.dumps(ran.bodies[1])
    assert "There is no result yet" in asked
    # Where a call can be forced, it is.
    forced = {"tool_choice", "toolConfig"} & ran.bodies[1].keys()
    assert bool(forced) == (wire_format != "ollama")
    assert not {"tool_choice", "toolConfig"} & ran.bodies[0].keys()
    check(store, ran)


def test_a_model_that_never_submits_gives_way_to_the_next_tier(
    store: Store, tmp_path: Path
) -> None:
    config = example("reviewer", tiers=2)
    script = [says(PROSE), says("I told you."), asks(submits("reviewer"))]
    ran = run_scripted(store, config, "anthropic", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    first, second = ran.run.legs
    assert (first.ended.outcome, first.ended.limit) == ("result_not_submitted", "reminders")
    assert (first.ended.escalated_to, second.started.tier) == ("large", "large")
    assert second.started.run_id == first.session_id
    assert store.reader.session(second.session_id).parent_id == first.session_id
    # The next tier begins anew: it hears nothing of what the one before said.
    assert "I told you" not in json.dumps(ran.bodies[2])
    check(store, ran)


def test_nothing_submitted_at_all_is_a_failure_and_says_so(store: Store, tmp_path: Path) -> None:
    config = example("reviewer", max_reminders=0)
    ran = run_scripted(store, config, "openai", [says(PROSE)], root=tmp_path)
    assert (ran.run.outcome, ran.run.value) == ("result_not_submitted", None)
    message = "^result_not_submitted: Agent did not call submit_result tool: the model stopped"
    with pytest.raises(RunFailedError, match=message):
        _ = ran.run.result
    asked = json.dumps(ran.bodies[0], ensure_ascii=False)
    assert '# \u26a0\ufe0f CRITICAL: You MUST call submit_result() to return findings!"' in asked
    assert "You MUST call this tool" in asked
    assert '"strict": true' not in asked
    [leg] = iter_legs(store.reader)
    assert leg.ended == ran.run.legs[0].ended
    assert leg.attempts == ()
    check(store, ran)


@pytest.mark.parametrize(
    ("agent", "wire_format"), [*zip(AGENTS, FORMATS, strict=False), (AGENTS[0], FORMATS[-1])]
)
def test_an_invalid_submission_is_answered_with_what_is_wrong_and_read_afterwards(
    store: Store, tmp_path: Path, wire_format: str, agent: str
) -> None:
    bad, fields = BAD[agent]
    script = [asks(Call("submit_result", bad, "c1")), asks(submits(agent))]
    ran = run_scripted(store, example(agent), wire_format, script, root=tmp_path)
    assert (ran.run.outcome, ran.run.result) == ("submitted", GOOD[agent])
    told = json.dumps(ran.bodies[1])
    assert "Result rejected (attempt 1)" in told
    for name in fields:
        assert f"`{name}`" in told
    [leg] = iter_legs(store.reader)
    assert [attempt.valid for attempt in leg.attempts] == [False, True]
    assert {*fields} <= {error.path for error in leg.attempts[0].errors}
    refused, accepted = calls_of(store, ran)
    assert [json.loads(call.arguments) for call in (refused, accepted)] == [bad, GOOD[agent]]
    results = [json.loads(call.canonical_json or "")["result"] for call in (refused, accepted)]
    assert [(result["valid"], result["value"]) for result in results] == [
        (False, bad),
        (True, GOOD[agent]),
    ]
    assert refused.receipt is not None
    assert json.dumps(refused.receipt.text)[1:-1] in told
    check(store, ran)


@in_each_format
@pytest.mark.parametrize("has_schema", [True, False])
def test_the_prompt_and_the_tools_of_the_configuration_are_sent_and_a_schema_adds_to_both(
    store: Store, tmp_path: Path, wire_format: str, *, has_schema: bool
) -> None:
    config = example("reviewer") if has_schema else free_text(example("reviewer"))
    answer = asks(submits("reviewer")) if has_schema else says("Fine.")
    ran = run_scripted(store, config, wire_format, [answer], root=tmp_path)
    sent = json.dumps(ran.bodies[0], ensure_ascii=False)
    system = config.context.static.system.strip()
    prompt = f"{system}\n\n{INSTRUCTIONS}" if has_schema else system
    assert json.dumps(prompt, ensure_ascii=False) in sent
    assert json.dumps("Do it.") in sent
    names = ["fs_read", "fs_list", "fs_search", *(["submit_result"] if has_schema else [])]
    assert re.findall(r'"name": "(\w+)"', json.dumps(ran.bodies[0]["tools"])) == names
    check(store, ran)


def test_submissions_that_never_fit_end_with_the_attempts(store: Store, tmp_path: Path) -> None:
    bad = Call("submit_result", BAD["tester"][0], "c1")
    config = example("tester", max_attempts=2)
    ran = run_scripted(store, config, "gemini", [asks(bad), asks(bad)], root=tmp_path)
    ended = ran.run.legs[0].ended
    assert (ended.outcome, ended.limit, ended.attempt_count) == ("result_invalid", "attempts", 2)
    check(store, ran)


@in_each_format
def test_unknown_tools_and_wrong_arguments_are_answered_and_recorded(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    script = [
        asks(
            Call("fs_raed", {"path": "a.py"}, "c1"),
            Call("fs_read", {"file": "a.py"}, "c2"),
            Call("fs_write", {"path": "b.py", "content": ""}, "c3"),
            Call("fs_read", {"path": "../outside"}, "c4"),
        ),
        asks(submits("reviewer")),
    ]
    ran = run_scripted(store, example("reviewer"), wire_format, script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    kinds = [call.summary.error_kind for call in calls_of(store, ran)]
    assert kinds[:3] == ["unknown_tool", "invalid_tool_input", "tool_not_exposed"]
    assert kinds[3] is not None
    assert not (tmp_path / "b.py").exists()
    check(store, ran)


@in_each_format
def test_a_call_that_was_cut_off_does_not_run(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    cut = asks(Call("fs_write", {"path": "b.py", "content": "y" * 60}, "c1"), is_cut=True)
    script = [cut, asks(submits("implementer"))]
    ran = run_scripted(store, example("implementer"), wire_format, script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    assert not (tmp_path / "b.py").exists()
    [written, _] = calls_of(store, ran)
    assert written.summary.state == "error"
    check(store, ran)


def test_a_submission_that_was_cut_off_is_an_attempt_without_a_verdict(
    store: Store, tmp_path: Path
) -> None:
    script = [asks(submits("reviewer"), is_cut=True), asks(submits("reviewer"))]
    ran = run_scripted(store, example("reviewer"), "anthropic", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    assert ran.run.legs[0].ended.attempt_count == 2
    [leg] = iter_legs(store.reader)
    assert [attempt.valid for attempt in leg.attempts] == [None, True]
    check(store, ran)


@in_each_format
def test_ids_that_repeat_or_are_missing_confuse_nothing(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    (tmp_path / "b.py").write_text("y = 2\n")
    same = "call_1" if wire_format != "gemini" else None
    script = [
        asks(Call("fs_read", {"path": "a.py"}, same), Call("fs_read", {"path": "b.py"}, same)),
        asks(Call("fs_read", {"path": "b.py"}, same)),
        asks(submits("reviewer", same)),
    ]
    ran = run_scripted(store, example("reviewer"), wire_format, script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    receipts = [call.receipt.text for call in calls_of(store, ran) if call.receipt]
    assert receipts[:3] == ["x = 1\n", "y = 2\n", "y = 2\n"]
    told = json.dumps(ran.bodies[1])
    assert told.index("x = 1") < told.index("y = 2")
    check(store, ran)


def test_a_submission_beside_other_calls_comes_after_them(store: Store, tmp_path: Path) -> None:
    write = Call("fs_write", {"path": "b.py", "content": "y = 2\n"}, "c2")
    script = [asks(submits("implementer", "c1"), write, Call("fs_read", {"path": "b.py"}, "c3"))]
    ran = run_scripted(store, example("implementer"), "openai-responses", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    assert (tmp_path / "b.py").read_text() == "y = 2\n"
    names = [call.summary.tool_name for call in calls_of(store, ran)]
    assert names == ["fs_write", "fs_read", "submit_result"]
    read = calls_of(store, ran)[1]
    assert read.receipt is not None
    assert read.receipt.text == "y = 2\n"
    check(store, ran)


def test_what_is_submitted_behind_an_accepted_result_is_refused(
    store: Store, tmp_path: Path
) -> None:
    script = [asks(submits("reviewer", "c1"), submits("reviewer", "c2"))]
    ran = run_scripted(store, example("reviewer"), "gemini", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    first, second = calls_of(store, ran)
    assert ran.run.legs[0].ended.result_id == first.summary.id
    assert second.summary.state == "denied"
    check(store, ran)


@in_each_format
@pytest.mark.parametrize("ends", ["cut", "dropped"])
def test_an_answer_that_dies_is_asked_for_again_and_none_of_its_calls_runs(
    store: Store, tmp_path: Path, wire_format: str, ends: Any
) -> None:
    write = asks(Call("fs_write", {"path": "b.py", "content": "y" * 60}, "c1"))
    script: list[Step] = [Delivery(write, ends), asks(submits("implementer"))]
    ran = run_scripted(store, example("implementer"), wire_format, script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    assert not (tmp_path / "b.py").exists()
    assert ran.bodies[0] == ran.bodies[1]
    [failed] = [event for event in ran.events if isinstance(event, QuestionFailed)]
    assert failed.pause_ms <= 500
    # What had come of it is in the record all the same, with the provider's bytes.
    transcript = load_transcript(store.reader, str(ran.run.run_id))
    [broken] = [
        entry
        for entry in transcript.entries
        if not isinstance(entry, InvocationDetail)
        and entry.role == "assistant"
        and b'"is_complete":false' in (entry.document or b"")
    ]
    assert broken.wire_format == wire_format
    check(store, ran)


def test_a_server_that_refuses_for_a_while_is_asked_again_when_it_says(
    store: Store, tmp_path: Path
) -> None:
    busy = Refusal(429, headers=(("retry-after", "0"),))
    script: list[Step] = [
        busy,
        Refusal(503, headers=(("retry-after-ms", "1"),)),
        asks(submits("reviewer")),
    ]
    ran = run_scripted(store, example("reviewer"), "openai", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    pauses = [event.pause_ms for event in ran.events if isinstance(event, QuestionFailed)]
    assert pauses == [0, 1]
    check(store, ran)


def test_a_server_that_refuses_for_good_ends_the_leg(store: Store, tmp_path: Path) -> None:
    config = example("reviewer", tiers=2, model_retries=0)
    script: list[Step] = [
        Refusal(401, b'{"error": {"message": "no such key"}}'),
        asks(submits("reviewer")),
    ]
    ran = run_scripted(store, config, "anthropic", script, root=tmp_path)
    first = ran.run.legs[0].ended
    assert (first.outcome, first.escalated_to) == ("model_failed", "large")
    assert "401" in first.reason
    assert ran.run.outcome == "submitted"
    assert "the-key" not in repr(ran.run)
    check(store, ran)


def answer_of(document: object) -> Refusal:
    return Refusal(200, json.dumps(document).encode())


def gemini_answer(finish_reason: str, *parts: object) -> Refusal:
    content = {"role": "model", "parts": parts}
    return answer_of({"candidates": [{"content": content, "finishReason": finish_reason}]})


def anthropic_refusal() -> Refusal:
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "No."}]}
    return answer_of({"id": "m", "model": "m", **said, "stop_reason": "refusal"})


def test_a_failed_call_of_gemini_is_retried_with_its_reason(store: Store, tmp_path: Path) -> None:
    config = example("reviewer")
    script: list[Step] = [gemini_answer("MALFORMED_FUNCTION_CALL"), asks(submits("reviewer"))]
    ran = run_scripted(store, config, "gemini", script, root=tmp_path, stream=False)
    assert ran.run.outcome == "submitted"
    [failed] = [event for event in ran.events if isinstance(event, QuestionFailed)]
    assert failed.reason == "the model's server gave an error: MALFORMED_FUNCTION_CALL"


@pytest.mark.parametrize("block", ["SAFETY", "OTHER", "BRAND_NEW"])
def test_a_blocked_prompt_is_not_retried(store: Store, tmp_path: Path, block: str) -> None:
    blocked = answer_of({"promptFeedback": {"blockReason": block}})
    config = example("reviewer")
    ran = run_scripted(store, config, "gemini", [blocked], root=tmp_path, stream=False)
    [leg] = ran.run.legs
    assert leg.ended.outcome == "model_failed"
    assert leg.ended.reason == f"the model's server gave an error: {block}: the prompt was blocked"


@pytest.mark.parametrize(
    ("wire_format", "refusal", "reason"),
    [
        ("anthropic", anthropic_refusal(), ": refusal"),
        ("gemini", gemini_answer("SAFETY", {"text": "No"}), ": SAFETY"),
        ("gemini", gemini_answer("IMAGE_PROHIBITED_CONTENT"), ": IMAGE_PROHIBITED_CONTENT"),
        (
            "openai",
            answer_of({"choices": [{"message": {"role": "assistant", "refusal": "No."}}]}),
            "",
        ),
    ],
)
def test_a_model_that_refuses_is_not_reminded(
    store: Store, tmp_path: Path, wire_format: str, refusal: Refusal, reason: str
) -> None:
    config = example("reviewer")
    ran = run_scripted(store, config, wire_format, [refusal], root=tmp_path, stream=False)
    ended = ran.run.legs[0].ended
    assert (ended.outcome, ended.reminder_count) == ("result_not_submitted", 0)
    said = f"Agent did not call submit_result tool: the model refused to answer{reason}"
    assert ended.reason == said


def test_a_refusal_without_a_schema_is_no_answer(store: Store, tmp_path: Path) -> None:
    config, script = free_text(example("reviewer")), [anthropic_refusal()]
    ran = run_scripted(store, config, "anthropic", script, root=tmp_path, stream=False)
    ended = ran.run.legs[0].ended
    assert (ended.outcome, ended.limit) == ("model_failed", None)
    assert ended.reason == "the model refused to answer: refusal"


def test_a_model_that_hangs_is_left_when_the_time_is_over(store: Store, tmp_path: Path) -> None:
    config = example("reviewer", max_time_ms=4_000)
    hangs = Delivery(asks(submits("reviewer")), "hangs")
    ran = run_scripted(store, config, "ollama", [hangs], root=tmp_path)
    ended = ran.run.legs[0].ended
    assert (ended.outcome, ended.limit) == ("result_not_submitted", "time")
    assert ran.provider.left.is_set()
    check(store, ran)


def test_steps_and_tokens_are_bounded(store: Store, tmp_path: Path) -> None:
    reads = asks(Call("fs_read", {"path": "a.py"}, "c1"))
    ran = run_scripted(
        store, example("reviewer", max_steps=2), "openai", [reads, reads], root=tmp_path
    )
    ended = ran.run.legs[0].ended
    assert (ended.outcome, ended.limit, ended.step_count) == ("result_not_submitted", "steps", 2)
    assert ran.provider.refused == []
    few = example("reviewer", max_tokens=30)
    ran = run_scripted(store, few, "openai", [reads, reads], root=tmp_path)
    ended = ran.run.legs[0].ended
    # 15 tokens an answer: the bound is met after the second.
    assert (ended.limit, ended.step_count, ended.input_tokens) == ("tokens", 2, 20)


@in_each_format
def test_without_a_schema_the_text_is_the_answer(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    config = free_text(example("reviewer"))
    script = [asks(Call("fs_read", {"path": "a.py"}, "c1")), says(PROSE)]
    ran = run_scripted(store, config, wire_format, script, root=tmp_path)
    assert (ran.run.outcome, ran.run.result) == ("answered", PROSE)
    assert "submit_result" not in json.dumps(ran.bodies)
    assert ran.run.legs[0].started.schema_digest is None
    check(store, ran)


def test_a_text_that_was_cut_off_is_no_answer(store: Store, tmp_path: Path) -> None:
    config = free_text(example("reviewer"))
    script = [says("It is", is_cut=True)]
    ran = run_scripted(store, config, "openai-responses", script, root=tmp_path)
    assert (ran.run.outcome, ran.run.legs[0].ended.limit) == ("limit_reached", "tokens")
    check(store, ran)


@in_each_format
def test_a_run_can_be_told_to_any_provider_afterwards(
    store: Store, tmp_path: Path, wire_format: str
) -> None:
    bad = Call("submit_result", BAD["reviewer"][0], "c1")
    script = [says("So.", Call("fs_read", {"path": "a.py"}, "c0")), asks(bad)]
    script += [asks(submits("reviewer"))]
    ran = run_scripted(store, example("reviewer"), wire_format, script, root=tmp_path)
    transcript = load_transcript(store.reader, str(ran.run.run_id))
    export = export_transcript(transcript, wire_format)
    told = canonical_json.encode_text(export.request)
    assert "agent reviewer begins" not in told
    assert "accepted at attempt" not in told
    # All that the model was shown before its last answer, and that answer, is in there.
    items = next(value for value in export.request.values() if isinstance(value, list))
    asked = next(
        ran.bodies[-1][name] for name in ("messages", "input", "contents") if name in ran.bodies[-1]
    )
    assert len(items) > len(asked)
    dropped = [change.kind for change in export.report if change.kind == "block_dropped"]
    assert dropped == []


def test_the_record_says_how_it_was(store: Store, tmp_path: Path) -> None:
    """Counted by hand: two runs, one of which needs both tiers."""
    config = example("reviewer", tiers=2, max_reminders=0)
    bad = Call("submit_result", {"summary": "x", "issues": [{"severity": "minor"}]}, "c1")
    run_scripted(store, config, "ollama", [asks(submits("reviewer"))], root=tmp_path)
    script = [says(PROSE), asks(bad), asks(submits("reviewer"))]
    run_scripted(store, config, "ollama", script, root=tmp_path)
    whole, small, large = agent_statistics(store.reader, now=datetime.now(UTC))
    assert (whole.count, whole.success_count, whole.first_try_count) == (2, 2, 1)
    assert (whole.attempt_count, whole.rejected_count, whole.missing_count) == (3, 1, 1)
    assert whole.errors == {"approved": 1, "issues[].description": 1}
    assert whole.escalations == {("small", "large", "result_not_submitted"): 1}
    assert (small.tier, small.count, small.success_count, small.missing_count) == ("small", 2, 1, 1)
    assert (large.tier, large.count, large.success_count, large.first_try_count) == (
        "large",
        1,
        1,
        0,
    )
