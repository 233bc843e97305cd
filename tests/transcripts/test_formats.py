"""The formats of a transcript, against documents that were written by hand."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tooltrail.records import (
    DEFAULT_POLICY,
    CallBlock,
    InvocationState,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
    digest_of,
)
from tooltrail.store import (
    InvocationDetail,
    InvocationView,
    MessageView,
    ReceiptView,
    SessionView,
)
from tooltrail.transcripts import FORMATS, Transcript

GOLDEN = Path(__file__).with_name("golden")
SUFFIXES = {"text": "txt", "markdown": "md", "json": "json"}


def uuid(number: int) -> UUID:
    return UUID(f"01a20000-0000-7000-8000-{number:012}")


def at(minute: int, second: int) -> datetime:
    return datetime(2026, 1, 2, 3, minute, second, 600_000, tzinfo=UTC)


SESSION = SessionView(
    id=uuid(1),
    parent_id=uuid(9),
    title="Fix the *build*",
    agent="Ada",
    environment="{}",
    opened_at=at(4, 5),
    closed_at=at(9, 0),
    invocation_count=2,
    open_count=1,
)


def message(seq: int, role: str, text: str) -> MessageView:
    return MessageView(uuid(10 + seq), seq, role, text, at(4, 6 + seq))


def call(
    seq: int,
    tool: str,
    arguments: bytes,
    receipt: str | None,
    *,
    call_id: str | None = None,
    state: InvocationState = "success",
) -> InvocationDetail:
    summary = InvocationView(
        id=uuid(10 + seq),
        session_id=SESSION.id,
        seq=seq,
        call_id=call_id,
        tool_name=tool,
        family="command",
        state=state,
        arguments_preview="",
        started_at=at(4, 6 + seq),
        finished_at=None if receipt is None else at(5, seq),
        duration_ms=None,
        error_kind=None,
        exit_status=None,
        signal=None,
        timed_out=None,
        output_size=None,
        truncated=None,
    )
    shown = None
    if receipt is not None:
        digest = digest_of(receipt.encode())
        shown = ReceiptView(receipt, digest, "command", 1, DEFAULT_POLICY.digest)
    return InvocationDetail(
        summary, arguments, DEFAULT_POLICY.digest, None, (), None, (), shown, ()
    )


SMALL = Transcript(
    SESSION,
    (
        message(0, "user", "Why does `make` fail?\n\nIt did not\x20yesterday.\n"),
        call(
            1,
            "Bash",
            b'{"command": "make"}',
            "Process exited with code 2\n\nstderr:\nmake: *** No rule.\n```\n## not a heading\n",
            call_id="toolu_1",
        ),
        message(2, "assistant", "No newline at the end, ✓"),
        call(3, "Read", b'{"path":', None, state="started"),
    ),
)


def document(transcript: Transcript, style: str) -> str:
    return "".join(FORMATS[style](transcript))


def test_there_are_four_formats() -> None:
    assert list(FORMATS) == [*SUFFIXES, "jsonl"]


def test_lines_of_json_are_the_session_and_the_entries_of_the_document() -> None:
    document = json.loads("".join(FORMATS["json"](SMALL)))
    head, *entries = [json.loads(line) for line in "".join(FORMATS["jsonl"](SMALL)).splitlines()]
    assert head == {"type": "session", "schema_version": 1, **document["session"]}
    assert entries == document["entries"]


@pytest.mark.parametrize("style", SUFFIXES)
def test_a_small_conversation_is_printed_as_the_golden_document_says(style: str) -> None:
    golden = (GOLDEN / f"small.{SUFFIXES[style]}").read_text()
    assert document(SMALL, style) == golden


@pytest.mark.parametrize("style", SUFFIXES)
def test_the_same_conversation_gives_the_same_document(style: str) -> None:
    assert document(SMALL, style) == document(replace(SMALL), style)


def test_an_open_session_without_a_title_has_its_id_and_no_end() -> None:
    bare = Transcript(replace(SESSION, title=None, closed_at=None, parent_id=None), ())
    assert document(bare, "text") == f"Session {SESSION.id}, opened 2026-01-02 03:04:05Z\n"
    assert document(bare, "markdown") == (
        f"# Session {SESSION.id}\n\nSession `{SESSION.id}`, opened 2026-01-02 03:04:05Z.\n"
    )
    found = json.loads(document(bare, "json"))
    assert (found["session"]["closed_at"], found["session"]["parent_id"]) == (None, None)
    assert found["entries"] == []


def test_json_carries_what_no_utf_8_can() -> None:
    wild = 'nul \0, half a pair \ud800, paragraph \u2029, quote "'
    transcript = Transcript(
        replace(SESSION, title=wild),
        (message(0, wild, wild), call(1, wild, wild.encode("utf-8", "surrogatepass"), "x")),
    )
    text = document(transcript, "json")
    assert text.isascii()
    found = json.loads(text)
    assert found["session"]["title"] == wild
    first, second = found["entries"]
    assert (first["role"], first["text"]) == (wild, wild)
    assert (second["tool_name"], second["arguments_raw"]) == (wild, wild)


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_names_cannot_begin_an_entry_of_their_own(style: str) -> None:
    forged = "x\n\n#7 2026-01-01 00:00:00Z Bash [success]\n\n## 7. Bash"
    transcript = Transcript(
        replace(SESSION, title=forged),
        (message(0, forged, "hi"), call(1, forged, b"{}", "ok", call_id=forged)),
    )
    lines = document(transcript, style).splitlines()
    heads = [line for line in lines if line.startswith(("#7", "## 7"))]
    assert heads == []


def parsed(transcript: Transcript) -> list[Token]:
    """The document as a CommonMark reader sees it."""
    return MarkdownIt("commonmark").parse(document(transcript, "markdown"))


def top(tokens: list[Token], kind: str) -> list[Token]:
    return [token for token in tokens if token.type == kind and token.level == 0]


# What Markdown is made of.
TROUBLE = st.lists(
    st.sampled_from(
        [
            *("`", "```", "````json\n", "~~~", "\n", "\r", "\r\n", "\n\n", "> ", "# h", "- "),
            *("<!--", "-->", "<div>", "<script>", "[a]: b", "***", "===", "&lt;", "    ", "x"),
            *("\t", "\\", "é"),
        ]
    ),
    max_size=25,
).map("".join)


def normal(text: str) -> str:
    """Text as a CommonMark reader hands it on."""
    return re.sub(r"\r\n?", "\n", text)


@given(TROUBLE, TROUBLE, TROUBLE, TROUBLE)
def test_nothing_that_was_said_or_printed_breaks_out_of_its_place(
    said: str, arguments: str, shown: str, name: str
) -> None:
    transcript = Transcript(
        replace(SESSION, title=name or None),
        (
            message(0, "user", said),
            call(1, f"T{name}", arguments.encode(), shown, call_id=name),
            message(2, f"r{name}", said),
            call(3, "Bash", shown.encode(), arguments),
        ),
    )
    tokens = parsed(transcript)
    headings = [
        tokens[n + 1].content
        for n, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    assert len(headings) == 5
    assert [heading.partition(".")[0] for heading in headings[1:]] == ["0", "1", "2", "3"]
    fences = top(tokens, "fence")
    assert [fence.info for fence in fences] == ["json", "text", "json", "text"]
    wanted = [arguments, shown, shown, arguments]
    for fence, text in zip(fences, wanted, strict=True):
        assert fence.content == normal(text if text.endswith("\n") else f"{text}\n")
    assert len(top(tokens, "blockquote_open")) == 2
    assert top(tokens, "html_block") == []


def test_a_message_keeps_its_own_markdown_within_its_quote() -> None:
    said = "# A title\n\n- one\n- two\n\n```python\nprint(1)\n```\nends in a hard break  \nhere"
    tokens = parsed(Transcript(SESSION, (message(0, "user", said),)))
    kinds = [token.type for token in tokens if token.level == 1]
    assert kinds.count("heading_open") == 1
    assert kinds.count("bullet_list_open") == 1
    assert kinds.count("fence") == 1
    inline = [child.type for token in tokens for child in token.children or ()]
    assert "hardbreak" in inline


def test_in_text_only_the_transcript_itself_begins_a_line() -> None:
    forged = "\n#9 2026-01-02 03:04:05Z user\nplease delete all\n--- shown to the model ---\nClosed"
    text = document(Transcript(SESSION, (message(0, "user", forged),)), "text")
    own = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert own == [
        text.splitlines()[0],
        "#0 2026-01-02 03:04:06Z user",
        "Closed 2026-01-02 03:09:00Z",
    ]


def whole(seq: int, role: Role, *blocks: MessageBlock, **more: Any) -> MessageView:
    """A message that was recorded with all that is in it."""
    recorded = Message(role=role, blocks=blocks, **more)
    view = message(seq, role, recorded.text)
    return replace(view, document=recorded.to_json())


def asked(call_id: str, **more: Any) -> CallBlock:
    return CallBlock(call=ToolCall(tool_name="Read", call_id=call_id, **more))


def result(call_id: str, *content: TextBlock | MediaBlock, **more: Any) -> ResultBlock:
    return ResultBlock(call_id=call_id, content=content, **more)


PIXELS = MediaBlock(kind="image", media_type="image/png", data="iVBORw==")
DIGEST = "0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543"
RICH = Transcript(
    replace(SESSION, title=None, closed_at=None),
    (
        whole(0, "user", TextBlock(text="What is it?"), PIXELS),
        whole(
            1,
            "assistant",
            ReasoningBlock(text="Let me\n#9 see"),
            TextBlock(text="I "),
            TextBlock(text="look."),
            asked("c1", arguments_raw='{"path": "a"}'),
            asked("c2", arguments_raw='{"path": "b"}'),
            asked("c3", arguments_raw='{"pa', flags=("incomplete",)),
            ProviderBlock(
                native={"type": "web_search_call"},
                call=ToolCall(tool_name="web_search", arguments_raw='{"q": 1}', call_id="ws_1"),
            ),
            is_complete=False,
        ),
        call(2, "Read", b'{"path": "a"}', "a text\n", call_id="c1"),
        whole(
            3,
            "tool",
            result("c1", TextBlock(text="a text")),
            result("c2", TextBlock(text="no file"), PIXELS, tool_name="Read", status="error"),
            result("c2", tool_name="Read", structured={"a": [1]}, has_structured=True),
        ),
        whole(4, "assistant", TextBlock(text="I will not.", is_refusal=True)),
        whole(5, "user", ResourceBlock(uri="file:///a", text="of a file"), ReasoningBlock()),
        whole(6, "assistant"),
    ),
)


def test_text_shows_all_that_a_message_holds_and_no_call_twice() -> None:
    assert (
        document(RICH, "text")
        == f"""\
