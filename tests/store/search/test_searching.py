"""Search on both engines: what is found, what is not, and where it is said to stand."""

from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.call_facts import changed, message, moment
from tests.support.evidence import check_database
from tests.support.killing import run_and_kill
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import InvalidRecordError, canonical_json
from tooltrail.records.digests import digest_of
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.expressions import Comparison
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.search import filling, index
from tooltrail.store.search.queries import LineQuery, PathQuery, Query, WordQuery
from tooltrail.store.search.searching import Hit, Search
from tooltrail.store.search.words import CUT, Phrase, fold, phrases_of, words_of

SESSION = new_id()


def fill(store: StoreParts) -> None:
    filling.fill_index(store.database, lambda: store.archive)


def search(
    store: StoreParts, query: Query, where: InvocationFilter = ALL, **options: object
) -> list[Hit]:
    one = Search(store.reader, lambda: store.archive, query, where, **options)  # type: ignore[arg-type]
    return list(one.hits())


def found(store: StoreParts, *texts: str, where: InvocationFilter = ALL) -> list[UUID]:
    """The ids of the hits of some words."""
    return [hit.id for hit in search(store, WordQuery(phrases_of(texts)), where)]


def recorded(store: StoreParts, *calls: Call) -> list[UUID]:
    store.ingest(*entries_of(calls))
    fill(store)
    return [one.started.id for one in calls]


def say(text: bytes, seconds: float) -> Entry:
    """A message."""
    return changed(message(SESSION, text), at=moment(seconds))


@pytest.mark.both_engines
def test_words_are_found_as_people_type_them(parts: StoreParts) -> None:
    output = (
        "error[E0433]: failed to resolve foo_bar in /usr/lib/x.py with --no-color\n"
        "Straße ÉTÉ ΟΔΟΣ caf\u0065\u0301 数据库错误 \uff37ide\n"
    )
    (one,) = recorded(parts, call(SESSION, stdout=output.encode()))
    there = [
        *("E0433", "e0433", "error", "foo_bar", "FOO_BAR", "bar", "/usr/lib/x.py", "lib/x", "x.py"),
        *("--no-color", "color", "fail*", "FAIL*", "failed to resolve", '"failed  to"', "foo_b*"),
        *("straße", "STRASSE", "été", "οδοσ", "café", "caf\u0065\u0301", "错误", "数据", "库错"),
    ]
    assert {text: found(parts, text) for text in there} == {text: [one] for text in there}
    absent = ["err", "E043", "resolve failed", "-no-colour", "oo_bar", "错数", "x.pyc", "cafe"]
    assert {text: found(parts, text) for text in absent} == {text: [] for text in absent}
    assert found(parts, "failed", "wide*") == []  # the full-width letter is another one
    assert found(parts, "failed", "错误") == [one]


@pytest.mark.both_engines
def test_every_text_of_a_call_and_a_message_is_found_with_its_place(parts: StoreParts) -> None:
    arguments = b'{"command":"echo \\"alpha\\nbravo\\"","n":[1,{"deep":"caf\\u00e9 charlie"}]}'
    one = call(
        SESSION,
        arguments=arguments,
        stdout=b"first\nsecond delta\n",
        stderr=b"echo1\n",
        receipt=b"foxtrot",
        canonical=b'{"error":{"kind":"x","message":"golf"},"result":null,"status":"error",'
        b'"summary_text":"hotel","tool_name":"bash"}',
    )
    said = say(b"line\nindia", 9)
    blocks = b'[{"type":"reasoning","text":"juliet","extras":{"signature":"opaque"}},'
    blocks += b'{"type":"tool_result","content":[{"type":"text","text":"kilo"}]}]'
    document = b'{"blocks":%b,"role":"assistant"}' % blocks
    thought = changed(message(SESSION, b""), at=moment(10), document=digest_of(document))
    parts.ingest(*one.entries(), said, thought._replace(bodies=[b"", document]))
    fill(parts)
    assert found(parts, "opaque") == []
    places = {
        "bravo": ("arguments.command", 2, 12, "input"),
        "charlie": ("arguments.n[1].deep", 1, 6, "input"),
        "deep": ("arguments", 3, 10, "input"),
        "delta": ("stdout", 2, 13, "complete"),
        "echo1": ("stderr", 1, 0, "complete"),
        "foxtrot": ("receipt", 1, 0, "receipt"),
        "golf": ("error.message", 1, 0, "canonical"),
        "hotel": ("summary", 1, 0, "canonical"),
        "india": ("text", 2, 5, "transcript"),
        "juliet": ("reasoning.text", 1, 0, "transcript"),
        "kilo": ("tool_result.content[0].text", 1, 0, "transcript"),
    }
    for word, expected in places.items():
        (hit,) = search(parts, WordQuery(phrases_of([word])))
        first = hit.places[0]
        assert (first.name, first.line, first.offset, first.surface) == expected, word
        assert fold(first.text[first.start :][: first.length]) == word
        assert hit.kind == ("message" if first.surface == "transcript" else "call")


