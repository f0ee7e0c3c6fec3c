"""What an MCP server sends: each message read within bounds, as the SDK may read it.

The SDK passes over what is no message of JSON-RPC, and the call that it was to answer waits for its
deadline. Here an answer that cannot be used becomes an error of its call, at once.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

import mcp_types as types
import orjson
from pydantic import ValidationError

from capdex.errors import CapdexError, ExecutionFailed
from capdex.json import Json
from capdex.net.json_reply import parse
from capdex_router.bindings.http import LONG_BYTES, MIN_VALUE_BYTES
from capdex_router.policy.consent import clean
from capdex_router.policy.proposal import sorted_json
from capdex_router.policy.quoting import quoted

# The SDK compares a part of a message with every shape that it may have: a part that fits none
# takes 20 µs and 4 KB, so that a MiB of `{},` stopped the router for eight seconds.
MAX_PARTS: Final = 20_000
MAX_ASKED: Final = 256  # requests that are remembered: far more than calls at a time
SAID: Final = "said by the server"  # data of an error whose code the SDK has for ends of a session
SHOWN_BYTES: Final = 80  # of what a server sent
REPORT: Final = "report this to the author of the server, or use another version of it"
# The SDK says that these are not supported, if it is asked by their rules.
_LEAST: Final[Json] = {
    "elicitation/create": {"message": "", "requestedSchema": {"type": "object", "properties": {}}},
    "sampling/createMessage": {"messages": [], "maxTokens": 1},
}
_SDK_CODES: Final = (types.CONNECTION_CLOSED, types.INVALID_REQUEST)
_EXPECTED: Final = (
    'an object with "jsonrpc": "2.0", the id of the request, and a result or an error'
)
# Where the id stands in a text that is no JSON, as one with NaN or one that is cut: servers write
# it with the version before the result, or behind it.
_VERSION: Final = rb'\s*"jsonrpc"\s*:\s*"[^"]{0,16}"\s*'
_ID: Final = rb'\s*"id"\s*:\s*"?(\d{1,18})"?\s*'
_HEAD: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{(?:%s,|%s,){1,2}\s*"(?:result|error)"' % (_VERSION, _ID)
)
_TAIL: Final = re.compile(rb"(?:,%s|,%s){1,2}\}\s*$" % (_VERSION, _ID))


class Malformed(ValueError):
    """A text that is no message, in words that complete "it is …"; `id` if it is an answer."""

    def __init__(self, words: str, id_: object = None) -> None:
        super().__init__(words)
        self.id = id_


class Replies:
    """The requests to a server that wait for an answer, and its messages.

    `stray` completes "it sent …" with what came since the last answer that answers nothing.
    """

    def __init__(self, *asked: types.RequestId) -> None:
        self.stray = ""
        self._asked: dict[str, types.RequestId] = {}
        for id_ in asked:
            self.asked(id_)

    @property
    def waits(self) -> bool:
        """True if a request has no answer yet."""
        return bool(self._asked)

    def asked(self, id_: types.RequestId) -> None:
        """Note a request."""
        self._asked[_key(id_)] = id_
        if len(self._asked) > MAX_ASKED:
            del self._asked[next(iter(self._asked))]

    def read(self, data: bytes) -> types.JSONRPCMessage | None:
        """Return the message in a text, None if it is of no use.

        An answer that cannot be used is one with an error whose data is ours.
        """
        if not data.strip():
            return None
        try:
            content = read_message(data)
            message = types.jsonrpc_message_adapter.validate_python(content) if content else None
            if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                return message
            if self._answered(message.id) is not None:
                return message
            self.stray = f"an answer with the id {clean(repr(message.id))}, which no request has"
            if isinstance(message, types.JSONRPCError) and message.id is None:
                self.stray = f"an error without an id: {quoted(message.error.message)}"
        except ValueError as error:
            words = "no message of MCP" if isinstance(error, ValidationError) else str(error)
            asked = self._answered(getattr(error, "id", None))
            text = quoted(data.strip()[:SHOWN_BYTES].decode("utf-8", "replace"))
            if asked is not None:
                fault = malformed(f"it is {words}, and begins with {text}")
                problem = types.ErrorData(code=types.PARSE_ERROR, message="", data=fault)
                return types.JSONRPCError(jsonrpc="2.0", id=asked, error=problem)
            self.stray = f"what is {words}: {text}"
        return None

    def _answered(self, id_: object) -> types.RequestId | None:
        """Return the id of the request that waits with an id, and no longer does; None if none."""
        asked = self._asked.pop(_key(id_), None)
        if asked is not None:
            self.stray = ""
        return asked


def malformed(why: str) -> ExecutionFailed:
    """Return the error for an answer, where `why` says what came."""
    return ExecutionFailed(
        "the answer of the MCP server cannot be used",
        why=f"{why}; expected was {_EXPECTED}",
        fix=REPORT,
    )


def read_message(data: bytes) -> Json:
    """Return a message of a server as the SDK may read it, empty for a notification without use.

    What a server asks or tells loses its parameters, since nothing of them is used. Raises
    Malformed, also for an answer of too many parts.
    """
    try:
        raw = parse(data, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
    except ValueError as error:
        place = _HEAD.match(data[:256]) or _TAIL.search(data[-256:])
        raise Malformed(str(error), place and place[1] and place[1].decode()) from None
    if isinstance(raw, list):
        ids = (part.get("id") for part in raw if isinstance(part, dict) and "method" not in part)
        raise Malformed("a list, and MCP has no batches", next(ids, None))
    if not isinstance(raw, dict) or not raw.keys() & {"jsonrpc", "method", "result", "error"}:
        raise Malformed("no message of JSON-RPC")
    _check(raw)
    if raw.get("method") is not None:
        used = "id" in raw or raw["method"] == "notifications/tools/list_changed"
        raw = {name: raw[name] for name in ("jsonrpc", "id", "method") if used and name in raw}
        if raw.get("method") in _LEAST:
            raw["params"] = _LEAST[raw["method"]]
    if isinstance(raw.get("error"), dict) and raw["error"].get("code") in _SDK_CODES:
        raw["error"] |= {"data": SAID}
    result, typed = raw.get("result"), raw
    if isinstance(result, dict):  # of which the SDK takes the structured content as it is
        typed = {**raw, "result": {**result, "structuredContent": None}}
    if _parts(typed) > MAX_PARTS:
        raise Malformed(f"an answer of over {MAX_PARTS} parts", raw.get("id"))
    return raw


def asked_in(body: bytes) -> Replies | None:
    """Return what reads the replies to a request; None if there is to be none."""
    message = orjson.loads(body) if body else {}
    return Replies(message["id"]) if {"id", "method"} <= message.keys() else None


def answer_in(asked: Replies, data: bytes) -> bytes:
    """Return a message that came for a request, empty if it is of no use.

    Raises ExecutionFailed for what answers nothing, since the answer is lost then.
    """
    message = asked.read(data)
    if isinstance(message, types.JSONRPCError) and isinstance(message.error.data, CapdexError):
        raise message.error.data
    if asked.stray:
        raise malformed(f"it sent {asked.stray}")
    return b"" if message is None else text_of(message)


def text_of(message: types.JSONRPCMessage) -> bytes:
    """Return a message as JSON."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def output_of(result: types.CallToolResult) -> Json:
    """Return a result as structured content, `{"text": …}` or `{"content": […]}`.

    Structured content stands beside other content in one object if that says more than it.
    """
    structured = result.structured_content
    blocks = [x.model_dump(mode="json", by_alias=True, exclude_none=True) for x in result.content]
    if isinstance(structured, dict):
        lists = (value for value in structured.values() if isinstance(value, list))
        values = (structured, *structured.values(), *chain.from_iterable(lists))
        known = {sorted_json(value) for value in values}
        blocks = [block for block in blocks if not _repeats(block, known)]
        both: Json = {"content": blocks, "structuredContent": structured}
        return both if blocks else dict(structured)
    if all(block["type"] == "text" for block in blocks):
        return {"text": "\n".join(block["text"] for block in blocks)}
    return {"content": blocks}