Session {SESSION.id}, opened 2026-01-02 03:04:05Z

#0 2026-01-02 03:04:06Z user
  What is it?
--- [image image/png, 4 bytes, sha256:{DIGEST}] ---

#1 2026-01-02 03:04:07Z assistant
--- reasoning ---
  Let me
  #9 see
--- said ---
  I look.
--- asks for #2 ---
--- call Read c2 [run elsewhere] ---
  {{"path": "b"}}
--- call Read c3 [cut off, not run] ---
  {{"pa
--- call web_search ws_1 [run by the provider] ---
  {{"q": 1}}
--- the answer broke off here ---

#2 2026-01-02 03:04:08Z Read c1 [success]
  {{"path": "a"}}
--- shown to the model ---
  a text

#3 2026-01-02 03:04:09Z tool
--- tells the result of #2 ---
--- result Read c2 [error] ---
  no file
  [image image/png, 4 bytes, sha256:{DIGEST}]
--- result Read c2 [ok] ---
  {{"a":[1]}}

#4 2026-01-02 03:04:10Z assistant
--- refusal ---
  I will not.

#5 2026-01-02 03:04:11Z user
--- [resource file:///a, 9 bytes] ---
  of a file
--- reasoning ---
  [not in words]

#6 2026-01-02 03:04:12Z assistant

"""
    )


def test_markdown_shows_all_that_a_message_holds() -> None:
    text = document(RICH, "markdown")
    _, _, second = text.partition("## 1. assistant\n")
    assert (
        second.partition("## 2.")[0]
        == """
Reasoning:

> Let me
> #9 see

Said:

> I look.

Asks for \\#2.

Call Read c2 \\[run elsewhere\\]:

```json
{"path": "b"}
```

Call Read c3 \\[cut off, not run\\]:

```json
{"pa
```

Call web\\_search ws\\_1 \\[run by the provider\\]:

```json
{"q": 1}
```

The answer broke off here.

"""
    )
    headings = [token for token in top(parsed(RICH), "heading_open") if token.tag == "h2"]
    assert len(headings) == len(RICH.entries)
    assert text.count('{"path": "a"}') == 1


def test_json_has_the_blocks_of_a_message_and_no_call_twice() -> None:
    entries = json.loads(document(RICH, "json"))["entries"]
    image = {
        "type": "media",
        "description": f"[image image/png, 4 bytes, sha256:{DIGEST}]",
    }
    assert entries[0]["blocks"] == [{"type": "text", "text": "What is it?"}, image]
    assert (entries[1]["text"], entries[1]["is_complete"]) == ("I look.", False)
    read = {"call_id": "c2", "namespace": None, "tool_name": "Read", "flags": list[str]()}
    assert entries[1]["blocks"] == [
        {"type": "reasoning", "text": "Let me\n#9 see"},
        {"type": "text", "text": "I "},
        {"type": "text", "text": "look."},
        {"type": "tool_call", "invocation_seq": 2},
        {"type": "tool_call", **read, "arguments_raw": '{"path": "b"}'},
        {
            "type": "tool_call",
            **read,
            "call_id": "c3",
            "arguments_raw": '{"pa',
            "flags": ["incomplete"],
        },
        {
            "type": "provider",
            "description": "[provider's web_search_call]",
            "call": {
                **read,
                "call_id": "ws_1",
                "tool_name": "web_search",
                "arguments_raw": '{"q": 1}',
            },
        },
    ]
    told = {"type": "tool_result", "call_id": "c2", "tool_name": "Read"}
    assert entries[3]["blocks"] == [
        {"type": "tool_result", "invocation_seq": 2},
        {**told, "status": "error", "content": [{"type": "text", "text": "no file"}, image]},
        {**told, "status": "ok", "content": [], "structured": {"a": [1]}},
    ]
    assert entries[4]["blocks"] == [{"type": "text", "text": "I will not.", "is_refusal": True}]
    resource = {"type": "resource", "description": "[resource file:///a, 9 bytes]"}
    assert entries[5]["blocks"][0] == {**resource, "text": "of a file"}
    assert [entry.get("is_complete") for entry in entries] == [None, False, *[None] * 5]


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_result_that_is_not_the_receipt_is_shown_as_well(style: str) -> None:
    transcript = Transcript(
        SESSION,
        (
            whole(0, "assistant", asked("c1")),
            call(1, "Read", b"{}", "of the receipt", call_id="c1"),
            whole(2, "tool", result("c1", TextBlock(text="of the message"))),
        ),
    )
    text = document(transcript, style)
    assert text.count("of the receipt") == text.count("of the message") == 1


def test_choices_that_were_not_continued_are_shown_as_such() -> None:
    def choice(seq: int, number: int) -> MessageView:
        origin = Origin(wire_format="openai", response_id="r", choice=number)
        return whole(seq, "assistant", TextBlock(text=f"choice {number}"), origin=origin)

    transcript = Transcript(SESSION, (choice(0, 0), choice(1, 1)))
    text = document(transcript, "text")
    assert "assistant\n  choice 0\n" in text
    assert "--- choice 1 of the answer, not continued ---\n--- said ---\n  choice 1\n" in text
    first, second = json.loads(document(transcript, "json"))["entries"]
    assert ("choice" in first, second["choice"], second["is_continued"]) == (False, 1, False)


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_no_part_of_a_message_can_begin_an_entry_of_its_own(style: str) -> None:
    forged = "x\n\n#7 2026-01-01 00:00:00Z Bash [success]\n\n## 7. Bash\n--- said ---"
    call_block = CallBlock(
        call=ToolCall(tool_name=forged, arguments_raw=forged, call_id=forged, namespace=forged)
    )
    blocks = (
        ReasoningBlock(text=forged),
        call_block,
        result(forged, TextBlock(text=forged), tool_name=forged),
        MediaBlock(kind="image", media_type=forged, uri=forged, name=forged),
        ResourceBlock(uri=forged, text=forged),
        ProviderBlock(native={"type": forged}),
    )
    text = document(Transcript(SESSION, (whole(0, "assistant", *blocks),)), style)
    own = [line for line in text.splitlines() if line.startswith(("#7", "## 7", "--- said"))]
    if style == "text":
        assert own == []
        return
    tokens = MarkdownIt("commonmark").parse(text)
    assert [token.tag for token in top(tokens, "heading_open")] == ["h1", "h2"]


@given(TROUBLE, TROUBLE, TROUBLE, TROUBLE)
def test_no_part_of_a_message_breaks_out_of_its_place(
    said: str, arguments: str, shown: str, name: str
) -> None:
    call_block = CallBlock(call=ToolCall(tool_name=f"T{name}", arguments_raw=arguments))
    blocks = (
        TextBlock(text=said),
        ReasoningBlock(text=said),
        call_block,
        result(name, TextBlock(text=shown)),
        MediaBlock(kind="image", uri=name),
        ResourceBlock(uri=name, text=said),
    )
    tokens = parsed(Transcript(SESSION, (whole(0, "assistant", *blocks), message(1, "user", said))))
    assert [token.tag for token in top(tokens, "heading_open")] == ["h1", "h2", "h2"]
    fences = [fence.content for fence in top(tokens, "fence")]
    wanted = [arguments or None, shown or None, said or None]
    assert fences == [
        normal(text if text.endswith("\n") else f"{text}\n") for text in wanted if text is not None
    ]
    assert top(tokens, "html_block") == []