LONG = b"".join(b"%06d some line of a log\n" % n for n in range(20_000))


def test_the_ends_of_a_long_stream_are_in_the_index_and_all_of_it_can_be_searched(
    parts: StoreParts,
) -> None:
    data = LONG + b"the end"
    one = call(SESSION, stdout=data)
    one.capture(parts, data)
    parts.ingest(*one.entries())
    fill(parts)
    for word, line in (("000007", 8), ("019990", 19_991), ('"the end"', 20_001)):
        (hit,) = search(parts, WordQuery(phrases_of([word])))
        place = hit.places[0]
        assert (place.name, place.line) == ("stdout", line)
        assert place.path is not None
        assert fold(data[place.offset :].decode()).startswith(word.strip('"'))
    assert found(parts, "010000") == []
    for query in (
        LineQuery("010000 some", literal=True, ignore_case=False),
        LineQuery("^01000[0] SOME", literal=False, ignore_case=True),
    ):
        (hit,) = search(parts, query, context=1)
        place = hit.places[0]
        assert (place.line, place.offset) == (10_001, data.index(b"010000"))
        assert place.before == ("009999 some line of a log",)
        assert place.after == ("010001 some line of a log",)


def test_there_is_no_line_behind_the_last_newline(parts: StoreParts) -> None:
    recorded(parts, call(SESSION, stdout=b"first word\n\nsecond\n"))
    (hit,) = search(parts, LineQuery("word", literal=True, ignore_case=False), context=5)
    assert hit.places[0].after == ("", "second")
    (hit,) = search(parts, WordQuery(phrases_of(["second"])), context=1)
    assert (hit.places[0].before, hit.places[0].after) == (("",), ())


def test_a_pasted_word_with_a_colour_begins_like_any_word() -> None:
    (phrase,) = phrases_of(["\x1b[31mred\x1b[0m"])
    assert phrase.find("it is red") == (6, 9)
    assert phrase.find("hundred") is None


@pytest.mark.both_engines
def test_a_pattern_is_found_in_every_text_without_an_index(parts: StoreParts) -> None:
    first = call(SESSION, arguments=b'{"command":"x\\nneedle1"}', stdout=b"\xff\xfe needle2\n")
    said = say(b"needle3", 5)
    parts.ingest(*first.entries(), said)
    with parts.database.write() as connection:
        index.drop_index(connection)
    for number in "123":
        (hit,) = search(parts, LineQuery(f"eedle[{number}]$", literal=False, ignore_case=False))
        assert hit.places[0].text.endswith(f"needle{number}")
    (hit,) = search(parts, LineQuery("NEEDLE2", literal=True, ignore_case=True))
    assert hit.places[0].offset == 3
    assert search(parts, LineQuery("eedle.", literal=True, ignore_case=False)) == []


