"""A store whose artifacts are in an object store."""

import os
from pathlib import Path

import pytest
from tests.support.object_stores import S3Admin
from tests.support.recording import run_command

from tooltrail.records.errors import InvalidRecordError, StoreNotFoundError, UnavailableError
from tooltrail.store import create_store, open_store

LONG = os.urandom(300_000)


def test_long_output_is_kept_in_the_bucket_and_no_secret_in_the_database(
    tmp_path: Path, s3_bucket: str, s3_admin: S3Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "sinks.toml"
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    config.write_text(f'[s3]\nkey = "hunter1"\nsecret = "hunter2"\nendpoint_url = "{endpoint}"\n')
    monkeypatch.setenv("TOOLTRAIL_SINK_CONFIG", str(config))
    database = tmp_path / "db" / "trail.db"
    with (
        create_store(database, artifacts=f"s3://{s3_bucket}/trail") as store,
        store.open_session() as session,
    ):
        run_command(session, LONG)
    with open_store(database) as store:
        stdout = store.reader.invocation("@last").stream("stdout")
        assert stdout is not None
        with store.reader.open_stream(stdout) as source:
            assert source.read() == LONG
        assert store.info.artifact_root == f"s3://{s3_bucket}/trail"
    assert [key for key in s3_admin.keys(s3_bucket) if key.startswith("trail/sha256/")]
    for file in database.parent.rglob("*"):
        if file.is_file():
            assert b"hunter" not in file.read_bytes()
            assert endpoint.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("artifacts", "kind"),
    [
        ("s3://user:hunter2@bucket/x", InvalidRecordError),
        ("s3://a-bucket-that-is-not-there", UnavailableError),
    ],
)
def test_a_root_that_cannot_be_opened_leaves_no_store(
    tmp_path: Path, s3_bucket: str, artifacts: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        create_store(tmp_path / "trail.db", artifacts=artifacts)
    with (
        pytest.raises(StoreNotFoundError),
        open_store(tmp_path / "trail.db", create=False) as store,
    ):
        _ = store.info
