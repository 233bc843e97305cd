"""Models over HTTP, asked as a program asks them."""

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.support.agents.scenarios import example, free_text
from tests.support.agents.scripted_provider import (
    FORMATS,
    Delivery,
    Refusal,
    ScriptedProvider,
    Step,
    scripted_provider,
)
from tests.support.agents.spelled_answers import Call, asks, says

from tooltrail.agents import ChatModel, HttpModel, ModelError, run_agent
from tooltrail.agents.http_models import _KeyRemover, retry_after_ms
from tooltrail.records import Conversation, InvalidRecordError, Message, NotFoundError
from tooltrail.store import Store
from tooltrail.wire import read_stream, wire_format

CONFIG = free_text(example("tester")).model_copy(update={"tools": ()})
QUESTION = Conversation.of([Message.of("user", "What is 1 + 2?")])


def model(provider: ScriptedProvider, name: str, **options: Any) -> HttpModel:
    return HttpModel.of(name, "the-model", base_url=provider.base_url(name), **options)


async def answered(asked: HttpModel) -> list[bytes]:
    known = wire_format(asked.wire_format)
    members = known.write_history(QUESTION, _policy()).request
    return [piece async for piece in asked.answer({**members, **asked.answer_limit(99)})]


def _policy() -> Any:
    from tooltrail.wire import ExportPolicy

    return ExportPolicy()


def failure(asked: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as failed:
        asyncio.run(answered(asked))
    return failed.value


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_is_what_the_server_sent(name: str, *, stream: bool) -> None:
    turn = says("It is 3.", Call("add", {"a": 1}, "c1"))
    with scripted_provider([turn]) as provider:
        asked = model(provider, name, api_key="the-key", stream=stream)
        assert isinstance(asked, ChatModel)
        data = b"".join(asyncio.run(answered(asked)))
        response = read_stream(wire_format(name), [data])
        assert provider.refused == []
        path, headers, body = provider.requests[0]
    assert response.message.text == "It is 3."
    assert [call.tool_name for call in response.calls] == ["add"]
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 5)
    assert "the-key" in " ".join(headers.values())
    assert "the-key" not in json.dumps(body) + path + repr(asked)
    assert "the-model" in json.dumps(body) + path
    assert "99" in json.dumps(body)


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("openai", "authorization", "Bearer the-key"),
        ("openai-responses", "authorization", "Bearer the-key"),
        ("anthropic", "x-api-key", "the-key"),
        ("gemini", "x-goog-api-key", "the-key"),
        ("ollama", "authorization", "Bearer the-key"),
    ],
)
def test_the_key_goes_where_the_provider_looks_for_it(
    name: str, header: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "the-key")
    with scripted_provider([says("a"), says("b")]) as provider:
        asyncio.run(answered(model(provider, name, api_key_env="OWN_KEY")))
        for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY"):
            monkeypatch.setenv(variable, "the-usual-key")
        # Nobody named that one for this server.
        asyncio.run(answered(model(provider, name)))
        assert [headers.get(header) for _, headers, _ in provider.requests] == [value, None]
        assert "the-usual-key" not in str(provider.requests)
    assert "the-usual-key" not in repr(HttpModel.of(name, "m"))
    assert HttpModel.of(name, "m") == HttpModel.of(name, "m", api_key="the-usual-key\r\n")


def test_a_server_without_a_key_is_asked_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with scripted_provider([says("a")]) as provider:
        asyncio.run(answered(model(provider, "openai")))
        assert "authorization" not in provider.requests[0][1]


def test_what_cannot_be_asked_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(NotFoundError, match="unknown model format 'mcp'"):
        HttpModel.of("mcp", "m")
    for url in ("127.0.0.1:11434", "http://127.0.0.1:99999", "http://", "ftp://a", "http://[a"):
        with pytest.raises(InvalidRecordError, match="is not a URL"):
            HttpModel.of("openai", "m", base_url=url)
    for key in ("a\rb", "\u00e4", "   ", "a\0"):
        with pytest.raises(
            InvalidRecordError, match="characters that a header cannot carry"
        ) as refused:
            HttpModel.of("openai", "m", api_key=key)
        assert key not in str(refused.value)
    with pytest.raises(InvalidRecordError, match="NO_SUCH_KEY"):
        HttpModel.of("openai", "m", api_key_env="NO_SUCH_KEY")
    assert HttpModel.of("anthropic", "m").base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(
    ("refusal", "is_transient", "retry_after_ms", "said"),
    [
        (Refusal(429, headers=(("retry-after", "2"),)), True, 2000, "429 Too Many Requests"),
        (Refusal(529, headers=(("retry-after-ms", "15"),)), True, 15, "529"),
        (Refusal(500), True, None, "500 Internal Server Error: try again"),
        (Refusal(408), True, None, "408"),
        (Refusal(400), False, None, "400 Bad Request: try again"),
        (Refusal(401, b"", "text/plain"), False, None, "the server answers 401 Unauthorized"),
        (Refusal(302, b"", headers=(("location", "http://127.0.0.1:1/"),)), False, None, "302"),
        (Refusal(503, b"<html>" + b"x" * 99_999, "text/html"), True, None, "<html>xxx"),
        (Refusal(200, b"<html>hello</html>", "text/html"), False, None, "sent text/html"),
    ],
)
def test_a_refusal_says_why_and_whether_to_try_again(
    refusal: Refusal, is_transient: bool, retry_after_ms: int | None, said: str
) -> None:
    script: list[Step] = [refusal]
    with scripted_provider(script) as provider:
        error = failure(model(provider, "openai", api_key="the-key"))
    assert (error.is_transient, error.retry_after_ms) == (is_transient, retry_after_ms)
    assert said in str(error)
    assert len(str(error)) < 700
    assert error.status == (None if refusal.status == 200 else refusal.status)
    assert "the-key" not in str(error)


