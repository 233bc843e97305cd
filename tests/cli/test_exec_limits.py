"""`exec` keeps the beginning of what is too long, passes all of it on, and says what is missing."""

import json
import re
from shlex import split

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import Cli, python

from tooltrail.cli._amounts import read_byte_count

PRINTED = 300_000
NOISE = python(
    "import hashlib, sys\n"
    "line = lambda n: hashlib.sha256(b'%d' % n).hexdigest()[:59].encode() + b'\\n'\n"
    "sys.stdout.buffer.write(b''.join(map(line, range(5000))))"
)
"""A command that prints `PRINTED` bytes in 5,000 lines, which compress to about half."""


def stream(cli: Cli) -> dict[str, int]:
    (found,) = json.loads(cli.ok("show", "--json").text)
    (stdout,) = [s for s in found["streams"] if s["role"] == "stdout"]
    return {name: stdout[name] for name in ("size", "produced_size")}


def test_a_limit_of_the_policy_for_one_tool_keeps_the_beginning_of_its_streams(cli: Cli) -> None:
    file = cli.folder / "policy.toml"
    file.write_text("[tools.noisy]\nstream_bytes = 60\n")
    ended = cli.exec("--policy", str(file), "--tool", "noisy", "--", *NOISE)
    assert (ended.code, len(ended.stdout)) == (0, PRINTED)
    reason = "longer than the limit of 60 bytes for one stream"
    assert ended.sentence == f"stdout: {PRINTED - 60:,} bytes not kept: {reason}"
    assert stream(cli) == {"size": 60, "produced_size": PRINTED}
    receipt = cli.ok("show", "--surface", "receipt").text
    assert receipt == (
        f"Process exited with code 0\n\nstdout:\n{ended.stdout[:60].decode()}"
        f"[output incomplete: the last {PRINTED - 60:,} bytes were not kept: {reason}]\n"
    )
    cli.exec("--policy", str(file), "--", *NOISE)
    assert stream(cli) == {"size": PRINTED, "produced_size": PRINTED}


def test_a_lost_order_of_the_streams_is_named_in_words(cli: Cli) -> None:
    file = cli.folder / "policy.toml"
    file.write_text("stream_bytes = 0\n")
    ended = cli.exec("--policy", str(file), "--", "echo", "hello")
    reason = "bytes not kept: longer than the limit of 0 bytes for one stream"
    # The order has the milliseconds until the output, which may have several digits.
    order = rf"tooltrail: the order of stdout and stderr: \d+ {reason}\n"
    assert re.fullmatch(f"tooltrail: stdout: 6 {reason}\n{order}", ended.message)


def test_bytes_that_must_stay_free_are_not_taken(cli: Cli) -> None:
    ended = cli.exec("--free-bytes", str(1 << 60), "--", *NOISE)
    assert (ended.code, len(ended.stdout)) == (0, PRINTED)
    assert f"{1 << 60:,} are held back" in ended.sentence
    assert stream(cli)["produced_size"] == PRINTED


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_a_number_of_bytes_may_have_a_suffix(cli: Cli, how: str) -> None:
    flags = ["--free-bytes", "1048576t"] if how == "flag" else []
    if how == "environment":
        cli.environment["TOOLTRAIL_FREE_BYTES"] = "1048576T"
    assert f"{1 << 60:,} are held back" in cli.exec(*flags, "--", *NOISE).sentence


@given(st.integers(0, 9_999), st.sampled_from("KMGT"), st.booleans())
def test_a_size_has_the_units_of_ls_and_dd(count: int, suffix: str, is_small: bool) -> None:
    power = 1 + "KMGT".index(suffix)
    written = f"{count}{suffix.lower() if is_small else suffix}"
    assert read_byte_count(written) == count * 1024**power
    assert read_byte_count(f"{written}iB") == count * 1024**power
    assert read_byte_count(f"{written}B") == count * 1000**power
    assert read_byte_count(str(count)) == count


def test_what_was_not_kept_is_said_by_log_and_status(cli: Cli) -> None:
    cli.exec("--", *NOISE)
    file = cli.folder / "policy.toml"
    file.write_text("[tools.noisy]\nstream_bytes = 60\n")
    cli.exec("--policy", str(file), "--tool", "noisy", "--", *NOISE)
    cut, whole = cli.ok("log", "--json").records
    assert (cut["output_size"], cut["lost_size"]) == (PRINTED, PRINTED - 60)
    assert (whole["output_size"], whole["lost_size"]) == (PRINTED, 0)
    _, first, second = cli.ok("log").lines
    assert " 60 B of 300 kB  " in first
    assert " of " not in second
    ended = cli.ok("status", "--json")
    (status,) = ended.records
    assert (status["produced_bytes"], status["lost_bytes"]) == (2 * PRINTED, PRINTED - 60)
    assert status["lossy_invocations"] == 1
    ended = cli.ok("status")
    assert "produced     600 kB, of which 300 kB of 1 invocation not kept\n" in ended.text
    hint = ended.message.rpartition("see `tooltrail ")[2].partition("`")[0]
    assert [row["id"] for row in cli.ok(*split(hint), "--json").records] == [cut["id"]]