@pytest.mark.parametrize(
    ("path", "is_there"),
    [
        *(("src/deep/café.py", True), ("/repo/src/deep/café.py", True), ("café.py", True)),
        *(("/repo/src", True), ("src", True), ("/repo", True), ("./src/deep/", True)),
        *(("deep/caf", False), ("/src/deep/café.py", False), ("rc/deep/café.py", False)),
        *(("/repo/src/deep/café", False), ("/other/src/deep/café.py", False)),
    ],
)
def test_calls_that_touched_a_path_are_found_in_long_arguments_too(
    parts: StoreParts, path: str, is_there: bool
) -> None:
    text = "x " * 60_000 + "cat /repo/src/deep/caf\u00e9.py > /dev/null; " + "y " * 60_000
    touched, _ = recorded(
        parts,
        call(SESSION, arguments=b'{"command":"%b"}' % text.encode()),
        call(SESSION, 1, arguments=b'{"command":"cat /repo/sources/deep/cafe.py"}'),
    )
    expected = {touched} if is_there else set[UUID]()
    hits = search(parts, PathQuery(path))
    assert {hit.id for hit in hits} - ({hits[0].id} if path == "/repo" else set()) <= expected
    assert expected <= {hit.id for hit in hits}


NAMED = (
    *("a.py", "src/a.py", "./src//a.py", "../src/a.py", "lib/../a.py", "/repo/x/../src/a.py"),
    *("-I/repo/src/a.py", "-Isrc/a.py", "--file=/repo/src/a.py", "--file=src/a.py", "@src/a.py"),
    *('"src"/a.py', "$HOME/src/a.py", "$(git rev-parse --show-toplevel)/src/a.py", "~/src/a.py"),
    *("--- a/src/a.py", "file:///repo/src/a.py", "host:/repo/src/a.py", "src/a.py:12", "a.py."),
    *(r"{\"file\":\"src/a.py\"}", r"first\nsrc/a.py\nlast"),
)
OTHERS = ("/src/a.py", "/x/repo/src/a.py", "x/a.py", "src/a.pyc", "b.a.py", "-a.py", "src/A.py")


def test_a_path_is_found_as_a_shell_a_compiler_and_a_patch_write_it() -> None:
    query = PathQuery("/repo/src/a.py")
    assert [text for text in NAMED if query.span(f"cat {text} b") is None] == []
    assert [text for text in OTHERS if query.span(f"cat {text} b") is not None] == []
    for wanted, text in (
        ("my dir/my file.txt", r"cat my\ dir/my\ file.txt"),
        ("/x/my dir/my file.txt", "cat 'my dir'/\"my file.txt\""),
        (r"C:\repo\a.py", r"type C:\\repo\\a.py"),
        ("/repo/.env", "cat .env"),
        ("/repo/a\udcff.txt", canonical_json.encode("cat a\udcff.txt").decode()),
    ):
        assert query.span(text) is None
        assert PathQuery(wanted).span(text) is not None, text
    for path in ("/", ".", "..", "a/.."):
        with pytest.raises(InvalidRecordError):
            PathQuery(path)


def test_a_name_behind_a_letter_of_an_option_is_in_the_index(parts: StoreParts) -> None:
    long = b"m" * CUT
    commands = [b"make -fMakefile", b"make -f Makefile", b"cc -I" + long, b"cc -IMakefiles x.c"]
    commands.append("cc -Iu\u0308ber".encode())  # `ü` of two characters, as macOS spells names
    calls = [
        call(SESSION, n, arguments=b'{"command":"%b"}' % one) for n, one in enumerate(commands)
    ]
    *wanted, led, _, composed = recorded(parts, *calls)
    assert [hit.id for hit in search(parts, PathQuery("/repo/Makefile"))] == wanted[::-1]
    assert [hit.id for hit in search(parts, PathQuery("\u00fcber"))] == [composed]
    assert [hit.id for hit in search(parts, PathQuery(long.decode()))] == [led]


