"""`exec --policy`: budgets from a file, stored with what they shaped."""

import json

import pytest
from tests.support.cli import Cli, python

from tooltrail.records import canonical_json, default_families, policy_from_toml

LINES = python("print('a line of text\\n' * 400, end='')")
POLICY = """
[families.command]
preview_chars = 4000

[tools.short.budget]
preview_chars = 1000
"""


@pytest.fixture
def policy_file(cli: Cli) -> str:
    file = cli.folder / "policy.toml"
    file.write_text(POLICY)
    return str(file)


def receipt_of_last(cli: Cli) -> str:
    return cli.ok("show", "--surface", "receipt").text


def test_the_budgets_of_the_file_bound_what_is_shown(cli: Cli, policy_file: str) -> None:
    cli.exec("--policy", policy_file, "--", *LINES)
    family = receipt_of_last(cli)
    cli.exec("--policy", policy_file, "--tool", "short", "--", *LINES)
    tool = receipt_of_last(cli)
    cli.exec("--", *LINES)
    assert 3_000 < len(family) < 4_300
    assert 600 < len(tool) < 1_300
    assert receipt_of_last(cli) == "Process exited with code 0\n\nstdout:\n" + (
        "a line of text\n" * 400
    )


def test_the_file_is_found_by_the_environment_and_stored_with_the_record(
    cli: Cli, policy_file: str
) -> None:
    cli.environment["TOOLTRAIL_POLICY"] = policy_file
    cli.exec("--", *LINES)
    (found,) = json.loads(cli.ok("show", "--json").text)
    policy = policy_from_toml(POLICY, default_families())
    assert found["policy_digest"] == policy.digest
    with cli.open() as store:
        assert canonical_json.decode(store.reader.policy_json(policy.digest)) == (
            canonical_json.decode(policy.to_json())
        )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"preview = ", "not TOML"),
        (b"[families.command]\npreview_chars = 5", "not a policy"),
        (b"[tools.x]\nfamily = 'nobody'", "no family is named 'nobody'"),
        (b"[tools.exec]\nfamily = 'web_fetch'", "'web_fetch', but exec records commands"),
        (b"x = " + b"[" * 3_000, "not TOML"),
        (b"\xff", "is not UTF-8"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_before_anything_runs(
    cli: Cli, content: bytes | None, sentence: str
) -> None:
    file = cli.folder / "policy.toml"
    if content is not None:
        file.write_bytes(content)
    mark = cli.folder / "ran"
    ended = cli.run("exec", "--policy", str(file), "--", "touch", str(mark))
    assert ended.code == 2
    assert sentence in ended.message
    assert not mark.exists()
