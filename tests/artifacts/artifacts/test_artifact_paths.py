"""Paths are made from digests, go back to them, and never leave the root."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts.paths import (
    COMPONENT_BYTES,
    artifact_path,
    check_path,
    check_prefix,
    digest_of_path,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError, PathEscapeError

EMPTY_HEX = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_path_of_no_bytes_is_the_known_one() -> None:
    assert artifact_path(digest_of(b"")) == f"sha256/e3/{EMPTY_HEX}.zst"


@given(st.binary())
def test_a_path_goes_back_to_its_digest(data: bytes) -> None:
    digest = digest_of(data)
    assert digest_of_path(artifact_path(digest)) == digest
    assert check_path(artifact_path(digest)) == artifact_path(digest)


@pytest.mark.parametrize(
    "path",
    [
        f"sha256/e4/{EMPTY_HEX}.zst",
        f"sha256/e3/{EMPTY_HEX}",
        f"sha256/e3/{EMPTY_HEX.upper()}.zst",
        f"sha512/e3/{EMPTY_HEX}.zst",
        f"sha256/e3/{EMPTY_HEX}.zst\n",
        f"x/sha256/e3/{EMPTY_HEX}.zst",
        "notes.txt",
    ],
)
def test_other_paths_are_not_of_artifacts(path: str) -> None:
    with pytest.raises(InvalidRecordError, match="not the path of an artifact"):
        digest_of_path(path)


@pytest.mark.parametrize(
    "path", ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "./a", "a\\b", "a\0"]
)
def test_paths_that_escape_are_refused(path: str) -> None:
    with pytest.raises(PathEscapeError):
        check_path(path)
    with pytest.raises(PathEscapeError):
        digest_of_path(path)


@pytest.mark.parametrize("path", ["\ud800", "a/" + "é" * 101, "a/b.part", ".part"])
def test_paths_that_cannot_be_stored_everywhere_are_invalid(path: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        check_path(path)
    assert not isinstance(caught.value, PathEscapeError)


@pytest.mark.parametrize("path", ["a", "a.b/c..d", "...", "~", "a b", "é" * 100, "x.part/y"])
def test_other_paths_pass_unchanged(path: str) -> None:
    assert check_path(path) == path


def test_the_longest_component_passes() -> None:
    assert check_path("a" * COMPONENT_BYTES)


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "sha256/ab/"])
def test_prefixes_may_end_in_a_slash_or_be_empty(prefix: str) -> None:
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../", "..", "a\\"])
def test_prefixes_that_escape_are_refused(prefix: str) -> None:
    with pytest.raises(PathEscapeError):
        check_prefix(prefix)


@given(st.text(alphabet="ab./\\\0", max_size=12))
def test_a_path_that_passes_stays_below_the_root(path: str) -> None:
    import posixpath

    try:
        check_path(path)
    except InvalidRecordError:
        return
    joined = posixpath.normpath(posixpath.join("/sink", path))
    assert joined == f"/sink/{path}"