@pytest.mark.both_engines
def test_the_folder_in_which_a_call_ran_counts_for_a_path(parts: StoreParts) -> None:
    environments = [b'{"cwd":"/repo/src"}', b'{"cwd":"/other"}', b'{"host":"here"}']
    environments.append(canonical_json.encode({"cwd": "/d\udcff"}))  # a name that is not UTF-8
    calls = [call(SESSION, n, arguments=b'{"command":"make"}') for n in range(4)]
    for one, environment in zip(calls, environments, strict=True):
        start = changed(one.start, environment=digest_of(environment))
        one.start = start._replace(bodies=[*start.bodies, environment])
    inside, _, _, odd = recorded(parts, *calls)
    for path in ("/repo", "/repo/src", "src"):
        assert [hit.id for hit in search(parts, PathQuery(path))] == [inside]
    assert [hit.id for hit in search(parts, PathQuery("d\udcff"))] == [odd]
    for path in ("/repo/lib", "None"):
        assert search(parts, PathQuery(path)) == []
    for text, ids in (("/repo/src", [inside]), ("/none", []), ("/d\udcff", [odd])):
        where = InvocationFilter(expression=parts.reader.resolved([Comparison("cwd", "=", text)]))
        assert [one.id for one in parts.reader.invocations(where).items] == ids


def test_each_text_is_indexed_by_itself_and_numbers_as_they_are_written(parts: StoreParts) -> None:
    # A control sequence that does not end in one stream must not end in the next one.
    opened = call(SESSION, 1, stdout=b"\x1b]0;begin needle", stderr=b"haystack \x07")
    number = call(SESSION, 2, arguments=b'{"rate":1.5E5}')
    first, second = recorded(parts, opened, number)
    assert found(parts, "needle") == found(parts, "haystack") == [first]
    assert found(parts, "1.5E5") == [second]


@pytest.mark.both_engines
def test_filters_order_and_cursor_are_those_of_a_list(parts: StoreParts) -> None:
    calls = [
        call(SESSION, n, stdout=b"word %d\n" % n, tool="bash" if n % 2 else "cat")
        for n in range(100)
    ]
    said = [say(b"a word", n) for n in (3, 57)]
    parts.ingest(*entries_of(calls), *said)
    fill(parts)
    times = {one.started.id: (moment(n), 0) for n, one in enumerate(calls)}
    times |= {one.fact.id: (moment(n), 1) for n, one in zip((3, 57), said, strict=True)}  # type: ignore[union-attr]
    oldest = sorted(times, key=times.__getitem__)
    assert found(parts, "word") == oldest[::-1]
    for oldest_first, expected in ((False, oldest[::-1]), (True, oldest)):
        hits = search(parts, WordQuery(phrases_of(["word"])), oldest_first=oldest_first)
        assert [hit.id for hit in hits] == expected
        for place in (2, 3, 55, 101):
            rest = search(
                parts,
                WordQuery(phrases_of(["word"])),
                oldest_first=oldest_first,
                cursor=hits[place].cursor,
            )
            assert [hit.id for hit in rest] == expected[place + 1 :]
    where = InvocationFilter(tools=("cat",), since=moment(50))
    assert (
        found(parts, "word", where=where)
        == [one.started.id for one in calls[::-1] if one.started.tool_name == "cat"][:25]
    )
    where = InvocationFilter(expression=Comparison("tool", "=", "cat"))
    cats = [one.started.id for one in calls[::-1] if one.started.tool_name == "cat"]
    assert found(parts, "word", where=where) == cats
    assert len(found(parts, "word", where=InvocationFilter(until=moment(4)))) == 5
    assert len(found(parts, "word", where=InvocationFilter(sessions=(SESSION,)))) == 102
    for cursor in ("x", "400", "401"):
        with pytest.raises(InvalidRecordError, match="not a cursor of this list"):
            search(parts, WordQuery(phrases_of(["word"])), cursor=cursor)


@pytest.mark.both_engines
def test_what_the_index_does_not_have_yet_is_found_too(parts: StoreParts) -> None:
    one = call(SESSION, stdout=b"alpha\n")
    parts.ingest(*one.entries(), say(b"alpha", 5))
    assert len(found(parts, "alpha")) == 2
    open_call = call(SESSION, 9, arguments=b'{"command":"alpha"}', state=None)
    parts.ingest(*open_call.entries())
    assert found(parts, "alpha")[0] == open_call.started.id
    fill(parts)
    assert len(found(parts, "alpha")) == 3


