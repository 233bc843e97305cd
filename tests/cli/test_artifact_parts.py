"""Parts of an artifact on the command line: `cat --bytes`, `cat --lines`, `grep`."""

from pathlib import Path

import pytest
from tests.cli.test_artifact_command import store_artifact
from tests.support.cli import Cli

from tooltrail.artifacts import FrameIndex
from tooltrail.artifacts.sink import FRAME_SIZE

LINES = [b"line %d\n" % n for n in range(1, 30_001)]
TEXT = b"".join(LINES)


@pytest.fixture
def path(cli: Cli) -> str:
    return store_artifact(cli, TEXT)


def test_bytes_are_counted_from_zero_and_the_last_is_left_out(cli: Cli, path: str) -> None:
    for text, wanted in (
        ("0:10", TEXT[:10]),
        ("5:5", b""),
        ("200000:200020", TEXT[200_000:200_020]),
        (":7", TEXT[:7]),
        (f"{len(TEXT) - 3}:", TEXT[-3:]),
        ("12", TEXT[12:13]),
        ("999999999:", b""),
        (f"{len(TEXT) - 1}:99999999999999999999999", TEXT[-1:]),
    ):
        assert cli.ok("artifact", "cat", path, "--bytes", text).stdout == wanted, text


def test_lines_are_counted_from_one_and_the_last_belongs_to_them(cli: Cli, path: str) -> None:
    for text, first, last in (
        ("1:3", 1, 3),
        ("7", 7, 7),
        (":2", 1, 2),
        ("29999:", 29_999, 30_000),
        ("30000:30005", 30_000, 30_000),
        ("30001:", 30_001, 30_000),
        ("15000:15020", 15_000, 15_020),
    ):
        wanted = b"".join(LINES[first - 1 : last])
        assert cli.ok("artifact", "cat", path, "--lines", text).stdout == wanted, text


PARTS = (
    ("cat", "--bytes", "0:5"),
    ("cat", "--lines", "1"),
    ("head", "-n", "1"),
    ("tail", "-n", "1"),
    ("grep", "line"),
)


def command_of(part: tuple[str, ...], name: str) -> list[str]:
    """`artifact` with the name where it belongs."""
    verb, *options = part
    return ["artifact", verb, *options, name]


def test_every_way_to_name_an_artifact_works_for_a_part(cli: Cli, path: str) -> None:
    digits, root = path[-68:-4], str(cli.folder / "artifacts")
    for part in PARTS:
        outputs = {
            cli.ok(*command_of(part, name)).stdout
            for name in (path, digits, digits[:6], f"sha256:{digits}", f"sha256:{digits[:6]}")
        }
        # A store that must be opened as a whole gives the same.
        outputs.add(cli.ok(*command_of(part, path), "--artifacts", root).stdout)
        assert len(outputs) == 1
        assert outputs != {b""}


@pytest.mark.parametrize("changed", [TEXT[1:], TEXT[:-1] + b"\r"], ids=["size", "digest"])
def test_no_byte_of_an_object_with_another_size_or_digest_is_printed(
    cli: Cli, path: str, changed: bytes
) -> None:
    other = store_artifact(cli, changed)
    target = cli.folder / "artifacts" / path
    target.unlink()
    target.write_bytes((cli.folder / "artifacts" / other).read_bytes())
    # A search through all of it would find the digest out at its end.
    for part in PARTS if len(changed) < len(TEXT) else [*PARTS[:4], ("cat",)]:
        ended = cli.run(*command_of(part, path))
        assert (ended.code, ended.stdout) == (1, b"")
        assert f"artifact {path} " in ended.sentence


def test_a_reader_that_goes_away_ends_it_quietly(cli: Cli, path: str) -> None:
    for part in (("cat", "--bytes", "0:"), ("grep", "line"), ("grep", "--json", "line")):
        with cli.start(*command_of(part, path)) as process:
            assert process.stdout
            assert process.stdout.read(1)
            process.stdout.close()
            assert process.stderr
            assert process.stderr.read() == b""
        assert process.returncode == 141


SEVENS = sum(b"7" in line for line in LINES)
GREPS = {
    ("^line 2999[89]$",): b"line 29998\nline 29999\n",
    ("-A", "1", "line 7777"): b"line 7777\nline 7778\n",
    ("-B", "1", "line 7777"): b"line 7776\nline 7777\n",
    ("-C", "1", "-A", "0", "line 7777"): b"line 7776\nline 7777\n",
    ("-F", "line 7777"): b"line 7777\n",
    ("-i", "LINE 7777"): b"line 7777\n",
    ("-n", "-b", "-C", "1", "line (3|5)$"): (
        b"2-7-line 2\n3:14:line 3\n4-21-line 4\n5:28:line 5\n6-35-line 6\n"
    ),
    ("-C", "1", "line (3|9)$"): b"line 2\nline 3\nline 4\n--\nline 8\nline 9\nline 10\n",
    ("-c", "7"): b"%d\n" % SEVENS,
    ("-c", "-v", "7"): b"%d\n" % (30_000 - SEVENS),
    ("-c", "-m", "5", "7"): b"5\n",
    ("line",): TEXT,
}


