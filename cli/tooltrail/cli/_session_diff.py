"""What differs between two sessions, for `tooltrail diff`: their calls, aligned.

Of a call, only the facts to print and digests of its members are kept.
"""

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from tooltrail.cli._call_diff import Absent, members_of, values_of, visible
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._line_diff import aligned, matching_blocks
from tooltrail.cli._output import print_array, write
from tooltrail.cli._pager import page_output
from tooltrail.cli._tables import GREEN, RED, YELLOW, coloured
from tooltrail.store import InvocationDetail, Reader, SessionView
from tooltrail.store.read.comparing import calls_of

_FACTS = ("id", "seq", "tool_name", "outcome", "arguments_preview")
_DIFFERENT = {"changed": ("~", YELLOW), "only before": ("-", RED), "only after": ("+", GREEN)}
_MARKS = {**_DIFFERENT, "unknown": ("?", YELLOW)}


class _Call(NamedTuple):
    """The facts of a call to print, digests of its members, and one of its tool and arguments."""

    facts: Mapping[str, Any]
    values: Mapping[str, object]
    identity: bytes

    @classmethod
    def of(cls, call: InvocationDetail) -> "_Call":
        values = dict(values_of(call))
        if call.damage is not None:
            values["arguments"] = call.damage  # names the call, so that it equals no other one
        digests = {k: v if isinstance(v, Absent) else _digest(v) for k, v in values.items()}
        identity = _digest((digests["tool"], digests["arguments"]))
        return cls({name: getattr(call.summary, name) for name in _FACTS}, digests, identity)


def print_session_diff(
    reader: Reader, before: SessionView, after: SessionView, *, brief: bool, as_json: bool
) -> ExitCode:
    """Print the aligned calls of two sessions; return the exit code."""
    a, b = ([_Call.of(one) for one in calls_of(reader, side.id)] for side in (before, after))
    blocks = matching_blocks([one.identity for one in a], [one.identity for one in b], is_end=True)
    records = [_record(*pair) for pair in aligned(a, b, [*blocks, (len(a), len(b), 0)])]
    counts = Counter(str(one["result"]) for one in records)
    different = counts.keys() & _DIFFERENT.keys()
    code = ExitCode.of_damage(is_damaged=different, is_incomplete="unknown" in counts)
    if as_json:
        print_array(records)
        return code
    page_output(code)
    for one in records:
        if not brief and one["result"] != "same":
            write(_line(one))
    found = ", ".join(f"{counts[one]:,} {one}" for one in ("same", *_MARKS) if counts[one])
    write(f"{'calls' if code else 'identical'}: {found or 'none'}\n")
    return code


def _record(before: _Call | None, after: _Call | None) -> Mapping[str, Any]:
    """Two aligned calls, or one that the other session does not have, with the names of members."""
    both = members_of(before.values, after.values) if before and after else []
    changed = [one.name for one in both if one.state == "different"]
    unknown = [one.name for one in both if one.state == "unknown"]
    result = "changed" if changed else "unknown" if unknown else "same"
    if not both:
        result = "only after" if before is None else "only before"
    sides = {"before": before and before.facts, "after": after and after.facts}
    return {"result": result, "changed": changed, "unknown": unknown, **sides}


def _digest(value: object) -> bytes:
    return blake2b(repr(value).encode("utf-8", "backslashreplace"), digest_size=8).digest()


def _line(one: Mapping[str, Any]) -> str:
    mark, colour = _MARKS[one["result"]]
    sides = one["before"], one["after"]
    numbers = " ".join(f"#{side['seq']}".rjust(6) if side else " " * 6 for side in sides)
    facts = [side for side in sides if side]
    outcomes = " → ".join(dict.fromkeys(side["outcome"] for side in facts))
    labels = {"changed": "", "unknown": "unknown: "}
    about = "".join(f"  [{labels[n]}{', '.join(one[n])}]" for n in labels if one[n])
    call = f"{facts[0]['tool_name']}  {facts[0]['arguments_preview']}"
    text = visible(f"{mark} {numbers}  {outcomes:<10}{about}  {call}")
    return f"{coloured(text, colour)}\n"
