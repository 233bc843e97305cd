"""Tools by names that every format takes: `fs:read` is `fs_read` to a model."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from tooltrail.agents.submission import SUBMIT_RESULT
from tooltrail.records import ToolDefinition
from tooltrail.wire import wire_format
from tooltrail.wire.capabilities import COMMON_NAME

_ODD = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(names: Iterable[str], format_name: str) -> Mapping[str, str]:
    """The names by which tools are offered to a model, by their own names; all differ.

    Odd characters become underscores. Where that would make two names one, or is no name yet, the
    name is left to the wire format, which gives each one of its own.

    Args:
        names: of tools, as configurations have them; none stands twice.
        format_name: of the wire format.
    """
    own = list(names)
    plain = {name: _ODD.sub("_", name) for name in own}
    counts = Counter((*plain.values(), SUBMIT_RESULT))
    offered = {
        name: one if counts[one] == 1 and COMMON_NAME.fullmatch(one) else name
        for name, one in plain.items()
    }
    definitions = [ToolDefinition(name=one) for one in offered.values()]
    mapped = wire_format(format_name).write_tools(definitions).names
    return {name: mapped.get(one, one) for name, one in offered.items()}
