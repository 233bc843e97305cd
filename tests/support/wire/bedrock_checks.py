"""The rules of Bedrock Converse for a history, in addition to AWS's model of the service."""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.support.wire.sendable import JsonObject, repeated

_DOCUMENT_NAME = re.compile(r"(?:[a-zA-Z0-9()\[\]-]| (?! ))+")


def bedrock_rules(messages: Sequence[JsonObject]) -> Iterator[str]:
    """All results come first in the message after the calls; no text is blank, ids are unique."""
    roles = [message.get("role") for message in messages]
    if roles and roles[0] != "user":
        yield f"the roles do not begin with the user: {roles}"
    if any(one == other for one, other in pairwise(roles)):
        yield f"the roles do not take turns: {roles}"
    asked: list[Any] = []
    ids: list[Any] = []
    names: list[Any] = []
    for number, message in enumerate(messages):
        where, blocks = f"messages[{number}]", _blocks(message)
        yield from _answers(blocks, asked, where)
        calls = [one["toolUse"] for one in blocks if "toolUse" in one]
        asked = [one["toolUseId"] for one in calls if one.get("type") != "server_tool_use"]
        ids += asked
        results = [one["toolResult"] for one in blocks if "toolResult" in one]
        shown = [part for one in results for part in one["content"]]
        names += [one["document"]["name"] for one in (*blocks, *shown) if "document" in one]
        yield from _message(message, blocks, results, where)
    if asked:
        yield f"there are no results of {asked}"
    yield from repeated(ids, "id")
    yield from repeated([name.lower() for name in names], "name of a document")
    for name in names:
        if not _DOCUMENT_NAME.fullmatch(name):
            yield f"the name {name!r} of a document is not legal"


def _blocks(message: JsonObject) -> list[Any]:
    return list(message.get("content") or ())


def _answers(blocks: list[Any], asked: list[Any], where: str) -> Iterator[str]:
    if asked or (blocks and "toolResult" in blocks[0]):
        first = blocks[: len(asked)]
        if [one.get("toolResult", {}).get("toolUseId") for one in first] != asked:
            yield f"{where} does not answer {asked}, in this order, before all else"


def _message(
    message: JsonObject, blocks: list[Any], results: list[Any], where: str
) -> Iterator[str]:
    if not blocks:
        yield f"{where} has no content"
    kinds = {name for block in blocks for name in block}
    if "document" in kinds and "text" not in kinds:
        yield f"{where} has a document without a text beside it"
    if message.get("role") == "assistant" and kinds & {"image", "document"}:
        yield f"{where} has media, and is not of the user"
    for result in results:
        kinds = {name for part in result["content"] for name in part}
        if result.get("status") == "error" and kinds - {"text", "json"}:
            yield f"{where}: a failure has {sorted(kinds)}, not text alone"
        if not result["content"]:
            yield f"{where}: a result has no content"
        blocks = [*blocks, *result["content"]]
    for block in blocks:
        if not str(block.get("text", "-")).strip():
            yield f"{where} has a blank text"
        if "json" in block and not isinstance(block["json"], dict):
            yield f"{where} has JSON that is not an object"
