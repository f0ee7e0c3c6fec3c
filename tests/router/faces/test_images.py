"""Images of a tool's answer are images for the host, and no text in base64 for its model."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import orjson
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex_router.faces.actions import Actions
from capdex_router.faces.server import build_server
from capdex_router.model.images import MAX_BYTES, without_images
from capdex_router.runtime import open_runtime
from tests.router.faces.conftest import ERAS, User

MIRROR = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("mirror.py"))]
)
BYTES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x0a\x00\x00\x00WEBP",
}
LARGE = (MAX_BYTES + 1, MAX_BYTES, 20)
ODD = {"content": [], "structuredContent": 5}
TEXT = {"type": "text", "text": "the page"}


def image(mime_type: str, data: bytes) -> dict[str, str]:
    return {"type": "image", "mimeType": mime_type, "data": b64encode(data).decode()}


@asynccontextmanager
async def host(tmp_path: Path, era: str) -> AsyncIterator[Client]:
    """A host of a router beside which the mirror is mounted."""
    async with open_runtime(tmp_path / "home", servers={"mirror": MIRROR}) as runtime:
        actions = Actions(
            runtime.catalog, runtime.search, runtime.invoker, runtime.results,
            servers=runtime.servers,
        )  # fmt: skip
        server = build_server(actions)
        async with Client(server, mode=ERAS[era], elicitation_callback=User()) as client:
            yield client


async def show(client: Client, *blocks: Any) -> tuple[Any, list[types.ImageContent], Any]:
    """The blocks that the text tells of, the images beside it, and the structured content."""
    asked = {"uri": "mcp:mirror#show", "input": {"blocks": blocks}}
    answer = await client.call_tool("call", asked)
    text, *images = answer.content
    assert isinstance(text, types.TextContent)
    told = orjson.loads(text.text)
    assert told["ok"]
    shown = [x for x in images if isinstance(x, types.ImageContent)]
    assert len(shown) == len(images)
    return told["output"], shown, answer.structured_content


async def test_images_stand_beside_the_text_which_says_where_they_stood(
    tmp_path: Path, era: str
) -> None:
    blocks = [image(mime_type, begin + bytes(30_000)) for mime_type, begin in BYTES.items()]
    async with host(tmp_path, era) as client:
        told, shown, structured = await show(client, blocks[0], TEXT, *blocks[1:])
    assert [(x.mime_type, x.data) for x in shown] == [(x["mimeType"], x["data"]) for x in blocks]
    marks: list[Any] = [
        {"type": "image", "mimeType": x, "bytes": 30_000 + len(y), "shown": f"image {number} below"}
        for number, (x, y) in enumerate(BYTES.items(), 1)
    ]
    assert told == {"content": [marks[0], TEXT, *marks[1:]]}
    assert structured is None  # hosts would hand on that alone


async def test_what_a_model_cannot_be_shown_stays_in_the_text(tmp_path: Path, era: str) -> None:
    blocks = [
        TEXT,
        image("image/png", b"<svg>"),
        image("image/jpeg", BYTES["image/png"]),
        image("image/svg+xml", b"<svg>"),
        image("image/png", b""),
        image("image/png", BYTES["image/png"]) | {"data": "iVBORw0KGgo*"},
        {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": "iVBO"}},
    ]
    async with host(tmp_path, era) as client:
        told, shown, structured = await show(client, *blocks)
    assert told == {"content": blocks}
    assert shown == []
    assert structured == {"ok": True, "output": told}


def test_an_image_that_structured_content_repeats_is_shown_once() -> None:
    block, other = image("image/png", BYTES["image/png"]), image("image/png", b"")
    structured = {"content": [block, other, 1, {"data": []}], "name": "a"}
    output, shown = without_images({"content": [block], "structuredContent": structured})
    assert [x.data for x in shown] == [block["data"]]
    mark = {"type": "image", "mimeType": "image/png", "bytes": 8, "shown": "image 1 below"}
    assert output["content"] == [mark]
    assert output["structuredContent"] == structured | {"content": [mark, other, 1, {"data": []}]}


def test_what_is_over_the_limit_stays_and_what_fits_beside_it_is_shown() -> None:
    begin = BYTES["image/png"]
    over, most, one = (image("image/png", begin + bytes(n - len(begin))) for n in LARGE)
    assert without_images({"content": [over]}) == ({"content": [over]}, ())
    output, shown = without_images({"content": [over, most, one]})
    assert [x.data for x in shown] == [most["data"]]
    assert output["content"][0] == over
    assert output["content"][2] == one


@pytest.mark.parametrize(
    "output", [{}, {"text": "a"}, {"content": "a"}, {"content": [1, None]}, ODD]
)
def test_an_output_without_images_stays_as_it_is(output: Any) -> None:
    assert without_images(output) == (output, ())
