"""Frames between a node and its worker processes: plain bytes and JSON, never pickle.

| work | request header (JSON) | request body | answer body |
|---|---|---|---|
| JUDGE | the announcement | the package | `Judgement.to_json` |
| READ_LOGS | endpoint, HTTP status, call id, address, blocks | a JSON-RPC reply | `log_frames` |

A request is the work (1 byte), the two lengths (4 bytes each, big-endian), header and body. An
answer is its status (1 byte), the length (4 bytes) and the body.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any, BinaryIO, Final

import orjson

from capdex.registry.events import Announcement

REQUEST: Final = Struct(">BII")
ANSWER: Final = Struct(">BI")

Frame = tuple[bytes, bytes]  # all before the body, and the body, which is not copied


class Work(IntEnum):
    """Kinds of work that a worker does."""

    JUDGE = 0
    READ_LOGS = 1


class Status(IntEnum):
    """How a worker's work ended."""

    DONE = 0
    OUT_OF_MEMORY = 1  # the worker ends after it
    FAILED = 2  # the parent does the work itself and meets the error there


def make_request(work: Work, header: Any, body: bytes) -> Frame:
    """Return the frame of a request."""
    text = orjson.dumps(header)
    return REQUEST.pack(work, len(text), len(body)) + text, body


def judge_request(announcement: Announcement, data: bytes) -> Frame:
    """Return the request to judge the bytes of a release."""
    *texts, digest = announcement
    return make_request(Work.JUDGE, [*texts, digest.hex()], data)


def read_announcement(header: list[Any]) -> Announcement:
    """Return the announcement in the header of a JUDGE request."""
    chain_id, publisher, cap_uri, semver, cid, digest = header
    return Announcement(chain_id, publisher, cap_uri, semver, cid, bytes.fromhex(digest))


def receive_request(stream: BinaryIO) -> tuple[Work, Any, bytes] | None:
    """Read a request from the parent; None at the end of the stream."""
    head = stream.read(REQUEST.size)
    if len(head) < REQUEST.size:
        return None
    work, header_bytes, body_bytes = REQUEST.unpack(head)
    header, body = stream.read(header_bytes), stream.read(body_bytes)
    if len(header) < header_bytes or len(body) < body_bytes:
        return None
    return Work(work), orjson.loads(header), body


def send_answer(stream: BinaryIO, status: Status, body: bytes = b"") -> None:
    """Write an answer to the parent."""
    stream.write(ANSWER.pack(status, len(body)) + body)
    stream.flush()
