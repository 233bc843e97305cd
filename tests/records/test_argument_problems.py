"""Refused arguments are told by their fields, and never by their values."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from tests.records.failing import SECRET, details_of
from tests.support.cases import each_case

from tooltrail.records import (
    InvalidRecordError,
    canonical_json,
    error_of_exception,
    error_of_invalid_arguments,
)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Arguments(BaseModel):
    model_config = {"extra": "forbid"}

    path: str
    lines: list[int] = []
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    code: str = ""

    @field_validator("code")
    @classmethod
    def _check_code(cls, code: str) -> str:
        if code:
            raise ValueError(f"no such code: {code}")
        return code


def refusal_of(arguments: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Arguments.model_validate(arguments)
    return caught.value


UNTOLD = "refused by a check of the tool, whose words may repeat the value"

NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"
NO_PET = (
    "Input tag '\u2026' found using 'kind' does not match any of the expected tags: 'cat', 'dog'"
)


@each_case(
    ("arguments", "problems"),
    [
        ({}, [("path", "Field required")]),
        ([SECRET], [("(input)", "Input should be a valid dictionary or instance of Arguments")]),
        ({"path": "a", "lines": [1, SECRET]}, [("lines[1]", NO_INTEGER)]),
        ({"path": "a", "pet": {"kind": SECRET}}, [("pet", NO_PET)]),
        ({"path": "a", "code": SECRET}, [("code", UNTOLD)]),
        ({"path": "a", "code": "e"}, [("code", UNTOLD)]),
        ({"path": "a", "lines": ["a"]}, [("lines[0]", NO_INTEGER)]),
        ({"path": "a", "b\nc": SECRET}, [("b c", "Extra inputs are not permitted")]),
        ({"path": True}, [("path", "Input should be a valid string")]),
        (
            {"path": "a", "lines": ["", SECRET * 9]},
            [("lines[0]", NO_INTEGER), ("lines[1]", NO_INTEGER)],
        ),
    ],
)
def test_what_pydantic_refuses_is_told_by_field_and_never_by_value(
    arguments: object, problems: list[tuple[str, str]]
) -> None:
    told = error_of_invalid_arguments("Edit", refusal_of(arguments))
    assert told.details == {
        "tool_name": "Edit",
        "problems": [{"path": path, "message": message} for path, message in problems],
    }


class Login(BaseModel):
    user: str
    password: str

    @model_validator(mode="after")
    def _check(self) -> "Login":
        raise ValueError(f"password {self.password} is weak")


def sentence_of(kind: Any, value: object) -> str:
    """The one sentence that is told of the one problem of a value."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    [problem] = details_of(error_of_invalid_arguments("Edit", caught.value))["problems"]
    return str(problem["message"])


def test_the_words_of_a_check_of_many_values_are_not_repeated() -> None:
    assert sentence_of(Login, {"user": "a", "password": SECRET}) == UNTOLD


def checked(error: Exception) -> object:
    """A type whose validator raises."""

    def check(_: object) -> object:
        raise error

    return Annotated[Any, BeforeValidator(check)]


@each_case(
    ("error", "told"),
    [
        (ValueError("must be\nabsolute"), "Value error, must be\nabsolute"),
        (AssertionError("must be absolute"), "Assertion failed, must be absolute"),
        (PydanticCustomError("mine", "must be {what}", {"what": "round"}), "must be round"),
    ],
)
@each_case("value", [SECRET, "", " ", 77, 1.5])
def test_the_words_of_a_check_of_one_scalar_are_told_where_it_is_not_in_them(
    error: Exception, told: str, value: object
) -> None:
    assert sentence_of(checked(error), value) == told


@each_case(
    ("value", "text"),
    [
        (SECRET, f"no such code: {SECRET}"),
        (f" {SECRET}\n", f"no such code: {SECRET}"),
        (SECRET, f"no such code: {SECRET.upper()}"),
        (SECRET, "no such code: hunter..."),
        ("user:1234", "a weak pin: 1234"),
        (12345, "12,345 is too much"),
        (7, "7 is too much"),
        ("?!", "no such sign: ?!"),
        ('a\n"b"\ncdef', r"no such lines: 'a\n\"b\"\ncdef'"),
        ([SECRET], "a list"),
        ({"a": SECRET}, "an object"),
        (None, "nothing"),
    ],
)
@each_case("kind", [ValueError, AssertionError])
def test_the_words_of_a_check_are_not_told_where_they_may_repeat_the_value(
    value: object, text: str, kind: type[Exception]
) -> None:
    assert sentence_of(checked(kind(text)), value) == UNTOLD