def _repeats(block: Json, known: set[bytes]) -> bool:
    """Return True for a block that says one of the known values, or nothing.

    A text may be one as JSON. An image is none, since it is for the host to show.
    """
    if block["type"] != "text":
        return block["type"] != "image" and sorted_json(block) in known
    text = block["text"].strip()
    if not text or sorted_json(block["text"]) in known:
        return True
    try:
        value = parse(text.encode(), long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
    except ValueError:
        return False
    return sorted_json(value) in known


def _check(message: Json) -> None:
    """Raise Malformed for an object that is no message of JSON-RPC."""
    method, result, error = (message.get(name) for name in ("method", "result", "error"))
    id_ = message.get("id") if method is None else None
    if message.get("jsonrpc") != "2.0":
        raise Malformed('a message without "jsonrpc": "2.0"', id_)
    if method is not None:
        if not isinstance(method, str):
            raise Malformed("a message whose method is no text")
        return
    if result is None and error is None:
        raise Malformed("an answer with neither a result nor an error", id_)
    if result is not None and error is not None:
        raise Malformed("an answer with both a result and an error", id_)
    given = "error" if result is None else "result"
    if not isinstance(message[given], dict):
        raise Malformed(f"an answer whose {given} is no object", id_)
    if type(id_) not in (str, int) and (id_ is not None or error is None):
        raise Malformed("an answer whose id is neither a text nor an integer", id_)
    if error is not None:
        try:
            error["code"] = types.ErrorData.model_validate(error).code  # "-32000" is -32000
        except ValidationError:
            raise Malformed("an answer whose error has no code and message", id_) from None


def _key(id_: object) -> str:
    """Return what two ids of one request have in common: `3`, `"3"` and `3.0` are the same."""
    return str(int(id_) if isinstance(id_, float) and id_.is_integer() else id_)


def _parts(value: object) -> int:
    """Return how many values a JSON value has, or more than MAX_PARTS."""
    count, rest = 0, [value]
    while rest and count <= MAX_PARTS:
        part = rest.pop()
        count += 1
        if isinstance(part, dict | list):
            rest += part.values() if isinstance(part, dict) else part
    return count
