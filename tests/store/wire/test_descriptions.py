"""A block that a format cannot carry is described on one line, by what it is."""

import base64
from hashlib import sha256

from hypothesis import given
from tests.support.cases import each_case
from tests.support.nasty_messages import blocks

from tooltrail.records import (
    CallBlock,
    MediaBlock,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._descriptions import describe_block

PIXEL = b"\x89PNG pixel"
DATA = base64.b64encode(PIXEL).decode()
DIGEST = sha256(PIXEL).hexdigest()


@each_case(
    ("block", "description"),
    [
        (
            MediaBlock(kind="image", media_type="image/bmp", data=DATA),
            f"[image image/bmp, 10 bytes, sha256:{DIGEST}]",
        ),
        (
            MediaBlock(kind="audio", uri="https://example.org/a.ogg"),
            "[audio of unknown type, https://example.org/a.ogg]",
        ),
        (MediaBlock(kind="document", name="a.pdf"), "[document of unknown type, a.pdf]"),
        (MediaBlock(kind="document"), "[document of unknown type, not recorded]"),
        (MediaBlock(kind="image", data="%%"), "[image of unknown type, damaged base64]"),
        (MediaBlock(kind="image", data="\u00e9"), "[image of unknown type, damaged base64]"),
        (ResourceBlock(uri="file:///a", text="\u00e9t\u00e9"), "[resource file:///a, 5 bytes]"),
        (
            ResourceBlock(uri="file:///a", media_type="text/csv", data=DATA),
            f"[resource text/csv, 10 bytes, sha256:{DIGEST}]",
        ),
        (ResourceBlock(uri="file:///a"), "[link of unknown type, file:///a]"),
        (ProviderBlock(native={"type": "web_search"}), "[provider's web_search]"),
        (ProviderBlock(native=7), "[provider's block]"),
        (ReasoningBlock(text="x" * 1234), "[reasoning, 1,234 characters]"),
        (TextBlock(text="hello"), "[text]"),
        (CallBlock(call=ToolCall(tool_name="now")), "[tool_call]"),
        (MediaBlock(kind="image", uri="a\n b\tc"), "[image of unknown type, a b c]"),
    ],
)
def test_a_block_is_told_by_kind_size_and_digest(block: MessageBlock, description: str) -> None:
    assert describe_block(block) == description


@given(blocks)
def test_any_description_is_one_short_line_that_can_be_sent(block: MessageBlock) -> None:
    described = describe_block(block)
    assert described.startswith("[")
    assert described.endswith("]")
    assert len(described.splitlines()) == 1
    assert not set(described) & {"\0", "\x1b"}
    described.encode()


def test_long_names_are_cut() -> None:
    long = "x" * 10_000
    for block in (
        MediaBlock(kind="image", media_type=long, uri=long),
        ResourceBlock(uri=long, text=""),
        ProviderBlock(native={"type": long}),
    ):
        assert len(describe_block(block)) < 450
