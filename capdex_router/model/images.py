"""Images in answers of tools: a host shows them to its model, to whom base64 says nothing."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capdex.json import Json
from capdex_router.model.refs import structured_of

MAX_BYTES: Final = 3_000_000  # of all images of an answer; models refuse one over about 3.7 million
_BEGINNINGS: Final[Mapping[str, bytes]] = {  # of the formats that models read
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF.{4}WEBP",
}


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a tool's answer, in base64."""

    data: str
    mime_type: str


def without_images(output: Json) -> tuple[Json, tuple[Image, ...]]:
    """Return an output without its images, each replaced by what it is, and the images in order.

    They are content blocks of the type `image` (MCP 2025-06-18, Tool Result). One that is too
    large, of another format, or whose bytes do not begin as its format does, stays where it is.
    """
    blocks, beside = output.get("content"), structured_of(output)
    if not isinstance(blocks, list) or (len(output) != 1 and beside is output):
        return output, ()
    images: list[Image] = []
    marks: dict[str, Json] = {}
    told, left = [], MAX_BYTES
    for block in blocks:
        if size := _size(block, left):
            left -= size
            images.append(Image(block["data"], block["mimeType"]))
            what = {"type": "image", "mimeType": block["mimeType"], "bytes": size}
            told.append(what | {"shown": f"image {len(images)} below"})
            marks[block["data"]] = told[-1]
        else:
            told.append(block)
    if beside is output:
        return {"content": told}, tuple(images)
    structured = {
        name: [marks.get(str(x.get("data")), x) if isinstance(x, dict) else x for x in value]
        if isinstance(value, list)
        else value
        for name, value in beside.items()
    }
    return {"content": told, "structuredContent": structured}, tuple(images)


def image_of(data: bytes) -> Json | None:
    """Return the content block of an image that a model can be shown; None for other bytes."""
    for kind, beginning in _BEGINNINGS.items():
        if len(data) <= MAX_BYTES and re.match(beginning, data, re.DOTALL):
            return {"type": "image", "mimeType": kind, "data": b64encode(data).decode()}
    return None


def _size(block: object, most: int) -> int:
    """Return how many bytes an image has that a model can be shown; 0 for anything else."""
    if not isinstance(block, dict) or block.get("type") != "image":
        return 0
    data, beginning = block.get("data"), _BEGINNINGS.get(str(block.get("mimeType")))
    if not isinstance(data, str) or beginning is None or len(data) > most * 4 // 3 + 4:
        return 0
    try:
        read = b64decode(data, validate=True)
    except (Error, ValueError):
        return 0
    return len(read) if len(read) <= most and re.match(beginning, read, re.DOTALL) else 0
