"""The types of Cohere's chat, as version 7.3 of its client has them (`ChatMessageV2`, `ToolV2`, …).

The client itself would bring a tokenizer and the client of a hub of models. Beside its types stand
what its server says of names (docs.cohere.com/reference/errors), and that every call has an id.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

Name = Annotated[str, Field(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]
Words = Annotated[str, Field(min_length=1)]


class Text(TypedDict):
    type: Literal["text"]
    text: str


class Thinking(TypedDict):
    type: Literal["thinking"]
    thinking: str


class ImageUrl(TypedDict):
    url: str
    detail: NotRequired[Literal["auto", "low", "high"]]


class Image(TypedDict):
    type: Literal["image_url"]
    image_url: ImageUrl


class Data(TypedDict):
    # Its own guides send the data of a tool as text; the client's type has an object alone.
    data: dict[str, Any] | str
    id: NotRequired[str]


class Document(TypedDict):
    type: Literal["document"]
    document: Data


class Asked(TypedDict):
    name: Name
    arguments: str


class Call(TypedDict):
    id: Words
    type: Literal["function"]
    function: Asked


class System(TypedDict):
    role: Literal["system"]
    content: Words | list[Text]


class User(TypedDict):
    role: Literal["user"]
    content: Words | list[Text | Image]


class Assistant(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[Words | list[Text | Thinking]]
    tool_plan: NotRequired[str]
    tool_calls: NotRequired[list[Call]]
    citations: NotRequired[list[dict[str, Any]]]


class Result(TypedDict):
    role: Literal["tool"]
    tool_call_id: Words
    content: Words | list[Text | Document]


Message = System | User | Assistant | Result


class Function(TypedDict):
    name: Name
    description: NotRequired[str]
    parameters: dict[str, Any]


class Tool(TypedDict):
    type: Literal["function"]
    function: Function


class ResponseFormat(TypedDict):
    type: Literal["json_object"]
    json_schema: NotRequired[dict[str, Any]]


ToolChoice = Literal["REQUIRED", "NONE"]
