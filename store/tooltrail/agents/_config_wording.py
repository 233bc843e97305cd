"""The problems of a configuration, from pydantic's errors, with the paths of its parts."""

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError

from tooltrail.agents.config_problems import Path, quoted
from tooltrail.agents.configuration import (
    AgentConfig,
    Context,
    Limits,
    Output,
    StaticContext,
    Tier,
)
from tooltrail.agents.schemas import UnsupportedSchemaError
from tooltrail.records.complaints import proposal, sentence_of

_SECTIONS: Mapping[str, type[BaseModel]] = {
    "tiers": Tier,
    "limits": Limits,
    "context": Context,
    "static": StaticContext,
    "output": Output,
}
"""Models of sections, by their keys."""

_NAMED = re.compile(r"`(\w+)`")


def complaints(error: ValidationError) -> Iterator[tuple[Path, str]]:
    """The path and the message of each error."""
    for details in error.errors(include_url=False):
        path, kind = details["loc"], details["type"]
        refusal = details.get("ctx", {}).get("error")
        if isinstance(refusal, UnsupportedSchemaError):
            for fault in refusal.faults:
                yield (*path, *read_pointer(fault.pointer)), fault.message
        elif kind == "missing":
            yield path[:-1], f"the key {quoted(str(path[-1]))} is missing"
        elif kind == "extra_forbidden":
            yield path, unknown_key(path)
        else:
            sentence = sentence_of(details, is_from_file=True)
            # An error about several keys has the position of the first of them.
            yield path or tuple(_NAMED.findall(sentence)[:1]), sentence


def unknown_key(path: Path) -> str:
    """The message about an unknown key of a section."""
    key = str(path[-1])
    section = next((one for one in reversed(path[:-1]) if isinstance(one, str)), "")
    fields = _SECTIONS.get(section, AgentConfig).model_fields
    known = [info.alias or name for name, info in fields.items()]
    return f"unknown key {quoted(key)}" + proposal(key, known)


def read_pointer(pointer: str) -> Path:
    """The keys of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
