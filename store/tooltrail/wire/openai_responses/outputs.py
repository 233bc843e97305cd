"""The outputs of calls, as items that the caller sends, into results.

Only the shell and `apply_patch` can say natively that they failed. Elsewhere a prefix of the text
says it; without one nothing is known of how the call came out.
"""

import json

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    InvalidRecordError,
    MediaBlock,
    ProviderBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    read_json,
)
from tooltrail.wire._reading import result_of_text
from tooltrail.wire.media_uris import media_of_uri
from tooltrail.wire.members import (
    JsonObject,
    list_in,
    object_in,
    objects_in,
    others,
    spelled,
    text_in,
)
from tooltrail.wire.openai_responses.calls import other_members
from tooltrail.wire.openai_responses.parts import read_part

OUTPUT_TYPES = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
    }
)
"""Items that the caller answers calls with."""

_STDOUT = "stdout"


def read_output(item: JsonObject, local_shells: dict[str, str]) -> ResultBlock:
    """The result that an item of `OUTPUT_TYPES` brings.

    Args:
        item: of a request.
        local_shells: the `call_id` of each call to the local shell by the id of its item, which
            its output may name it by.
    """
    match item.get("type"):
        case "shell_call_output":
            return _read_shell(item)
        case "apply_patch_call_output":
            return _read_patch(item)
        case "computer_call_output":
            return _read_screenshot(item)
        case "tool_search_output":
            return _read_found_tools(item)
        case "local_shell_call_output":
            named = text_in(item.get("id")) or ""
            call_id = local_shells.get(named, named) or None
            content = tuple(_texts(local_shell_text(item.get("output"))))
            result = result_of_text(call_id, None, content)
            return result.model_copy(update={"extras": other_members(item, "id", "output")})
        case _:
            return _read_function(item)


def _read_function(item: JsonObject) -> ResultBlock:
    output = item.get("output")
    content = (
        tuple(_texts(output))
        if isinstance(output, str)
        else tuple(read_part(part) for part in list_in(output))
    )
    if not isinstance(output, str | list | None):
        content = (ProviderBlock(native=output),)
    call_id, name = text_in(item.get("call_id")), text_in(item.get("name"))
    result = result_of_text(call_id, name, content)
    return result.model_copy(update={"extras": other_members(item, "output", "name")})


def _read_shell(item: JsonObject) -> ResultBlock:
    """Text is everything that the commands wrote; how each of them ended is in the structured."""
    entries = objects_in(item.get("output"))
    texts: list[str] = []
    for entry in entries:
        pieces = (entry.get("stdout"), entry.get("stderr"))
        texts.extend(piece for piece in pieces if isinstance(piece, str) and piece)
    return ResultBlock(
        call_id=text_in(item.get("call_id")),
        status=_shell_status(entries),
        content=tuple(_texts("\n".join(texts))),
        structured=item.get("output"),
        has_structured=True,
        extras=other_members(item, "output"),
    )


def _shell_status(entries: list[JsonObject]) -> ResultStatus:
    outcomes = [object_in(entry.get("outcome")) for entry in entries]
    if any(outcome.get("type") == "timeout" for outcome in outcomes):
        return "timeout"
    codes = [outcome.get("exit_code") for outcome in outcomes]
    if not codes or any(not isinstance(code, int) for code in codes):
        return "unknown"
    return "error" if any(codes) else "ok"


def _read_patch(item: JsonObject) -> ResultBlock:
    status = item.get("status")
    known: ResultStatus = "error" if status == "failed" else "unknown"
    return ResultBlock(
        call_id=text_in(item.get("call_id")),
        status="ok" if status == "completed" else known,
        content=tuple(_texts(item.get("output"))),
        extras=other_members(item, "output", "status"),
    )


def _read_screenshot(item: JsonObject) -> ResultBlock:
    output = object_in(item.get("output"))
    uri, file_id = output.get("image_url"), output.get("file_id")
    block: ContentBlock = ProviderBlock(native=item.get("output"))
    if isinstance(uri, str):
        block = media_of_uri("image", uri)
    elif isinstance(file_id, str):
        block = MediaBlock(kind="image", uri=f"file:{file_id}")
    if isinstance(block, MediaBlock):
        known = frozenset({"type", "image_url", "file_id"})
        block = block.model_copy(update={"extras": others(output, known)})
    return ResultBlock(
        call_id=text_in(item.get("call_id")),
        status="unknown",
        content=(block,),
        extras=other_members(item, "output"),
    )


def _read_found_tools(item: JsonObject) -> ResultBlock:
    return ResultBlock(
        call_id=text_in(item.get("call_id")),
        status="ok",
        structured=item.get("tools"),
        has_structured=True,
        extras=other_members(item, "tools", "execution"),
    )


def local_shell_text(output: JsonValue) -> str:
    """What the local shell wrote: its output is JSON, of which a lone `stdout` is plain text."""
    if not isinstance(output, str):
        return "" if output is None else json.dumps(output, ensure_ascii=False)
    match _json_of(output):
        case {"stdout": str(text), **rest} if not rest:
            return text
        case _:
            return output


def local_shell_output(text: str) -> str:
    """The JSON text of what the local shell wrote; `local_shell_text` gives it back."""
    if _json_of(text) is not None and local_shell_text(text) == text:
        return text
    return spelled({_STDOUT: text})


def _json_of(text: str) -> JsonValue:
    try:
        return read_json(text)
    except InvalidRecordError:
        return None


def _texts(output: JsonValue) -> list[ContentBlock]:
    """The one text of an output, or none where it is empty."""
    return [TextBlock(text=output)] if isinstance(output, str) and output else []
