"""What Ollama keeps of a tool's schema: a few members, whose names are in its own types.

Source: `ToolFunctionParameters` and `ToolProperty` of the server's api/types.go. Everything else is
dropped before the model sees the tool, without a word.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject, list_in, object_in

_ROOT = frozenset({"type", "$defs", "items", "required", "properties"})
_PROPERTY = frozenset({"anyOf", "type", "items", "description", "enum", "properties", "required"})


def dropped_paths(schema: JsonObject) -> list[str]:
    """The members that the server drops, as paths from the root of the schema."""
    return list(_dropped(schema, _ROOT, ""))


def _dropped(schema: JsonValue, kept: frozenset[str], path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield path.removesuffix("/")
        return
    yield from (f"{path}{name}" for name in schema if name not in kept)
    for name, member in object_in(schema.get("properties")).items():
        yield from _dropped(member, _PROPERTY, f"{path}properties/{name}/")
    if "anyOf" in kept:
        for number, member in enumerate(list_in(schema.get("anyOf"))):
            yield from _dropped(member, _PROPERTY, f"{path}anyOf/{number}/")
