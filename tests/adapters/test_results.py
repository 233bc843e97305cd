"""What a wrapped tool returned, as JSON."""

from tooltrail.adapters._shared import json_of
from tooltrail.store.filters import InvocationFilter


class Silent:
    def __str__(self) -> str:
        raise RuntimeError


def test_a_value_of_a_store_is_an_object() -> None:
    found = json_of({"where": [InvocationFilter(tools=("Bash",))]})
    assert found["where"][0]["tools"] == ["Bash"]
    assert found["where"][0]["since"] is None


def test_what_json_does_not_have_is_its_text() -> None:
    assert json_of([1j, Silent()]) == ["1j", "<Unserializable Silent object>"]