@pytest.mark.parametrize("name", FORMATS)
def test_each_provider_s_own_words_for_an_error_are_told(name: str) -> None:
    bodies: dict[str, Any] = {
        "openai": {"error": {"message": "no credit", "type": "insufficient_quota"}},
        "openai-responses": {"error": {"message": "no credit", "type": "insufficient_quota"}},
        "anthropic": {"type": "error", "error": {"type": "x", "message": "no credit"}},
        "gemini": {"error": {"code": 429, "message": "no credit", "status": "RESOURCE_EXHAUSTED"}},
        "ollama": {"error": "no credit"},
    }
    with scripted_provider([Refusal(429, json.dumps(bodies[name]).encode())]) as provider:
        error = failure(model(provider, name, api_key="k"))
    assert str(error) == "the server answers 429 Too Many Requests: no credit"


def test_a_key_that_a_server_repeats_is_not_told() -> None:
    body = b'{"error": {"message": "the key the-key is no key"}}'
    with scripted_provider([Refusal(401, body)]) as provider:
        error = failure(model(provider, "openai", api_key="the-key"))
    assert str(error) == "the server answers 401 Unauthorized: the key (the key) is no key"


@pytest.mark.parametrize("spelled", [b"a/+b", rb"a\/+b", rb"a\u002F\u002bb"])
def test_a_key_that_a_server_repeats_in_escapes_is_not_told(spelled: bytes) -> None:
    for body in (b'{"error": {"message": "no ' + spelled + b'!"}}', b"no " + spelled + b"!"):
        with scripted_provider([Refusal(401, body)]) as provider:
            error = failure(model(provider, "openai", api_key="a/+b"))
        assert str(error) == "the server answers 401 Unauthorized: no (the key)!"


@pytest.mark.parametrize("spelled", ["sk-a/b+c", r"sk-a\/b+c", r"\u0073k-a\u002fb\u002Bc"])
def test_a_key_in_an_answer_is_not_recorded(spelled: str) -> None:
    told = b'{"a": "s", "b": "sk-a/ ' + spelled.encode() + b' sk-", "c": "sk-a/b+"}'
    for size in range(1, len(told) + 1):
        remover = _KeyRemover("sk-a/b+c")
        pieces = [told[at : at + size] for at in range(0, len(told), size)]
        data = b"".join([*map(remover.feed, pieces), remover.held])
        assert data == told.replace(spelled.encode(), b"(the key)")


@pytest.mark.parametrize("name", FORMATS)
def test_a_server_that_answers_with_the_key_is_recorded_without_it(store: Store, name: str) -> None:
    with scripted_provider([says("I know sk-a/b+c and sk-a.")]) as provider:
        asked = model(provider, name, api_key="sk-a/b+c", stream=False)
        run = asyncio.run(run_agent(CONFIG, "x", asked, {}, store))
    assert run.value == "I know (the key) and sk-a."
    _, messages, _ = store.reader.conversation(run.run_id, payloads=True)
    assert b"sk-a/b+c" not in (messages[-1].payload or b"")


def test_a_short_key_is_no_reason_to_change_an_answer() -> None:
    with scripted_provider([says("ollama is here")]) as provider:
        data = b"".join(asyncio.run(answered(model(provider, "ollama", api_key="ollama"))))
    assert b"ollama" in data


def test_an_answer_that_breaks_off_is_worth_another_try() -> None:
    with scripted_provider([Delivery(says("It is 3."), "dropped")]) as provider:
        error = failure(model(provider, "openai"))
    assert error.is_transient


def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    error = failure(HttpModel.of("openai", "m", base_url=url))
    assert error.is_transient
    assert error.status is None


def test_a_server_that_falls_silent_is_left() -> None:
    with scripted_provider([Delivery(says("It is 3."), "hangs")]) as provider:
        error = failure(model(provider, "openai", silence_timeout_ms=200))
        assert provider.left.wait(10)
    assert error.is_transient
    assert "ReadTimeout" in str(error)


def test_an_answer_that_is_not_wanted_any_more_frees_its_connection() -> None:
    async def leave(provider: ScriptedProvider) -> None:
        known = wire_format("ollama")
        members = known.write_history(QUESTION, _policy()).request
        pieces = model(provider, "ollama").answer(members)
        async for _ in pieces:
            break
        await pieces.aclose()  # type: ignore[attr-defined]

    with scripted_provider([Delivery(asks(Call("a", {})), "hangs")]) as provider:
        asyncio.run(leave(provider))
        assert provider.left.wait(10)


def test_how_long_to_wait_is_read_as_the_rfc_has_it() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90_000 < (retry_after_ms({"retry-after": soon}) or 0) <= 100_000
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert retry_after_ms({"retry-after": past}) == 0
    for odd in ("soon", "", "-1", "nan", "inf", "1e9"):
        assert retry_after_ms({"retry-after": odd}) is None
    assert retry_after_ms({}) is None
