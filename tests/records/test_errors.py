"""The tree of errors is branched by what the caller does next."""

import inspect

import pytest

from tooltrail import records
from tooltrail.records import errors

TREE = [
    (errors.TooltrailError, Exception),
    (errors.NotFoundError, errors.TooltrailError),
    (errors.NotFoundError, LookupError),
    (errors.AmbiguousNameError, errors.NotFoundError),
    (errors.StoreNotFoundError, errors.NotFoundError),
    (errors.InvalidRecordError, errors.TooltrailError),
    (errors.InvalidRecordError, ValueError),
    (errors.PathEscapeError, errors.InvalidRecordError),
    (errors.StoreExistsError, errors.InvalidRecordError),
    (errors.SessionClosedError, errors.InvalidRecordError),
    (errors.InvocationFinishedError, errors.InvalidRecordError),
    (errors.DamageError, errors.TooltrailError),
    (errors.DigestMismatchError, errors.DamageError),
    (errors.IndexMismatchError, errors.DamageError),
    (errors.MissingArtifactError, errors.DamageError),
    (errors.SchemaMismatchError, errors.TooltrailError),
    (errors.UnavailableError, errors.TooltrailError),
    (errors.AccessRefusedError, errors.UnavailableError),
    (errors.DiskFullError, errors.UnavailableError),
]
EVERY = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception)
]


def test_an_error_is_caught_by_its_branch_and_by_no_other() -> None:
    assert [one for one in TREE if not issubclass(*one)] == []
    branches = [
        errors.NotFoundError,
        errors.InvalidRecordError,
        errors.DamageError,
        errors.SchemaMismatchError,
        errors.UnavailableError,
    ]
    for error in EVERY:
        if error is not errors.TooltrailError:
            assert sum(issubclass(error, branch) for branch in branches) == 1


def test_every_error_is_public_has_a_docstring_and_a_place_in_the_tree() -> None:
    assert set(EVERY) == {child for child, _ in TREE}
    for error in EVERY:
        assert getattr(records, error.__name__) is error
        assert error.__name__ in dir(records)
        assert error.__doc__
        assert error.__name__ in (errors.__doc__ or "")


def test_an_ambiguous_name_says_what_it_fits() -> None:
    error = errors.AmbiguousNameError("ab", ["1ab", "2ab"])
    assert (error.name, error.candidates) == ("ab", ("1ab", "2ab"))
    assert str(error) == "'ab' is ambiguous: it fits 1ab, 2ab"
    error = errors.AmbiguousNameError("x", list("123456"))
    assert error.candidates == tuple("12345")
    assert str(error) == "'x' is ambiguous: it fits 1, 2, 3, 4, 5, and more"


@pytest.mark.parametrize(
    "kind", [errors.DamageError, errors.DigestMismatchError, errors.MissingArtifactError]
)
def test_damage_names_its_path(kind: type[errors.DamageError]) -> None:
    error = kind("the object is cut", path="sha256/ab/cd.zst")
    assert (str(error), error.path) == ("the object is cut", "sha256/ab/cd.zst")


@pytest.mark.parametrize(
    ("count", "said"), [(1, "one 0"), (4, "one 0; one 1; one 2; one 3"), (7, "one 3; and 3 more")]
)
def test_an_index_mismatch_has_all_differences_and_says_the_first(count: int, said: str) -> None:
    all_of_them = [f"one {number}" for number in range(count)]
    error = errors.IndexMismatchError("sha256/ab/cd.zst", all_of_them)
    assert (error.path, error.differences) == ("sha256/ab/cd.zst", tuple(all_of_them))
    assert str(error).startswith("artifact sha256/ab/cd.zst differs from its description: one 0")
    assert str(error).endswith(said)


@pytest.mark.parametrize("found", [None, "0001"])
def test_a_schema_mismatch_names_both_revisions(found: str | None) -> None:
    error = errors.SchemaMismatchError("of another revision", found=found, expected="0002")
    assert (str(error), error.found, error.expected) == ("of another revision", found, "0002")
