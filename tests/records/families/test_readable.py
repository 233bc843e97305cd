"""JSON in a receipt: laid out when it is whole, named when it is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import MemoryPublisher, lossy, whole

from tooltrail.records import DEFAULT_POLICY, Cutter
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


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] server started\n",
        "[INFO",
        "[2026-04-23 10:00:00] server started\n",
        "[1/5] Building\n",
        "{ braces } in prose",
        "[]oops",
        '{"a":1}\n{"a":2}\n',
        '{"a":1,}',
        '"a string"',
        "42\n",
        "text",
        "",
    ],
)
def test_what_is_no_json_document_is_shown_as_it_is(text: str) -> None:
    assert readable([(text, False)], 10_000) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] server started\n",
        "[2026-04-23T10:00:00] server started\n",
        "[1/5] Building the documentation\n",
        '["quoted" words] in a log\n',
        "[12] footnotes, then prose\n",
        "[1]\n[2] Done\n",
        "[1]\n[2]\nDone\n",
        "[1]\n[INFO\n",
        '["a" add\n',
        "[1 2\n",
        '{"a" and "b"} are sets\n',
        "plain text\n",
        "{ braces } in prose\n",
        '"quoted" words in a log\n',
        '"a quote that goes\non\n',
        '"name"\n"value\n',
        "\ufeffplain text\n",
        "\x1b[31mred text\x1b[0m\n",
        "\x1b[31m[INFO]\x1b[0m started\n",
        "\x1b[K\x1b(B[INFO] started\n",
        "{\\xe9\n",
        '["caf\\xe9" au lait\n',
        '"Call me Ishmael. Some years ago, never mind how long\n',
        '"caf\\xe9, and then\n',
        '"\u6211\u662f\u8c01\u3002\u6211\n',
        '  "Call me Ishmael. Some years ago\n',
    ],
)
def test_a_cut_log_is_not_called_json(text: str) -> None:
    cut = text + "[output truncated: showing first 1 and last 1 lines; …]\nthe end\n"
    assert readable([(cut, True)], 10_000) == [cut]


@pytest.mark.parametrize(
    "beginning",
    [
        '{"a":1,"b":"an unfinished stri\n',
        '{"a":1,"b":"an unfinished escape \\u00\n',
        "[1, 2, 3,\n",
        "[true, fal\n",
        "[1.\n",
        "[1.5e+\n",
        "[-\n",
        '{"high": "\\ud83d\\ude0\n',
        '{"a":1}\n{\n',
        "[null\n",
        '{\n  "a": {\n',
        '[[1,2],[3,4],"x"\n',
        '{"complete": true}\n',
        '{"line":1}\n{"line":2}\n',
        "[" + "1" * 5000 + "\n",
        "[" * 2000 + "\n",
        '"an unfinished string\n',
        '"an unfinished \\" escape \\u00\n',
        '"a quote \\\n',
        '\ufeff{"a":1,\n',
        '\ufeff"an unfinished string\n',
        '\x1b[1;39m{\x1b[0m\x1b[34;1m"a"\x1b[0m\x1b[1;39m:\x1b[0m\x1b[0;39m1\x1b[0m\n',
        '\ufeff\x1b[32m["a", "b\n',
        '\n"an unfinished string\n',
        ' \t"an unfinished string\n',
        '\ufeff\n"an unfinished string\n',
        '\ufeff\n{"a":1,\n',
        '"Call me Ishmael.\\nSome years ago, never mind how long\n',
        '\x1b[m\x1b[K{"a":\x1b[01;31m\x1b[K1\x1b[m\x1b[K,\n',
        '{"a":"\x1b(B\x1b[mb\n',
        '{"a":\x1b]8;;http://a/\x1b\\1\x1b]8;;\x07,\n',
        '{"name":"caf\\xe9","path":"C:\\\\xe9","rows":[1,\n',
        '{"name":"caf\\xe9\n',
    ],
)
def test_cut_json_is_said_to_be_incomplete_even_when_there_is_no_room(beginning: str) -> None:
    cut = beginning + "[output truncated: showing first 1 and last 1 lines; …]\n}}"
    assert readable([(cut, True)], 0) == [cut + "\n[the JSON above is incomplete]\n"]
    assert readable([(cut + "\n", True)], 0) == [cut + "\n[the JSON above is incomplete]\n"]


def test_a_string_that_ends_behind_the_notice_is_json_whatever_it_says() -> None:
    beginning = '"Call me Ishmael. Some years ago'
    notice = "\n[output truncated: showing first 32 and last 9 characters; …]\n"
    for ending in ('the end."', '\\n\\"end."\n', '"'):
        (body,) = readable([(beginning + notice + ending, True)], 0)
        assert body.endswith("\n[the JSON above is incomplete]\n")
    for ending in ("the end.", 'an "inner" quote"', 'said.\n"', 'the end." he said', ""):
        cut = beginning + notice + ending
        assert readable([(cut, True)], 0) == [cut]


@pytest.mark.parametrize(
    "kept",
    [
        b'\x1b[1m{\x1b[0m"a":\x1b[3',
        b'{"a":\x1b',
        b'{"a":\x1b[',
        b'{"a":1,\x1b(',
        b'{"a":\x1b]8;;http://a',
        b'{"a":1\x1b]8;;http://a\x1b',
        b'{"name":"caf\xe9","rows":[1,',
    ],
)
def test_json_that_the_capture_cut_inside_of_a_sequence_is_said_to_be_incomplete(
    kept: bytes,
) -> None:
    shown = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher()).stream(lossy(kept, 900), 1000)
    (body,) = readable([(shown.text or "", True)], 0)
    assert body.endswith("the spool is full]\n[the JSON above is incomplete]\n")


def test_cut_json_that_is_not_utf_8_is_said_to_be_incomplete_and_laid_out() -> None:
    stream = whole(b'{"name":"caf\xe9","rows":[' + b"1," * 30_000)
    shown = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher()).stream(stream, 1000)
    (body,) = readable([(shown.text or "", True)], 10_000)
    assert body.startswith('{\n  "name": "caf\\xe9",\n  "rows": [\n    1,\n')
    assert body.endswith("\n[the JSON above is incomplete]\n")


def test_json_of_which_the_capture_lost_the_end_is_said_to_be_incomplete() -> None:
    stream = lossy(b'{"rows": [1, 2, 3', 100)
    shown = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher()).stream(stream, 1000)
    (body,) = readable([(shown.text or "", True)], 1000)
    assert body.endswith("the spool is full]\n[the JSON above is incomplete]\n")


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


def test_json_behind_a_byte_order_mark_is_laid_out_and_keeps_the_mark() -> None:
    laid_out = '\ufeff{\n  "a": 1\n}\n'
    assert readable([('\ufeff{"a":1}', False)], len(laid_out)) == [laid_out]
    assert readable([('\ufeff{"a":1}', False)], len(laid_out) - 1) == ['\ufeff{"a":1}']
    shown = '\ufeff{\n  "a": 1,\n' + MARK
    cut = '\ufeff{"a":1,\n' + MARK
    assert readable([(cut, True)], len(shown)) == [shown + INCOMPLETE]
    assert readable([(cut, True)], len(shown) - 1) == [cut + INCOMPLETE]


def test_json_in_color_is_not_laid_out_anew() -> None:
    text = '\x1b[34m{"a":\x1b[0m1}\n'
    assert readable([(text, False)], 1000) == [text]
    for cut in (text + MARK, "[\x1b[34m[1,\n" + MARK):
        assert readable([(cut, True)], 1000) == [cut + INCOMPLETE]


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


MARK = "[output truncated: showing first 9 and last 2 characters; 0 lines, 9 bytes omitted]\n}}"
INCOMPLETE = "\n[the JSON above is incomplete]\n"


@pytest.mark.parametrize(
    ("beginning", "laid_out"),
    [
        ('{"a":[1,{"b" :2},', '{\n  "a": [\n    1,\n    {\n      "b": 2\n    },'),
        ('{"a":1,"b":"x  [,: ', '{\n  "a": 1,\n  "b": "x  [,: '),
        ('{"a":"\\"', '{\n  "a": "\\"'),
        ('{"a":"x\\', '{\n  "a": "x\\'),
        ("[1,\n2,\n", "[\n  1,\n  2,"),
        ("[true,fal", "[\n  true,\n  fal"),
        ('{"a":[]}', '{\n  "a": []\n}'),
        ("[" + "1" * 5000 + ",2", "[\n  " + "1" * 5000 + ",\n  2"),
    ],
)
def test_the_beginning_of_cut_json_is_laid_out_when_there_is_room(
    beginning: str, laid_out: str
) -> None:
    rest = "" if beginning.endswith("\n") else "\n"
    cut, shown = beginning + rest + MARK, laid_out + "\n" + MARK
    assert readable([(cut, True)], len(shown)) == [shown + INCOMPLETE]


def test_the_beginning_of_cut_json_is_laid_out_within_its_room() -> None:
    beginning = NESTED[:-1]
    cut = f"{beginning}\n{MARK}"
    for levels in (3, 2, 1):
        # A whole document ends with a brace and two newlines more.
        shown = f"{LEVELS[levels][:-3]}\n{MARK}"
        less = f"{LEVELS[levels - 1][:-3]}\n{MARK}" if levels > 1 else cut
        assert readable([(cut, True)], len(shown)) == [shown + INCOMPLETE]
        assert readable([(cut, True)], len(shown) - 1) == [less + INCOMPLETE]


@pytest.mark.parametrize("beginning", ['{"line":1}\n{"line":2}\n', "[" + "1" * 5000 + " 2 3,\n"])
def test_the_beginning_of_what_is_no_one_document_is_not_laid_out(beginning: str) -> None:
    cut = beginning + MARK
    assert readable([(cut, True)], 4000 + len(cut)) == [cut + INCOMPLETE]


def test_a_string_that_speaks_of_a_cut_is_no_cut() -> None:
    beginning = '{"log":"see [output truncated: all]","a":1,'
    (body,) = readable([(f"{beginning}\n{MARK}", True)], 10_000)
    assert body.startswith('{\n  "log": "see [output truncated: all]",\n  "a": 1,\n[output')


@given(json_texts, st.integers(0, 400), st.integers(0, 2000))
def test_a_layout_changes_white_space_alone_and_keeps_to_its_room(
    text: str, cut: int, room: int
) -> None:
    beginning = text[:cut]
    texts = [(text, False), (f"{beginning}\n{MARK}", True)]
    bodies = readable(texts, room)
    total = sum(len(body.removesuffix(INCOMPLETE)) for body in bodies)
    assert total <= max(room, sum(len(source) for source, _ in texts))
    assert "".join(bodies[0].split()) == "".join(text.split())
    shown = bodies[1].removesuffix(INCOMPLETE).removesuffix(f"\n{MARK}")
    assert "".join(shown.split()) == "".join(beginning.split())


def test_deep_nesting_does_not_blow_a_layout_up() -> None:
    opened, closed = "[\n  [\n    [\n      ", "\n    ]\n  ]\n]\n"
    ones = ",".join(["1"] * 100_000)
    text = "[" * 900 + ones + "]" * 900
    assert readable([(text, False)], 256_000) == [opened + "[" * 897 + ones + "]" * 897 + closed]
    cut = "[" * 200_000 + "\n" + MARK
    assert readable([(cut, True)], 500_000) == [opened + "[" * 199_997 + "\n" + MARK + INCOMPLETE]
