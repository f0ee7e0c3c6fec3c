"""A model by script behind the wire format of OpenAI's chat completions, on loopback.

Its Nth answer is the Nth step of its script: a call of a tool, or at last a sentence. It keeps what
reached it: the functions that it may call, and what the framework handed to it for each call.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

LAST = "That is all."


@dataclass(frozen=True)
class Step:
    """A call of a tool. `name` is how a server calls it; frameworks put something before that.

    `before` is what happens in the world before the model says so.
    """

    name: str
    given: Json
    before: Callable[[], None] | None = None


@dataclass
class Model:
    """What a model was asked, and what it answers.

    `fills` gives each parameter that a step leaves out its default, or an empty value: a model does
    so where its framework wants all of them.
    """

    script: Sequence[Step]
    fills: bool = False
    functions: list[Json] = field(default_factory=list)
    handed: list[str] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    url: str = ""

    def next(self, functions: list[Json], said: str, size: int) -> tuple[str, Json] | None:
        """Return the function that the model calls now and its arguments; None: it is done.

        `functions` have names and parameters, `said` is what came since its last answer.
        """
        self.functions = functions
        if self.requests:
            self.handed.append(said)
        self.requests.append(size)
        number = len(self.requests)
        step = self.script[number - 1] if number <= len(self.script) else self._last()
        if step is None:
            return None
        if step.before is not None:
            step.before()
        function = self._meant(step.name)
        filled = _filled(function["parameters"]) if self.fills else {}
        return function["name"], filled | step.given

    def _last(self) -> Step | None:
        """Return how the model ends: by a sentence, or the function that a framework has for it."""
        ends = any(function["name"] == "final_answer" for function in self.functions)
        return Step("final_answer", {"answer": LAST}) if ends else None

    def _meant(self, name: str) -> Json:
        """Return the function that stands for a tool: of its name, or of one that ends with it."""
        ends = re.compile(rf"(^|[^a-zA-Z0-9]){re.escape(name)}$")
        exact = [function for function in self.functions if function["name"] == name]
        return (exact or [x for x in self.functions if ends.search(x["name"])])[0]


def _filled(schema: Json) -> Json:
    """Return the default of each property, or an empty value of its type."""
    empty: Json = {
        "string": "",
        "array": [],
        "object": {},
        "boolean": False,
        "integer": 5,
        "number": 5,
    }
    filled = {}
    for name, one in schema.get("properties", {}).items():
        types = one.get("type", "string")
        filled[name] = one.get("default", empty[types[0] if isinstance(types, list) else types])
    return filled


def _since(messages: Sequence[Json]) -> str:
    """Return the text of what was said after the model's last answer."""
    said = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    last = said[-1] if said else len(messages) - 2  # a framework forgets what it did not carry out
    return "\n".join(text_of(message.get("content")) for message in messages[last + 1 :])


def text_of(content: Any) -> str:
    """Return the text of a message, whether it stands alone or in parts."""
    if isinstance(content, list):
        return "".join(text_of(part.get("text", "")) for part in content)
    return str(content or "")


def chat(model: Model, path: str, asked: Json, size: int) -> tuple[str, bytes]:
    """Answer a request for a chat completion, in one piece or as a stream."""
    message: Json = {"role": "assistant", "content": LAST}
    if asked.get("tools"):  # without them a framework asks for a title, a plan or a summary
        functions = [tool["function"] for tool in asked["tools"]]
        said = _since(asked["messages"]) if model.requests else ""
        wanted = model.next(functions, said, size)
        if wanted is not None:
            function = {"name": wanted[0], "arguments": json.dumps(wanted[1])}
            call = {"id": f"call_{len(model.requests)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return _stream(message) if asked.get("stream") else _whole(message)


Dialect = Callable[[Model, str, Json, int], tuple[str, bytes]]


@contextmanager
def serving(
    script: Sequence[Step], *, fills: bool = False, dialect: Dialect = chat
) -> Iterator[Model]:
    """Serve a model on a free port; `url` is the address that ends with /v1."""
    model = Model(script, fills)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer with what the model says."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kind, data = dialect(model, self.path, json.loads(body), len(body.decode()))
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


def _whole(message: Json) -> tuple[str, bytes]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    said = {**ABOUT, "object": "chat.completion", "choices": [choice], "usage": USAGE}
    return "application/json", json.dumps(said).encode()


def _stream(message: Json) -> tuple[str, bytes]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls", []))]
    delta = message | ({"tool_calls": calls} if calls else {})
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": USAGE},
    ]
    events = [json.dumps({**ABOUT, "object": "chat.completion.chunk", **x}) for x in chunks]
    return "text/event-stream", "".join(f"data: {x}\n\n" for x in [*events, "[DONE]"]).encode()