def test_a_type_of_error_of_the_tool_s_own_is_told_by_the_same_rule() -> None:
    error = PydanticCustomError("mine", "password {word} is weak", {"word": SECRET})
    assert sentence_of(checked(error), SECRET) == UNTOLD
    error = PydanticCustomError("missing", "password {word} is weak", {"word": SECRET})
    assert sentence_of(checked(error), {"a": SECRET}) == "Field required"


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (int, "a", NO_INTEGER),
        (Literal["a", "b"], "Input", "Input should be 'a' or 'b'"),
        (Annotated[int, Field(gt=7)], 7, "Input should be greater than 7"),
        (Annotated[str, Field(pattern="^x")], "", "String should match pattern '^x'"),
        pytest.param(
            Annotated[int, Field(le=5)],
            10**5_000,
            "Input should be less than or equal to 5",
            id="huge",
        ),
        (date, "date", "Input should be a valid date or datetime, \u2026"),
        (UUID, "hunter2", "Input should be a valid UUID, \u2026"),
    ],
)
def test_pydantic_s_own_sentences_are_told_whatever_the_value_is(
    kind: object, value: object, told: str
) -> None:
    assert sentence_of(kind, value) == told


def test_a_field_name_of_any_length_is_bounded() -> None:
    refusal = refusal_of({"path": "a", "k" * 1_000_000: 1})
    details = details_of(error_of_invalid_arguments("Edit", refusal))
    assert details["problems"][0]["path"] == "k" * 999 + "\u2026"


def test_a_refusal_inside_of_a_handler_does_not_quote_the_value_either() -> None:
    told = error_of_exception(refusal_of({"path": "a", "lines": [SECRET], "b": SECRET}))
    name = "pydantic_core._pydantic_core.ValidationError"
    assert told.message == (
        f"{name}: 2 validation errors for Arguments: lines[0]: Input should be a valid integer,"
        " unable to parse string as an integer; b: Extra inputs are not permitted"
    )
    one = error_of_exception(refusal_of({}))
    assert one.message == f"{name}: 1 validation error for Arguments: path: Field required"


@dataclass
class SchemaError(Exception):
    """An error as jsonschema makes it."""

    message: str
    validator: str
    validator_value: object
    absolute_path: tuple[str | int, ...] = ()


WRONG_TYPE = SchemaError(f"{SECRET!r} is not of type 'integer'", "type", "integer", ("lines", 0))
MISSING = SchemaError("'path' is a required property", "required", ["path"])


@pytest.mark.parametrize(
    ("refusal", "path", "message"),
    [
        (WRONG_TYPE, "lines[0]", 'does not satisfy type: "integer"'),
        (MISSING, "(input)", "'path' is a required property"),
    ],
)
def test_an_error_of_a_schema_validator_is_told_by_keyword(
    refusal: SchemaError, path: str, message: str
) -> None:
    assert details_of(error_of_invalid_arguments("Edit", refusal))["problems"] == [
        {"path": path, "message": message}
    ]


def test_a_huge_schema_is_not_repeated_whole() -> None:
    huge = SchemaError("no", "enum", ["x" * 100_000], ("a",))
    [problem] = details_of(error_of_invalid_arguments("Edit", huge))["problems"]
    assert problem["message"].startswith('does not satisfy enum: ["xxx')
    assert problem["message"].endswith('xxx"]')
    assert " characters omitted ...]" in problem["message"]
    assert len(problem["message"]) <= 1_000 + len("does not satisfy enum: ")


def json_refusal(text: str, parse: Callable[[str], object]) -> Exception:
    with pytest.raises((ValueError, InvalidRecordError)) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("parse", [json.loads, canonical_json.decode])
def test_json_that_does_not_parse_is_told_by_its_place(parse: Callable[[str], object]) -> None:
    refusal = json_refusal('{"key":\n "' + SECRET + '" x}', parse)
    assert error_of_invalid_arguments("Edit", refusal).details == {
        "tool_name": "Edit",
        "parse_error": "Expecting ',' delimiter: line 2 column 26 (char 33)",
    }


def test_of_any_other_exception_only_the_type_is_told() -> None:
    told = error_of_invalid_arguments("Edit", ValueError(f"{SECRET} is bad"))
    assert told.details == {"tool_name": "Edit", "exception": "ValueError"}


def test_a_sentence_may_say_why_arguments_are_refused() -> None:
    told = error_of_invalid_arguments("Edit", "old and new are\nthe same")
    assert told.details == {"tool_name": "Edit", "parse_error": "old and new are\nthe same"}


def test_a_refused_integer_that_python_does_not_print_is_not_repeated() -> None:
    def refuse(_: int) -> int:
        raise ValueError("out of range")

    adapter = TypeAdapter(Annotated[int, AfterValidator(refuse)])
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(10**5000)
    (problem,) = details_of(error_of_invalid_arguments("t", caught.value))["problems"]
    assert problem["message"] == "refused by a check of the tool, whose words may repeat the value"
