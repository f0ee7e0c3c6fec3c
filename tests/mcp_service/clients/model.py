"""A model by script behind the wire format of OpenAI's chat completions, on loopback.

Its Nth answer is the Nth step of its script: a call of a tool, or at last a sentence. It keeps what
reached it: the functions that it may call, and what the framework handed to it for each call.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LAST = "That is all."


@dataclass(frozen=True)
class Step:
    """A call of a tool. `name` is how a server calls it; frameworks put something before that."""

    name: str
    given: dict[str, Any]


@dataclass
class Model:
    """What a model was asked, and what it answers."""

    script: Sequence[Step]
    functions: list[dict[str, Any]] = field(default_factory=list)
    handed: list[str] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    url: str = ""

    def answer(self, asked: dict[str, Any], size: int) -> dict[str, Any]:
        """Return the next message of the model to a request of so many characters."""
        if not asked.get("tools"):  # a framework that asks for a title, a plan or a summary
            return {"role": "assistant", "content": LAST}
        self.functions = [tool["function"] for tool in asked["tools"]]
        if self.requests:
            self.handed.append(_since(asked["messages"]))
        self.requests.append(size)
        number = len(self.requests)
        if number > len(self.script):
            return {"role": "assistant", "content": LAST}
        step = self.script[number - 1]
        function = {"name": self._named(step.name), "arguments": json.dumps(step.given)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _named(self, name: str) -> str:
        """Return the function that stands for a tool: its name, or one that ends with it."""
        names = [function["name"] for function in self.functions]
        if name in names:
            return name
        ends = re.compile(rf"(^|[^a-zA-Z0-9]){re.escape(name)}$")
        return next((x for x in names if ends.search(x)), name)


def _since(messages: Sequence[dict[str, Any]]) -> str:
    """Return the text of what was said after the model's last answer."""
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    return "\n".join(text_of(message.get("content")) for message in messages[last + 1 :])


def text_of(content: Any) -> str:
    """Return the text of a message, whether it stands alone or in parts."""
    if isinstance(content, list):
        return "".join(text_of(part.get("text", "")) for part in content)
    return str(content or "")


@contextmanager
def serving(script: Sequence[Step]) -> Iterator[Model]:
    """Serve a model on a free port; `url` is the address that ends with /v1."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer with a completion, in one piece or as a stream."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = json.loads(body)
            message = model.answer(asked, len(body.decode()))
            kind, data = _stream(message) if asked.get("stream") else _whole(message)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


ABOUT = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _whole(message: dict[str, Any]) -> tuple[str, bytes]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    said = {**ABOUT, "object": "chat.completion", "choices": [choice], "usage": USAGE}
    return "application/json", json.dumps(said).encode()


def _stream(message: dict[str, Any]) -> tuple[str, bytes]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls", []))]
    delta = message | ({"tool_calls": calls} if calls else {})
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": USAGE},
    ]
    events = [json.dumps({**ABOUT, "object": "chat.completion.chunk", **x}) for x in chunks]
    return "text/event-stream", "".join(f"data: {x}\n\n" for x in [*events, "[DONE]"]).encode()