class TestGrep:
    def test_it_prints_what_grep_prints(self, cli: Cli, path: str) -> None:
        found = {one: cli.ok("artifact", "grep", *one, path).stdout for one in GREPS}
        assert {one for one in GREPS if found[one] != GREPS[one]} == set()
        assert cli.program("artifact", "grep", "", path).stdout == TEXT
        assert cli.ok("artifact", "grep", "-c", "--json", "7", path).records == [
            {"schema_version": 1, "stream": None, "count": SEVENS}
        ]

    def test_a_text_is_no_expression(self, cli: Cli) -> None:
        path = store_artifact(cli, b"a.c [x\n" + b"abc\n" * 9_000)
        assert cli.ok("artifact", "grep", "-F", "a.c [", path).stdout == b"a.c [x\n"

    def test_no_match_is_not_found_and_not_damage(self, cli: Cli, path: str) -> None:
        for options, printed in (((), ""), (("-c",), "0\n"), (("--json",), "[]\n")):
            ended = cli.run("artifact", "grep", *options, "nothing", path)
            assert (ended.code, ended.text, ended.message) == (3, printed, "")
        assert cli.run("artifact", "grep", "-m", "0", "line", path).code == 3

    def test_json_has_everything(self, cli: Cli, path: str) -> None:
        found = cli.ok("artifact", "grep", "--json", "-A", "1", "-m", "1", "line 30", path).records
        assert found == [
            {
                "schema_version": 1,
                "stream": None,
                "line_number": number,
                "offset": TEXT.index(b"line 30\n") if number == 30 else TEXT.index(b"line 31\n"),
                "line": f"line {number}",
                "is_context": number == 31,
            }
            for number in (30, 31)
        ]

    def test_bytes_that_are_no_text_stay_what_they_are(self, cli: Cli) -> None:
        wild = b"\xff\x00needle\xfe\r\n" + b"x" * 30_000 + b"\nneedle at the end"
        path = store_artifact(cli, wild)
        ended = cli.ok("artifact", "grep", "needle", path)
        assert ended.stdout == b"\xff\x00needle\xfe\r\nneedle at the end\n"
        (first, _) = cli.ok("artifact", "grep", "--json", "needle", path).records
        assert first["line"].encode("utf-8", "surrogateescape") == b"\xff\x00needle\xfe\r"
        assert cli.program("artifact", "grep", "-F", "-c", b"\xff\x00"[:1], path).text == "1\n"

    @pytest.fixture
    def damaged(self, cli: Cli) -> str:
        """An artifact whose second frame of two is damaged."""
        path = store_artifact(cli, TEXT)
        stored: Path = cli.folder / "artifacts" / path
        data = bytearray(stored.read_bytes())
        begin, end = FrameIndex.from_bytes(bytes(data)).stored_span(1)
        data[(begin + end) // 2] ^= 1
        stored.chmod(0o600)
        stored.write_bytes(data)
        return path

    def test_what_was_found_before_damage_is_printed(self, cli: Cli, damaged: str) -> None:
        whole = TEXT[: TEXT.rindex(b"\n", 0, FRAME_SIZE) + 1]
        ended = cli.run("artifact", "grep", "line", damaged)
        assert (ended.code, ended.stdout) == (1, whole)
        assert f"in the frame at byte {FRAME_SIZE:,} of the output: " in ended.sentence
        assert cli.run("artifact", "grep", "-n", "line 7$", damaged).text == "7:line 7\n"

    def test_json_is_closed_before_the_error_is_said(self, cli: Cli, damaged: str) -> None:
        ended = cli.run("artifact", "grep", "--json", "line 7$", damaged)
        assert [record["line_number"] for record in ended.records] == [7]
        assert ended.code == 1
        assert cli.run("artifact", "grep", "--json", "nothing", damaged).stdout == b""
        assert cli.run("artifact", "grep", "--json", "-c", "line", damaged).stdout == b""

    def test_what_is_no_pattern_is_wrong_usage(self, cli: Cli, path: str) -> None:
        newline = "a pattern must not contain a newline"
        for options, said in (
            (("(",), "not a regular expression: "),
            (("line\\n",), newline),
            (("-F", "line 1\nline 2"), newline),
            (("-c", "line 1\nline 2"), newline),
        ):
            ended = cli.run("artifact", "grep", *options, path)
            assert (ended.code, ended.stdout) == (2, b"")
            assert ended.sentence.startswith(said)
