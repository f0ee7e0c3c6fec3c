"""A small MCP server on stdio whose tools are odd: mcp_stub.py CASE."""

from __future__ import annotations

import json
import sys
from typing import Any

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
GOOD = {"name": "good", "description": "A good tool.", "inputSchema": OBJECT}
CHOICE = {"oneOf": [OBJECT, {"type": "object", "properties": {"k": {"const": "y"}}}]}
TUPLE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        "n": {"$ref": "#/definitions/N"},
    },
    "definitions": {"N": {"type": "integer"}},
}
DEPENDS = {
    "type": "object",
    "properties": {"card": {"type": "string"}, "name": {"type": "string"}},
    "dependencies": {"card": ["name"], "name": {"required": ["card"]}},
    "dependentRequired": {"x": ["y"]},
}
VERSION = "io.modelcontextprotocol/protocolVersion"  # in each request since 2026-07-28
TASK = {"taskSupport": "required"}
TOOLS: dict[str, Any] = {
    "notype": [GOOD, {"name": "odd", "inputSchema": CHOICE}],
    "empty": [GOOD, {"name": "odd", "inputSchema": {}}],
    "noschema": [GOOD, {"name": "odd"}],
    "nullschema": [GOOD, {"name": "odd", "inputSchema": None}],
    "draft7": [{"name": "odd", "inputSchema": TUPLE}],
    "outarr": [{**GOOD, "outputSchema": {"type": "array"}}, {"name": "odd", "inputSchema": OBJECT}],
    "badann": [GOOD, {"name": "odd", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "1"}}],
    "outlarge": [{**GOOD, "outputSchema": {**OBJECT, "examples": [{"a": "x" * 70_000}] * 3}}],
    "twice": [GOOD, {**GOOD, "description": "Another one."}],
    "dots": [{"name": x, "inputSchema": OBJECT} for x in ("a.b", "a_b", "_c", "c", "a b")],
    "refext": [{"name": "re", "inputSchema": {"properties": {"q": {"$ref": "https://e.net/q"}}}}],
    "names": [{"name": x, "inputSchema": OBJECT} for x in ("a.b", "天気", "plain")],
    "depends": [{"name": "odd", "inputSchema": DEPENDS}],
    "union": [{"name": "odd", "inputSchema": {**OBJECT, "type": ["object", "null"]}}],
    "both": [{"name": "odd", "inputSchema": {**TUPLE, "$defs": {"M": {"type": "string"}}}}],
    "task": [GOOD, {"name": "odd", "inputSchema": OBJECT, "execution": TASK}],
    "hints": [{**GOOD, "annotations": {"readOnlyHint": [], "idempotentHint": True}}],
    "more": [
        {
            **GOOD,
            "title": "Good",
            "_meta": {"ui": "x"},
            "icons": [{"src": "https://a.dev/i.png"}],
            "execution": {"taskSupport": "optional"},
            "annotations": {"title": "G", "readOnlyHint": True, "destructiveHint": True},
        },
        {"name": "odd", "title": "Odd", "execution": {"taskSupport": "forbidden"}},
    ],
    "newwords": [{**GOOD, "cost": 3, "annotations": {"category": "input", "readOnlyHint": True}}],
    "modern": [GOOD, {"name": "odd"}],
    "hidden": [{**GOOD, "description": "A\u202e good\u200b tool."}],
    "nohints": [{**GOOD, "annotations": ["x"]}],
    "wei": [
        GOOD,
        {
            "name": "odd",
            "inputSchema": {"properties": {"a": {"type": "integer", "maximum": 2**256}}},
        },
    ],
    "key": [{"name": "odd", "inputSchema": {"properties": {"api_key": {}, "q": {}}}}],
    "unseen": [
        {**GOOD, "outputSchema": {"type": "object", "properties": {"k\u200b": {}}}},
        {"name": "odd", "inputSchema": {"properties": {"q\u200b": {}}}},
        {"name": "other\u00ad", "inputSchema": OBJECT},
    ],
    "talks": [GOOD],
    "nothing": [],
    "nolist": {"x": 1},
    "noversion": [],
    "endless": [GOOD],
    "onandon": [GOOD],
    "numbers": [GOOD, 1],
    "otherversion": [],
    "slow": [],
    "refuses": [],
}


def answer(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main(case: str) -> None:
    if case == "die":
        sys.exit("missing API key: set FOO_KEY")
    if case in ("slow", "refuses"):
        sys.stderr.write("waiting for the database\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {"tools": TOOLS[case]}
        if case == "slow":
            continue
        if message["method"] == "initialize":
            version = message["params"].get("protocolVersion", "2025-06-18")
            info = {"name": "stub", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            if case == "talks":
                result["instructions"] = "word " * 20_000
            if case == "otherversion":
                sys.stderr.write("started\n")
                result["protocolVersion"] = "1999-01-01"
            if case == "noversion":
                sys.stderr.write("started\n")
                del result["protocolVersion"]
        elif case == "modern" and VERSION not in message["params"].get("_meta", {}):
            error = {"code": -32602, "message": "a request without a version"}
            answer({"id": message["id"], "error": error})
            continue
        elif case == "modern":
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif message["method"] != "tools/list":
            error = {"code": -32601, "message": "no such method"}
            answer({"id": message["id"], "error": error})
            continue
        elif case == "refuses":
            error = {"code": -32000, "message": "the quota of this key is used up"}
            answer({"id": message["id"], "error": error})
            continue
        elif case == "endless":
            result["nextCursor"] = "7"
        elif case == "numbers" and "cursor" not in message.get("params", {}):
            result = {"tools": [{**GOOD, "name": "first"}], "nextCursor": 2}
        elif case == "onandon":
            result["nextCursor"] = str(message["id"])
        answer({"id": message["id"], "result": result})


if __name__ == "__main__":
    main(sys.argv[1])
