"""Mutations of bytes, texts and JSON values: all chance comes from the `Random` given."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

MAX_BYTES = 300 * 1024  # a little over what a package may have

# What parsers stumble over, whichever they are.
TOKENS = [
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"- ",
        b": ",
        b"? ",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!str ",
        b"%YAML 1.1\n",
    ),
    *(
        b"---\n",
        b"...\n",
        b"#",
        b" ",
        b"\n",
        b"\t",
        b"\r",
        b"'",
        b'"',
        b"|\n",
        b">-\n",
        b"|9+\n",
        b",",
    ),
    *(
        b"null",
        b"true",
        b"no",
        b"010",
        b"0x1F",
        b"1e999",
        b"-0",
        b"1:30",
        b".inf",
        b".nan",
        b"2026-01-01",
    ),
    *(
        b"9" * 400,
        b"\\u202e",
        b"\\ud800",
        b"\\x00",
        b"\\N",
        b"{x}",
        b"{",
        b"$ref",
        b"#/schema",
        b"$id",
    ),
    *("é中😀".encode(), "\u200b".encode(), "\u202e\u2028\u0085\ufeff\U000e0041".encode()),
    *(
        b"\x00",
        b"did:",
        b"did:key:z",
        b"https://",
        b"state.create",
        b"(a+)+$",
        b"(?i)",
        b"\\1",
        b".",
    ),
]
BROKEN = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x80")  # no UTF-8
WORDS = (
    *(
        "metadata",
        "schema",
        "prompt",
        "tools",
        "tool_bindings",
        "id",
        "name",
        "description",
        "type",
    ),
    *(
        "triggers",
        "value",
        "model",
        "permissions",
        "require",
        "function",
        "parameters",
        "url",
        "tags",
    ),
    *("author", "publisher", "signature", "$ref", "$id", "$defs", "properties", "allOf", "pattern"),
    *("x-crdt", "", "<<", "__proto__", "a" * 300, "é", "\u202e", "state.create"),
)
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**53,
        2**63,
        1.5,
        1e308,
        "",
        " ",
        "\n",
        "x",
        "x\ny",
        "\t",
        "é😀",
    ),
    *(
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"a": {"a": {}}},
        "x" * 3000,
        "\u202e",
        "\u200b",
        "\x85",
        "0",
    ),
    *("regex", "keyword", "embedding", "function", "object", "http_get", "nuwa_a2a", "mcp_service"),
    *(
        "#/schema",
        "#",
        "#/$defs/a",
        "https://example.com/{x}",
        "https://127.0.0.1/",
        "http://[::1]/",
    ),
    *(
        "(" * 200,
        "a{1000}{1000}",
        "((a{100}){100}){100}",
        "(?P<x>a)\\1",
        "[\\p{Han}-z]",
        "x*" * 200,
    ),
    *({"type": "object"}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}] * 2}, {"type": ["string"] * 2}),
    *({"enum": [1, 1.0, True]}, {"multipleOf": 0}, {"required": ["a", "a"]}, {"pattern": "("}),
)


def size(random: Random, most: int) -> int:
    """From 1 to `most`, small numbers as often as large ones."""
    return max(1, min(most, int(2 ** random.uniform(0, most.bit_length()))))


def mutate_bytes(random: Random, data: bytes, other: bytes = b"", times: int = 0) -> bytes:
    """A few mutations one after the other; `other` is what pieces may come from."""
    for _ in range(times or size(random, 8)):
        at = random.randrange(len(data) + 1)
        length = size(random, 64)
        token = random.choice(TOKENS if random.randrange(40) else BROKEN)
        match random.randrange(11):
            case 0:
                data = data[:at] + bytes([random.randrange(32, 127)]) + data[at + 1 :]
            case 1 if at < len(data):
                bit = random.randrange(8 if random.randrange(4) == 0 else 7)
                data = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            case 2:
                data = data[:at] + data[at + length :]
            case 3:
                data = data[:at] + data[at : at + length] * 2 + data[at + length :]
            case 4 | 5:
                data = data[:at] + token + data[at:]
            case 6:
                data = data[:at] + token + data[at + len(token) :]
            case 7:
                start = random.randrange(len(data) + 1)
                data = data[:at] + data[start : start + length] + data[at + length :]
            case 8 if other:
                start = random.randrange(len(other))
                data = data[:at] + other[start : start + length * 8] + data[at:]
            case 9 if not random.randrange(6):
                data = data[:at]
            case _ if not random.randrange(12):
                data = data[:at] + token * size(random, MAX_BYTES // len(token)) + data[at:]
    return data[:MAX_BYTES]


def mutate_text(random: Random, text: str, other: str = "") -> str:
    """The same for text; what is not UTF-8 any more becomes U+FFFD."""
    data = text.encode("utf-8", "surrogatepass")
    times = size(random, 3)
    return mutate_bytes(random, data, other.encode(), times)[:4096].decode("utf-8", "replace")


def mutate_lines(random: Random, data: bytes) -> bytes:
    """Lines dropped, doubled, moved and indented otherwise."""
    lines = data.split(b"\n")
    for _ in range(size(random, 4)):
        at, to = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(5):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(to, lines[at])
            case 2:
                lines[at], lines[to] = lines[to], lines[at]
            case 3:
                lines[at] = b" " * random.randrange(8) + lines[at].lstrip(b" ")
            case _:
                lines[at] += random.choice(TOKENS)
    return b"\n".join(lines)


def mutate_value(random: Random, document: Any, others: Sequence[Any] = ()) -> Any:
    """A copy of a JSON value with a few places changed; `others` are values to take parts from."""
    box = [copy.deepcopy(document)]
    for _ in range(size(random, 4)):
        holder, key = _place(random, box)
        inner = holder[key]
        match random.randrange(10):
            case 0 if holder is not box:
                del holder[key]
            case 1 | 2:
                holder[key] = copy.deepcopy(random.choice(ODD))
            case 3 if isinstance(holder, dict):
                holder[random.choice(WORDS)] = copy.deepcopy(inner)
            case 4 if isinstance(holder, dict):
                holder[random.choice(WORDS)] = holder.pop(key)
            case 5 if isinstance(holder, list) and holder is not box:
                holder.extend(copy.deepcopy(inner) for _ in range(size(random, 100)))
            case 6 if not random.randrange(4):
                for _ in range(size(random, 40)):
                    inner = [inner] if random.randrange(2) else {random.choice(WORDS): inner}
                holder[key] = inner
            case 7 if others:
                source, name = _place(random, [random.choice(others)])
                holder[key] = copy.deepcopy(source[name])
            case 8 if isinstance(holder, dict) and not random.randrange(8):
                for i in range(size(random, 3000)):
                    holder[f"k{i}"] = inner if isinstance(inner, str | int) else i
            case _ if isinstance(inner, str):
                holder[key] = _mutate_inside(random, inner)
            case _ if isinstance(inner, int | float):
                holder[key] = random.choice([-inner, inner + 1, inner * 10**9, str(inner), 0.1])
    return box[0]


def _mutate_inside(random: Random, text: str) -> str:
    """Text that holds JSON is mutated as JSON, mostly."""
    if text.lstrip().startswith("{") and random.randrange(4):
        try:
            held = json.loads(text)
        except ValueError:
            held = None
        if isinstance(held, dict):
            return json.dumps(mutate_value(random, held), ensure_ascii=False)
    return mutate_text(random, text)


def _place(random: Random, document: Any) -> tuple[Any, Any]:
    """A collection in the document and one of its keys; each depth is as likely."""
    at, key = document, 0
    while True:
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or not random.randrange(4):
            return at, key
        at, key = (
            inner,
            random.choice(list(inner) if isinstance(inner, dict) else range(len(inner))),
        )
