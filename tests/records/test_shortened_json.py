"""JSON made smaller by its structure: names and both ends stay, and what is gone is counted."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.effort import times
from tests.support.shown_streams import shown_of_value

from tooltrail.records.canonical_json import encode, encode_text
from tooltrail.records.shortened_json import LEAST_CHARS, shorten_json

scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, "x" * 300, "\n\x01" * 200, "\U0001f468\u200d\U0001f469" * 90])
    | st.text(st.characters(), max_size=99)
)
names = st.text(st.characters(), max_size=9) | st.sampled_from(["\u2026", "n" * 300])
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(names, inner, max_size=20),
    max_leaves=60,
)


@given(values, st.integers(0, 1500))
def test_any_value_is_bounded_json_that_counts_what_is_gone(value: JsonValue, room: int) -> None:
    shortened = shorten_json(value, room)
    assert len(encode_text(shortened.value)) <= max(room, LEAST_CHARS)
    assert shortened.shown_bytes == shown_of_value(value, shortened.value)
    assert encode(shorten_json(value, room).value) == encode(shortened.value)
    if len(encode_text(value)) <= room:
        assert encode(shortened.value) == encode(value)


@settings(max_examples=times(10))
@given(st.dictionaries(st.text(min_size=1, max_size=9), values, max_size=12))
def test_all_names_of_the_top_level_stay_where_they_fit(value: dict[str, JsonValue]) -> None:
    room = 2 + sum(len(encode_text({name: 0})) + LEAST_CHARS for name in value)
    shown = shorten_json(value, room).value
    assert isinstance(shown, dict)
    assert shown.keys() == value.keys()


def test_the_order_in_which_names_were_added_does_not_matter() -> None:
    members: dict[str, JsonValue] = {f"z{number:04}": number for number in range(400)}
    backwards = dict(reversed(members.items()))
    assert shorten_json(members, 500) == shorten_json(backwards, 500)


def test_each_part_has_its_share_and_shows_both_ends() -> None:
    value: JsonValue = {
        "log": "first " + "x" * 9000 + " last",
        "page": {"next": None, "rows": [*range(9000)]},
        "status": "done",
    }
    shown: Any = shorten_json(value, 300).value
    assert (shown["status"], shown["page"]["next"]) == ("done", None)
    assert shown["log"].startswith("first xxx")
    assert shown["log"].endswith("xxx last")
    rows = shown["page"]["rows"]
    at = next(n for n, row in enumerate(rows) if isinstance(row, str))
    after = len(rows) - at - 1
    assert rows[:at] == [*range(at)]
    assert rows[at] == f"[... {9000 - at - after:,} items omitted ...]"
    assert rows[at + 1 :] == [*range(9000 - after, 9000)]
    assert min(at, after) > 2
    shown = shorten_json(value, 120).value
    assert shown["page"] == "[... 2 members omitted ...]"
    assert shown["status"] == "done"


def test_names_that_do_not_fit_are_counted() -> None:
    value: JsonValue = {f"name{n}": n for n in range(100, 900)}
    shown = shorten_json(value, 100).value
    assert shown == {
        "name100": 100,
        "name101": 101,
        "name102": 102,
        "\u2026": "[... 797 members omitted ...]",
    }
