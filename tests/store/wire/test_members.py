"""Members are read as what they are, and nothing else is made of them."""

from pydantic import JsonValue
from tests.support.cases import each_case

from tooltrail.wire.members import list_in, object_in, objects_in, others, text_in

VALUES: list[JsonValue] = [None, True, 0, 1.5, "", "text", [], [1], {}, {"a": 1}]


@each_case("value", VALUES)
def test_each_reader_takes_its_own_kind_alone(value: JsonValue) -> None:
    assert text_in(value) == ("text" if value == "text" else None)
    assert object_in(value) == (value if isinstance(value, dict) else {})
    assert list_in(value) == (value if isinstance(value, list) else [])


def test_objects_are_picked_out_of_an_array() -> None:
    assert objects_in([{"a": 1}, 2, "x", [{}], {}]) == [{"a": 1}, {}]
    assert objects_in({"a": 1}) == []


def test_what_is_not_known_is_kept_unless_it_is_null() -> None:
    native: dict[str, JsonValue] = {"id": "a", "more": 0, "none": None, "empty": ""}
    assert others(native, frozenset({"id"})) == {"more": 0, "empty": ""}
