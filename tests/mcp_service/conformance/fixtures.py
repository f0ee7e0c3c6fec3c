"""What the conformance suite calls: its tools, resources and prompts, beside ours on our server.

The suite's scenarios name them (`test_simple_text` …). Requests for anything else go to the
server's own handlers, and lists have both.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

Context = ServerRequestContext[Any]


def _png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    pixel = chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + pixel + chunk(b"IEND", b"")).decode()


def _wav() -> str:
    """An empty sound."""
    form = (
        b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data\x00\x00\x00\x00"
    )
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(form)) + form).decode()


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


IMAGE: Final = types.ImageContent(type="image", data=_png(), mime_type="image/png")
AUDIO: Final = types.AudioContent(type="audio", data=_wav(), mime_type="audio/wav")

CONTENTS: Final[dict[str, list[types.ContentBlock]]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        IMAGE,
        _embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
    "test_trigger_prompt_change": [_text("A package with a prompt is published.")],
    "test_error_handling": [_text("This tool intentionally returns an error for testing")],
}

SCHEMA_TOOL: Final = types.Tool(
    name="json_schema_2020_12_tool",
    description="A fixture.",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)

RESOURCES: Final[dict[str, types.TextResourceContents | types.BlobResourceContents]] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=IMAGE.data
    ),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="It changes."
    ),
}

PROMPTS: Final = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
}


def with_fixtures(server: Server[Any], publish: Callable[[], None]) -> Server[Any]:
    """Return the server, which now also has what the scenarios call.

    `publish` adds a release to the index: what a scenario wants to be notified of.
    """

    async def _call_tool(own: Any, context: Context, given: types.CallToolRequestParams) -> Any:
        if given.name not in CONTENTS:
            return await own(context, given)
        if given.name == "test_trigger_prompt_change":
            publish()
        failed = given.name == "test_error_handling"
        return types.CallToolResult(content=CONTENTS[given.name], is_error=failed)

    _beside(server, "tools/list", types.PaginatedRequestParams, _list_tools)
    _beside(server, "tools/call", types.CallToolRequestParams, _call_tool)
    _beside(server, "resources/list", types.PaginatedRequestParams, _list_resources)
    _beside(server, "resources/templates/list", types.PaginatedRequestParams, _list_templates)
    _beside(server, "resources/read", types.ReadResourceRequestParams, _read_resource)
    _beside(server, "resources/subscribe", types.SubscribeRequestParams, _watch)
    _beside(server, "resources/unsubscribe", types.UnsubscribeRequestParams, _watch)
    _beside(server, "prompts/list", types.PaginatedRequestParams, _list_prompts)
    _beside(server, "prompts/get", types.GetPromptRequestParams, _get_prompt)
    _beside(server, "completion/complete", types.CompleteRequestParams, _complete)
    return server


def _beside(server: Server[Any], method: str, params: Any, handle: Callable[..., Any]) -> None:
    """Put a fixture's handler before the server's own, if the server has that feature at all."""
    entry = server.get_request_handler(method)
    if entry is None:
        return

    async def handler(context: Context, given: Any) -> Any:
        return await handle(entry.handler, context, given)

    server.add_request_handler(method, params, handler)


async def _list_tools(own: Any, context: Context, given: Any) -> Any:
    found: types.ListToolsResult = await own(context, given)
    tools = [
        types.Tool(name=name, description="A fixture.", input_schema={"type": "object"})
        for name in CONTENTS
    ]
    return found.model_copy(update={"tools": [*found.tools, *tools, SCHEMA_TOOL]})


async def _list_resources(own: Any, context: Context, given: Any) -> Any:
    found: types.ListResourcesResult = await own(context, given)
    resources = [
        types.Resource(uri=uri, name=uri, description="A fixture.", mime_type=contents.mime_type)
        for uri, contents in RESOURCES.items()
    ]
    return found.model_copy(update={"resources": [*resources, *found.resources]})


async def _list_templates(own: Any, context: Context, given: Any) -> Any:
    found: types.ListResourceTemplatesResult = await own(context, given)
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", description="A fixture."
    )
    update = {"resource_templates": [*found.resource_templates, template]}
    return found.model_copy(update=update)


async def _read_resource(own: Any, context: Context, given: types.ReadResourceRequestParams) -> Any:
    contents = RESOURCES.get(given.uri)
    if given.uri.startswith("test://template/"):
        key = given.uri.split("/")[3]
        text = f'{{"id":"{key}","templateTest":true,"data":"Data for ID: {key}"}}'
        contents = types.TextResourceContents(
            uri=given.uri, mime_type="application/json", text=text
        )
    if contents is None:
        return await own(context, given)
    return types.ReadResourceResult(contents=[contents])


async def _watch(own: Any, context: Context, given: Any) -> Any:
    """Subscribe to one of our resources in place of a fixture."""
    if given.uri in RESOURCES:
        given = given.model_copy(update={"uri": "capdex://note"})
    return await own(context, given)


async def _list_prompts(own: Any, context: Context, given: Any) -> Any:
    found: types.ListPromptsResult = await own(context, given)
    prompts = [
        types.Prompt(
            name=name,
            description="A fixture.",
            arguments=[types.PromptArgument(name=x, required=True) for x in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]
    return found.model_copy(update={"prompts": [*found.prompts, *prompts]})


async def _get_prompt(own: Any, context: Context, given: types.GetPromptRequestParams) -> Any:
    if given.name not in PROMPTS:
        return await own(context, given)
    values = given.arguments or {}
    prompts: dict[str, Callable[[], list[types.ContentBlock]]] = {
        "test_simple_prompt": lambda: [_text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": lambda: [
            _text(f"Prompt with arguments: arg1='{values['arg1']}', arg2='{values['arg2']}'")
        ],
        "test_prompt_with_embedded_resource": lambda: [
            _embedded(
                values["resourceUri"], "text/plain", "Embedded resource content for testing."
            ),
            _text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": lambda: [IMAGE, _text("Please analyze the image above.")],
    }
    messages = [types.PromptMessage(role="user", content=said) for said in prompts[given.name]()]
    return types.GetPromptResult(messages=messages)


async def _complete(own: Any, context: Context, given: types.CompleteRequestParams) -> Any:
    if isinstance(given.ref, types.PromptReference) and given.ref.name in PROMPTS:
        return types.CompleteResult(completion=types.Completion(values=["paris", "park"]))
    return await own(context, given)
