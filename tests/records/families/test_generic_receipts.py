"""The receipts of the generic family where JSON repeats, was cut, or only looks like JSON.

A stream that its capture cut stands for every cut, since its notice has no marker in the middle.
"""

from tests.records.support import golden, lossy, surfaces, whole
from tests.support.cases import each_case
from tests.support.outputs import returned
from tests.support.policies import policy_with

from tooltrail.records import CompleteOutput, ContentItem, GenericOutput, StreamRecord

TWO_ITEMS = policy_with(generic={"preview_chars": 1000, "receipt_chars": 4000, "max_items": 2})


def cut_text(kept: bytes) -> CompleteOutput:
    """A tool whose text lost its last 50 bytes."""
    item = ContentItem(stream=lossy(kept, 50, "content.0"))
    return CompleteOutput.success("tool", GenericOutput(content=(item,)))


def only_structured(stream: StreamRecord) -> CompleteOutput:
    return CompleteOutput.success("tool", GenericOutput(structured=stream))


@each_case(
    ("name", "output"),
    [
        ("generic_said_in_text", returned("tool", '{"rows":2}', structured={"rows": 2})),
        ("generic_said_in_text", returned("tool", '{\n "rows" : 2 }\n', structured={"rows": 2})),
        ("generic_said_in_text", returned("tool", structured={"rows": 2})),
        ("generic_said_otherwise", returned("tool", '{"rows":3}', structured={"rows": 2})),
        ("generic_structured_cut", only_structured(lossy(b'{"rows":[1,2', 50, "structured"))),
        ("generic_structured_null", only_structured(whole(b"null", "structured"))),
        ("generic_json_cut_in_literal", cut_text(b'{"ok":[true,fal')),
        ("generic_json_cut_in_text", cut_text(b'{"name":"an unfinished \\u00')),
        ("generic_json_cut_between_documents", cut_text(b'{"line":1}\n{"line":2}\n')),
        ("generic_log_cut", cut_text(b"[12] footnotes, then prose\n")),
    ],
)
def test_the_receipt_is_worded_as_in_the_golden_file(name: str, output: CompleteOutput) -> None:
    _, receipt, _ = surfaces(output, "generic")
    assert receipt.text == golden(name)
    assert receipt.omissions == ()


def test_the_receipt_of_one_hidden_item_is_worded_as_in_the_golden_file() -> None:
    _, receipt, _ = surfaces(returned("tool", "one", "two", "three"), "generic", TWO_ITEMS)
    assert receipt.text == golden("generic_one_hidden")


def test_a_text_that_was_cut_does_not_stand_for_the_structured_value() -> None:
    item = ContentItem(stream=lossy(b'{"rows":2}', 50, "content.0"))
    value = whole(b'{"rows":2}', "structured")
    output = CompleteOutput.success("tool", GenericOutput(content=(item,), structured=value))
    _, receipt, _ = surfaces(output, "generic")
    assert receipt.text == golden("generic_said_in_cut_text")
