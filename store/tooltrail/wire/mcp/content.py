"""The blocks of a tool's result, both ways.

What a block says beside its content (annotations, `_meta`, a link's title and size) is kept as
extras; blocks of types that are not known stay as they are.
"""

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    MediaBlock,
    ProviderBlock,
    ResourceBlock,
    TextBlock,
)
from tooltrail.wire._writing import Writing
from tooltrail.wire.media_uris import decoded
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_TEXT = frozenset({"type", "text"})
_MEDIA = frozenset({"type", "data", "mimeType"})
_LINK = frozenset({"type", "uri", "name", "mimeType"})
_RESOURCE = frozenset({"type", "resource"})
_CONTENTS = frozenset({"uri", "mimeType", "text", "blob"})


def read_block(native: JsonValue) -> ContentBlock:
    """The block; a `ProviderBlock` where it is of another type, or not as its type says."""
    members = object_in(native)
    media_type = text_in(members.get("mimeType"))
    match members:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text=text, extras=others(members, _TEXT))
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            extras = others(members, _MEDIA)
            return MediaBlock(kind=kind, media_type=media_type, data=data, extras=extras)
        case {"type": "resource_link", "uri": str(uri)}:
            name, extras = text_in(members.get("name")), others(members, _LINK)
            return ResourceBlock(uri=uri, media_type=media_type, name=name, extras=extras)
        case {"type": "resource", "resource": dict(contents)}:
            return _read_resource(members, contents) or ProviderBlock(native=native)
        case _:
            return ProviderBlock(native=native)


def _read_resource(members: JsonObject, contents: JsonObject) -> ResourceBlock | None:
    extras = others(members, _RESOURCE)
    if beside := others(contents, _CONTENTS):
        extras["resource"] = beside
    media_type = text_in(contents.get("mimeType"))
    match contents.get("uri"), contents.get("text"), contents.get("blob"):
        case str(uri), str(text), None:
            return ResourceBlock(uri=uri, media_type=media_type, text=text, extras=extras)
        case str(uri), None, str(data):
            return ResourceBlock(uri=uri, media_type=media_type, data=data, extras=extras)
        case _:
            return None


def write_block(writing: Writing, block: ContentBlock, where: str, *, replays: bool) -> JsonObject:
    """The block on the wire; in words where the format has none for it.

    Args:
        writing: the export under way.
        block: what is to be written.
        where: it belongs to.
        replays: whether what an MCP server said for itself goes back to one.
    """
    if isinstance(block, ProviderBlock):
        if replays and isinstance(block.native, dict):
            return object_in(writing.clean.value(block.native, where))
        return _described(writing, block, where)
    native = _native(writing, block, where)
    if native is None:
        return _described(writing, block, where)
    extras = object_in(writing.clean.value(block.extras, where)) if replays else block.extras
    return writing.with_extras(native, extras, where, replays=replays)


def _described(writing: Writing, block: ContentBlock, where: str) -> JsonObject:
    return {"type": "text", "text": writing.clean.text(writing.described(block, where), where)}


def _native(
    writing: Writing, block: TextBlock | MediaBlock | ResourceBlock, where: str
) -> JsonObject | None:
    match block:
        case TextBlock(text=text):
            if block.is_refusal:
                writing.note("provider_data_dropped", where, "the refusal is a plain text here")
            return {"type": "text", "text": writing.clean.text(text, where)}
        case MediaBlock(kind="image" | "audio" as kind, media_type=str(media_type), data=str(data)):
            if decoded(data) is None:
                return None
            _note_lost(writing, where, uri=block.uri, name=block.name)
            media_type = writing.clean.text(media_type, where)
            return {"type": kind, "data": data, "mimeType": media_type}
        case ResourceBlock():
            return _link(writing, block, where) if block.is_link else _inside(writing, block, where)
        case _:
            return None


def _link(writing: Writing, block: ResourceBlock, where: str) -> JsonObject:
    uri = writing.clean.text(block.uri, where)
    if not block.name:
        writing.note("text_replaced", where, "the link has no name; its URI stands for it")
    name = writing.clean.text(block.name, where) if block.name else uri
    return {"type": "resource_link", "uri": uri, "name": name, **_type_of(writing, block, where)}


def _inside(writing: Writing, block: ResourceBlock, where: str) -> JsonObject | None:
    contents: JsonObject = {
        "uri": writing.clean.text(block.uri, where),
        **_type_of(writing, block, where),
    }
    if block.text is not None:
        _note_lost(writing, where, data=block.data, name=block.name)
        contents["text"] = writing.clean.text(block.text, where)
    elif block.data is not None and decoded(block.data) is not None:
        _note_lost(writing, where, name=block.name)
        contents["blob"] = block.data
    else:
        return None
    return {"type": "resource", "resource": contents}


def _type_of(writing: Writing, block: ResourceBlock, where: str) -> JsonObject:
    if block.media_type is None:
        return {}
    return {"mimeType": writing.clean.text(block.media_type, where)}


def _note_lost(writing: Writing, where: str, **members: str | None) -> None:
    if lost := [name for name, member in members.items() if member is not None]:
        writing.note("provider_data_dropped", where, f"of a block: {', '.join(lost)}")