@pytest.mark.both_engines
def test_erased_text_is_not_shown_and_a_new_index_does_not_have_its_words(
    parts: StoreParts,
) -> None:
    erased, kept = call(SESSION, stdout=b"topsecret\n", receipt=b"cut"), call(SESSION, 1)
    recorded(parts, erased, kept)
    assert has_word(parts, "topsecret")
    parts.erase_body(b"topsecret\n")
    assert found(parts, "topsecret") == []
    filling.rebuild_index(parts.database, lambda: parts.archive)
    assert not has_word(parts, "topsecret")
    assert found(parts, "cut") == [erased.started.id]


def has_word(store: StoreParts, word: str) -> bool:
    """Whether the index has a word."""
    with store.database.read() as connection:
        rows = connection.query("SELECT block FROM search_words")
    return any(word.encode() in zstandard.ZstdDecompressor().decompress(one) for (one,) in rows)


@pytest.mark.both_engines
def test_a_damaged_call_is_reported_and_hides_no_other(parts: StoreParts) -> None:
    bad, good = call(SESSION, receipt=b"alpha bad"), call(SESSION, 1, receipt=b"alpha good")
    recorded(parts, bad, good)
    parts.alter("UPDATE surfaces SET receipt = 'alpha changed' WHERE receipt = 'alpha bad'")
    one = Search(parts.reader, lambda: parts.archive, WordQuery(phrases_of(["alpha"])))
    assert [hit.id for hit in one.hits()] == [good.started.id]
    assert [str(bad.started.id) in reason for reason in one.unread] == [True]
    filling.rebuild_index(parts.database, lambda: parts.archive)
    assert found(parts, "alpha", where=InvocationFilter(tools=("bash",))) == [good.started.id]


@pytest.mark.both_engines
def test_a_lost_text_is_reported_if_it_may_have_the_words(parts: StoreParts) -> None:
    recorded(parts, call(SESSION, receipt=b"alpha"))
    parts.alter("DELETE FROM surfaces")
    assert (len(unread(parts, "alpha")), unread(parts, "other")) == (1, [])
    filling.rebuild_index(parts.database, lambda: parts.archive)
    assert len(unread(parts, "alpha")) == len(unread(parts, "other")) == 1


def unread(store: StoreParts, word: str) -> list[str]:
    """What a search for a word could not read."""
    one = Search(store.reader, lambda: store.archive, WordQuery(phrases_of([word])))
    list(one.hits())
    return one.unread


def test_a_stream_that_waits_for_its_sink_is_searched_in_the_spool(parts: StoreParts) -> None:
    one = call(SESSION, stdout=LONG)
    one.capture(parts, LONG)
    parts.sink.is_away = True
    parts.ingest(*one.entries())
    fill(parts)
    assert found(parts, "018900") == [one.started.id]
    parts.sink.is_away = False
    parts.ingest()
    assert found(parts, "018900") == [one.started.id]


@pytest.mark.both_engines
def test_texts_that_no_database_stores_are_found_by_their_words(parts: StoreParts) -> None:
    arguments = b'{"command":"a\\u0000bravo \\ud800 charlie"}'
    (one,) = recorded(parts, call(SESSION, arguments=arguments, receipt=b"x\0delta"))
    for word in ("bravo", "charlie", "delta"):
        assert found(parts, word) == [one]


@pytest.mark.both_engines
def test_an_index_that_was_filled_by_killed_processes_has_every_word_once(
    database: str, tmp_path: Path
) -> None:
    def task() -> None:
        with store_parts(database, tmp_path, is_new=False) as again:
            fill(again)

    with store_parts(database, tmp_path) as parts:
        calls = [call(SESSION, n, stdout=b"word%d all\n" % n) for n in range(40)]
        parts.ingest(*entries_of(calls))
        parts.database.close()
        batch = filling.BATCH_ENTRIES
        filling.BATCH_ENTRIES = 7  # type: ignore[misc]
        try:
            for moment_of_kill in range(50, 4_000, 331):
                run_and_kill(task, moment_of_kill)
            fill(parts)
        finally:
            filling.BATCH_ENTRIES = batch  # type: ignore[misc]
        with parts.database.read() as connection:
            assert index.what_is_behind(connection) == []
        assert len(found(parts, "all")) == 40
        for n, one in enumerate(calls):
            assert found(parts, f"word{n}") == [one.started.id]


