"""The wire formats that hosts speak: OpenAI's responses, Anthropic's messages, Gemini's contents.

Each answers as a stream of events where it is asked for one. Functions that are not of the server
called capdex are the host's own, and a request without any of ours gets a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from capdex.json import Json
from tests.mcp_service.clients.model import LAST, Model, chat

JSON, EVENTS = "application/json", "text/event-stream"
USAGE = {"input_tokens": 1, "output_tokens": 1}


def dialect(model: Model, path: str, asked: Json, size: int) -> tuple[str, bytes]:
    """Answer a request of any host."""
    route = path.partition("?")[0]
    if route.endswith("/responses"):
        return _responses(model, asked, size)
    if route.endswith("/messages"):
        return _messages(model, asked, size)
    if "enerateContent" in route:
        return _contents(model, asked, size, stream="stream" in route)
    if route.endswith("/chat/completions"):
        ours = [tool for tool in asked.get("tools", []) if "capdex" in tool["function"]["name"]]
        return chat(model, path, asked | {"tools": ours}, size)
    return JSON, json.dumps({"input_tokens": 1, "totalTokens": 1}).encode()  # counts of tokens


def _next(
    model: Model, functions: Sequence[Json], said: Sequence[str], size: int
) -> tuple[str, Json] | None:
    """Return what the model calls next; None too where none of the functions is ours."""
    return model.next(list(functions), "\n".join(said), size) if functions else None


def _ours(functions: Iterable[Json]) -> list[Json]:
    return [x for x in functions if "capdex" in x["name"]]


def _events(events: Sequence[tuple[str, Json]]) -> tuple[str, bytes]:
    lines = (f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events)
    return EVENTS, "".join(lines).encode()


def texts(value: Any) -> Iterator[str]:
    """Yield the texts in a result of a tool, which hosts write as a string or in blocks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for block in value:
            yield from texts(block)
    elif isinstance(value, dict):
        yield from texts(value.get("text", ""))


def _responses(model: Model, asked: Json, size: int) -> tuple[str, bytes]:
    spaces = [x for x in asked.get("tools", []) if x["type"] == "namespace"]
    nothing: Json = {"name": "", "tools": []}
    within = next((x for x in spaces if "capdex" in x["name"]), nothing)
    given = asked["input"] if isinstance(asked["input"], list) else []
    done: list[Json] = [x for x in given if x.get("type") == "function_call_output"]
    said = list(texts(done[-1]["output"])) if done else []
    wanted = _next(model, within["tools"], said, size)
    number = len(model.requests)
    if wanted is None:
        content = [{"type": "output_text", "text": LAST, "annotations": []}]
        item: Json = {"type": "message", "id": "msg", "role": "assistant", "content": content}
    else:
        name, arguments = wanted
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": json.dumps(arguments),
            "namespace": within["name"],
        }
    item |= {"status": "completed"}
    details = {"cached_tokens": 0}, {"reasoning_tokens": 0}
    usage = USAGE | {
        "total_tokens": 2,
        "input_tokens_details": details[0],
        "output_tokens_details": details[1],
    }
    about = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-4o"}
    whole = about | {"status": "completed", "output": [item], "usage": usage}
    begun = about | {"status": "in_progress", "output": []}
    steps: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return _events([(step["type"], step | {"sequence_number": i}) for i, step in enumerate(steps)])


def _messages(model: Model, asked: Json, size: int) -> tuple[str, bytes]:
    said: list[str] = []
    for message in asked["messages"]:  # reminders of the host may follow the results
        if message["role"] == "assistant":
            said = []
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part.get("type") == "tool_result":
                said += texts(part.get("content"))
    wanted = _next(model, _ours(asked.get("tools", [])), said, size)
    number = len(model.requests)
    empty: Json = {"type": "text", "text": ""}
    block: Json = {"type": "text", "text": LAST}
    delta: Json = {"type": "text_delta", "text": LAST}
    if wanted is not None:
        name, arguments = wanted
        empty = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        block = empty | {"input": arguments}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    reason = "end_turn" if wanted is None else "tool_use"
    whole: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", "claude"),
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": USAGE,
    }
    if not asked.get("stream"):
        return JSON, json.dumps(whole).encode()
    begun = whole | {"content": [], "stop_reason": None}
    ended = {"stop_reason": reason, "stop_sequence": None}
    steps: list[Json] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": USAGE},
        {"type": "message_stop"},
    ]
    return _events([(step["type"], step) for step in steps])


def _contents(model: Model, asked: Json, size: int, *, stream: bool) -> tuple[str, bytes]:
    functions = _ours(
        x for tool in asked.get("tools", []) for x in tool.get("functionDeclarations", [])
    )
    answers = [
        part["functionResponse"]["response"]
        for part in asked["contents"][-1].get("parts", [])
        if "functionResponse" in part
    ]
    said = [str(answer.get("output", answer.get("error", answer))) for answer in answers]
    wanted = _next(model, functions, said, size)
    part: Json = {"text": LAST}
    if wanted is not None:
        name, arguments = wanted
        part = {"functionCall": {"name": name, "args": arguments}}
    elif "responseJsonSchema" in asked.get("generationConfig", {}):  # it asks who speaks next
        part = {"text": json.dumps({"reasoning": LAST, "next_speaker": "user"})}
    content = {"role": "model", "parts": [part]}
    whole = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    if not stream:
        return JSON, json.dumps(whole).encode()
    return EVENTS, f"data: {json.dumps(whole)}\r\n\r\n".encode()
