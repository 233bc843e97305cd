"""JSON in a receipt: laid out when it is whole, named when it is cut."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records.readable_json import indent_json, readable

json_texts = st.recursive(
    st.sampled_from(["null", "1e400", "1.0", "-0", "0.10", "1" * 5000, '"a\\"[{,:\\\\"', '""']),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: "[" + " , ".join(parts) + " ]")
        | st.lists(inner, max_size=4).map(
            lambda parts: "{" + ",".join(f'"k":\n{part}' for part in parts) + "}"
        )
    ),
    max_leaves=15,
)

MARK = "[output truncated: showing first 9 and last 2 characters; 0 lines, 9 bytes omitted]\n}}"


def test_json_is_laid_out_without_touching_a_lexeme() -> None:
    text = ' {"a":1e400 ,"a":[1.0,-0.0, {} ,[],""],"b":{"c":"x:\\"{,"}}'
    assert indent_json(text) == (
        '{\n  "a": 1e400,\n  "a": [\n    1.0,\n    -0.0,\n    {},\n    [],\n    ""\n  ],\n'
        '  "b": {\n    "c": "x:\\"{,"\n  }\n}\n'
    )


@given(json_texts)
def test_laid_out_json_has_the_lexemes_of_the_original(text: str) -> None:
    def lexemes(source: str) -> list[str]:
        found: list[str] = []

        def note(lexeme: str) -> str:
            found.append(lexeme)
            return lexeme

        json.loads(
            source,
            parse_float=note,
            parse_int=note,
            object_pairs_hook=lambda pairs: note(f"{len(pairs)} pairs"),
        )
        return found

    assert lexemes(indent_json(text)) == lexemes(text)
    assert "".join(indent_json(text).split()) == "".join(text.split())


@each_case(
    "text",
    [
        *("[INFO] server started\n", "[INFO", "[2026-04-23 10:00:00] server started\n"),
        *("[1/5] Building\n", "{ braces } in prose", "[]oops", '{"a":1}\n{"a":2}\n', '{"a":1,}'),
        *('"a string"', "42\n", "text", ""),
    ],
)
def test_what_is_no_json_document_is_shown_as_it_is(text: str) -> None:
    assert readable([(text, False)], 10_000) == [text]


@each_case(
    "text",
    [
        *("[INFO] server started\n", "[2026-04-23T10:00:00] server started\n"),
        *("[1/5] Building the documentation\n", '["quoted" words] in a log\n'),
        *("[12] footnotes, then prose\n", "[1]\n[INFO\n", "[1 2\n", '{"a" and "b"} are sets\n'),
        *("plain text\n", "{ braces } in prose\n", '"quoted" words in a log\n'),
    ],
)
def test_a_cut_log_is_not_called_json(text: str) -> None:
    cut = text + MARK
    assert readable([(cut, True)], 10_000) == [cut]


@each_case(
    "beginning",
    [
        *('{"a":1,"b":"an unfinished stri\n', "[1, 2, 3,\n", "[true, fal\n", '{\n  "a": {\n'),
        *('[[1,2],[3,4],"x"\n', '{"line":1}\n{"line":2}\n', "[[[[1,\n", '\ufeff\n{"a":1,\n'),
        '{"name":"caf\\xe9","rows":[1,\n',
    ],
)
def test_cut_json_stays_as_it_is_and_is_said_to_be_incomplete(beginning: str) -> None:
    cut = beginning + MARK
    for room in (0, 10_000):
        assert readable([(cut, True)], room) == [cut + "\n[the JSON above is incomplete]\n"]
        assert readable([(cut + "\n", True)], room) == [cut + "\n[the JSON above is incomplete]\n"]


def test_json_is_indented_only_into_the_room_that_all_texts_leave() -> None:
    compact = json.dumps(list(range(100)))
    indented = json.dumps(list(range(100)), indent=2) + "\n"
    growth = len(indented) - len(compact)
    texts = [(compact, False), ("x" * 50, False), (compact, False)]
    total = 2 * len(compact) + 50
    both = readable(texts, total + 2 * growth)
    assert both == [indented, "x" * 50, indented]
    assert readable(texts, total + 2 * growth - 1) == [indented, "x" * 50, compact]
    assert readable(texts, total + growth - 1) == [compact, "x" * 50, compact]
    assert readable(texts, 0) == [compact, "x" * 50, compact]


def test_json_nested_too_deep_for_the_parser_is_shown_as_it_is() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert readable([(text, False)], 10**9) == [text]


NESTED = '{"a":[{"b":[1,{"c":[2,3]}]},{"b":[]}],"d":{"e":null}}'
LEVELS = {
    3: '{\n  "a": [\n    {\n      "b": [1,{"c":[2,3]}]\n    },\n    {\n      "b": []\n    }\n  ],\n'
    '  "d": {\n    "e": null\n  }\n}\n',
    2: '{\n  "a": [\n    {"b":[1,{"c":[2,3]}]},\n    {"b":[]}\n  ],\n'
    '  "d": {\n    "e": null\n  }\n}\n',
    1: '{\n  "a": [{"b":[1,{"c":[2,3]}]},{"b":[]}],\n  "d": {"e":null}\n}\n',
    0: NESTED,
}
"""What is shown of it when so many of its outermost levels are broken into lines."""


def test_without_room_for_all_levels_the_outermost_are_broken_into_lines() -> None:
    whole = indent_json(NESTED)
    assert readable([(NESTED, False)], len(whole)) == [whole]
    assert readable([(NESTED, False)], len(whole) - 1) == [LEVELS[3]]
    for levels in (3, 2, 1):
        assert readable([(NESTED, False)], len(LEVELS[levels])) == [LEVELS[levels]]
        assert readable([(NESTED, False)], len(LEVELS[levels]) - 1) == [LEVELS[levels - 1]]


def test_json_in_lines_of_its_own_is_not_put_into_fewer() -> None:
    text = json.dumps(json.loads(NESTED), indent="\t")
    assert len(LEVELS[2]) < len(text) < len(indent_json(text))
    assert readable([(text, False)], len(text)) == [text]


@given(json_texts, st.integers(0, 2000))
def test_a_layout_changes_white_space_alone_and_keeps_to_its_room(text: str, room: int) -> None:
    (body,) = readable([(text, False)], room)
    assert len(body) <= max(room, len(text))
    assert "".join(body.split()) == "".join(text.split())


def test_deep_nesting_does_not_blow_a_layout_up() -> None:
    opened, closed = "[\n  [\n    [\n      ", "\n    ]\n  ]\n]\n"
    ones = ",".join(["1"] * 100_000)
    text = "[" * 900 + ones + "]" * 900
    assert readable([(text, False)], 256_000) == [opened + "[" * 897 + ones + "]" * 897 + closed]
