"""Where sinks are and how their clients are opened, without a secret in anything that is said."""

import traceback
from pathlib import Path

import pytest
from tests.support.processes import run_python

from tooltrail.artifacts import open_sink
from tooltrail.artifacts._sink_options import configured, merged, split_bucket
from tooltrail.records.errors import InvalidRecordError, PathEscapeError, UnavailableError

KNOWN = ("s3", "gs", "az")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bucket", ("bucket", "")),
        ("bucket/", ("bucket", "")),
        ("my-bucket.x_y/a", ("my-bucket.x_y", "a/")),
        ("bucket/a b/é%20@x/", ("bucket", "a b/é%20@x/")),
    ],
)
def test_a_url_names_a_bucket_and_perhaps_a_prefix(name: str, expected: tuple[str, str]) -> None:
    assert split_bucket("s3", name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "user:hunter2@bucket/a",
        "hunter2@bucket",
        "bucket?token=hunter2",
        "bucket/a?token=hunter2",
        "bucket/a#hunter2",
        "bucket:hunter2/a",
        "hunter2 /a",
        "/hunter2",
    ],
)
@pytest.mark.parametrize("protocol", KNOWN)
def test_a_url_with_anything_else_is_refused_and_not_repeated(protocol: str, name: str) -> None:
    with pytest.raises(InvalidRecordError, match="without a user, a password or a qu") as caught:
        open_sink(f"{protocol}://{name}")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("prefix", ["a//b", "../a", "a/./b", "/a"])
def test_a_prefix_is_a_relative_normalised_path(prefix: str) -> None:
    with pytest.raises(PathEscapeError):
        split_bucket("s3", f"bucket/{prefix}")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sinks.toml"
    monkeypatch.setenv("TOOLTRAIL_SINK_CONFIG", str(path))
    return path


def test_without_a_file_there_are_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLTRAIL_SINK_CONFIG", raising=False)
    assert configured("s3", KNOWN) == {}


def test_each_protocol_has_its_own_table(config: Path) -> None:
    config.write_text('[s3]\nendpoint_url = "http://x"\n[s3.config_kwargs]\nread_timeout = 5\n')
    expected = {"endpoint_url": "http://x", "config_kwargs": {"read_timeout": 5}}
    assert configured("s3", KNOWN) == expected
    assert configured("gs", KNOWN) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[s4]\nkey = "hunter2"', r"may have the tables s3, gs, az, not 's4'"),
        ('s3 = "hunter2"', r"may have the tables s3, gs, az, not 's3'"),
        ('[s3]\nloop = "hunter2"\nasynchronous = true', "cannot set asynchronous, loop of s3"),
        ('[s3]\nkey = "hunter2" hunter2', r"is not TOML \(at line 2, column \d+\)"),
        ('[s3]\nkey = "hunter2', r"is not TOML"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_its_values(
    config: Path, text: str, words: str
) -> None:
    config.write_text(text)
    with pytest.raises(InvalidRecordError, match=words) as caught:
        configured("s3", KNOWN)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_bytes_that_are_no_text_are_not_toml(config: Path) -> None:
    config.write_bytes(b"[s3]\nkey = '\xff'")
    with pytest.raises(InvalidRecordError, match=r"is not TOML$"):
        configured("s3", KNOWN)


def test_a_file_that_is_not_there_is_unavailable(config: Path) -> None:
    with pytest.raises(UnavailableError, match=f"{config} cannot be read: No such file"):
        configured("s3", KNOWN)


def test_options_add_to_the_defaults_within_tables_too() -> None:
    defaults = {"a": 1, "t": {"x": 1, "y": 2}, "u": {"z": 1}}
    assert merged(defaults, {"a": 2, "b": 3, "t": {"y": 5}, "u": 7}) == {
        "a": 2,
        "b": 3,
        "t": {"x": 1, "y": 5},
        "u": 7,
    }
    assert defaults["t"] == {"x": 1, "y": 2}


def test_the_file_leads_to_the_store_before_the_environment(
    config: Path, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    endpoint = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    config.write_text(f'[s3]\nendpoint_url = "{endpoint}"\nkey = "a-key"\nsecret = "hunter2"\n')
    sink = open_sink(f"s3://{s3_bucket}")
    assert list(sink.list()) == []
    assert "hunter2" not in f"{sink!r} {sink.url} {vars(sink)!r}"


def test_without_credentials_a_store_is_unavailable(
    s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(UnavailableError, match=r"no credentials could be used \(NoCredentials"):
        open_sink(f"s3://{s3_bucket}")


@pytest.mark.parametrize(
    "text",
    [
        '[s3]\nendpont_url = "hunter2"',
        '[s3]\nkey = "hunter2"\nusername = "hunter2"',
        "[s3.config_kwargs]\nhunter2 = 1",
        '[s3]\nendpoint_url = "hunter2"',
    ],
)
def test_options_that_a_client_does_not_know_are_refused_without_their_values(
    config: Path, s3_bucket: str, text: str
) -> None:
    config.write_text(text)
    with pytest.raises(InvalidRecordError, match="options for s3:// are not understood") as caught:
        open_sink(f"s3://{s3_bucket}")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_azure_without_an_account_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONNECTION_STRING", "ACCOUNT_NAME", "ACCOUNT_KEY", "SAS_TOKEN"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
    with pytest.raises(InvalidRecordError, match="options for az:// are not understood"):
        open_sink("az://container")


MISSING = """
for module in ("s3fs", "gcsfs", "adlfs", "botocore", "aiohttp"):
    assert module not in sys.modules  # no client is imported before a sink needs it
    sys.modules[module] = None  # what Python itself does for a module that must not be there
from tooltrail.artifacts import open_sink
from tooltrail.records import InvalidRecordError
open_sink("memory://m", create=True)
for url in ("s3://bucket", "gs://bucket", "az://bucket"):
    try:
        open_sink(url)
    except InvalidRecordError as error:
        print(error)
"""


def test_no_client_is_imported_before_a_sink_needs_it_and_a_missing_extra_is_named() -> None:
    assert run_python(MISSING)[0].splitlines() == [
        f"artifacts at {url} need an extra: pip install 'tooltrail[{extra}]'"
        for url, extra in (("s3://", "s3"), ("gs://", "gcs"), ("az://", "azure"))
    ]