@pytest.mark.both_engines
@pytest.mark.parametrize("n", [(1 << 63) - 1, 1 << 50, 1 << 20])
def test_a_ledger_entry_far_behind_the_others_keeps_no_fact_out_of_the_index(
    parts: StoreParts, n: int
) -> None:
    parts.ingest(*entries_of([call(SESSION, 1, stdout=b"before")]))
    columns = "journal_key, {}, kind, subject_id, fact, hash"
    stray = f"INSERT INTO ledger_entries SELECT {columns.format(n)} FROM ledger_entries WHERE n = 0"
    parts.alter(stray)
    fill(parts)
    (later,) = recorded(parts, call(SESSION, 2, stdout=b"afterwards"))
    assert found(parts, "afterwards") == [later]


def test_the_loss_of_the_row_of_a_journal_hides_nothing_from_a_search(parts: StoreParts) -> None:
    (one,) = recorded(parts, call(SESSION, 1, stdout=b"before"))
    parts.alter("DELETE FROM journals")
    assert found(parts, "before") == [one]
    parts.alter("DELETE FROM search_words")
    parts.alter("DELETE FROM search_cursors")
    assert found(parts, "before") == [one]
    fill(parts)
    assert found(parts, "before") == [one]


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM search_words",
        "DELETE FROM search_words WHERE n = (SELECT min(n) FROM search_words)",
        "DELETE FROM search_words WHERE n = (SELECT max(n) FROM search_words)",
        "UPDATE search_cursors SET n = n + 1",
        "UPDATE search_cursors SET n = 1000000",
        "UPDATE search_cursors SET n = 1",
        "DELETE FROM search_cursors",
        "INSERT INTO search_cursors VALUES (7, 1)",
    ],
)
def test_a_check_finds_lost_batches_and_altered_cursors(parts: StoreParts, damage: str) -> None:
    for n in range(3):
        recorded(parts, call(SESSION, n, stdout=b"word"))
    assert check_database(parts.database) == []
    parts.run(damage)
    assert check_database(parts.database) == [
        "the index of words is damaged; `tooltrail db index --rebuild` makes it again"
    ]
    filling.rebuild_index(parts.database, lambda: parts.archive)
    assert check_database(parts.database) == []


def test_a_check_of_an_index_without_its_columns_is_no_error(parts: StoreParts) -> None:
    parts.run("ALTER TABLE search_cursors RENAME COLUMN n TO m")
    (problem,) = check_database(parts.database)
    assert "db index --rebuild" in problem


WORDS = st.text(
    st.one_of(st.sampled_from("aAbBzZ019_-./ \n\"\\*'"), st.characters(codec="utf-8")), max_size=30
)


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_a_phrase_that_stands_in_a_text_has_its_words_in_the_index(before: str, after: str) -> None:
    for middle in ("Foo", "foo_bar", "É", "ß", "数据", "Σ", "a.b"):
        text = f"{before} {middle} {after}"
        (phrase,) = phrases_of([middle])
        span = phrase.find(text)
        assert span is not None
        assert " ".join(fold(text[slice(*span)]).split()) == fold(middle)
        words = words_of(text)
        assert all(
            any(one.startswith(word) if goes_on else one == word for one in words)
            for word, goes_on in phrase.words
        )


@settings(max_examples=200)
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_each_word_of_a_text_is_found_in_its_blocks(texts: list[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as driver:
        connection = Connection(SqliteTarget(Path("x")), driver)
        index.make_index(connection)
        index.add_words(
            connection, index.Behind(1, 0, 1), {5: ["other"], 4: texts, 6: [], 7: [], 8: []}
        )
        for word in {word for text in texts for word in words_of(text)}:
            phrase = Phrase(word.decode("utf-8", "ignore"), is_prefix=len(word) >= CUT)
            owners = index.owners_with(connection, [phrase])
            assert owners is None or 4 in owners, word
        assert index.has_all_blocks(connection)
