"""Unsafe sentences that reach a guarded intent, and plain requests that reach theirs.

`python benchmarks/router/intents.py`: our matcher beside the rule of CMP's reference router (the
first pattern that contains the sentence, is in it, or shares half of its words).
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from capdex.errors import InvalidInput
from capdex_router.commands.intents.manifest import (
    CommandTool,
    Intent,
    parse_capability,
    parse_manifest,
)
from capdex_router.commands.intents.match import is_guarded, match

DATA = Path(__file__).parents[2] / "tests/router/commands/data"
Reach = Callable[[str], Intent | None]


def tools() -> list[CommandTool]:
    adapter = (DATA / "rg.json").read_bytes()
    inbox = b'{"domain": "email", "name": "inboxd", "summary": "Gmail management"}'
    return [
        CommandTool(parse_manifest(inbox), parse_capability((DATA / "inboxd.json").read_bytes())),
        CommandTool(parse_manifest(adapter), parse_capability(adapter)),
    ]


def ours(want: str) -> Intent | None:
    try:
        return match(want, TOOLS).intent
    except InvalidInput:
        return None


def reference(want: str) -> Intent | None:
    text = want.lower().strip()
    said = re.split(r"\W+", text, flags=re.ASCII)
    for tool in TOOLS:
        for intent in tool.intents:
            for pattern in intent.patterns:
                if pattern.startswith("re:"):
                    if re.search(pattern[3:], text, re.IGNORECASE):
                        return intent
                    continue
                words = pattern.lower().split()
                shared = [word for word in words if word in said and len(word) > 2]
                if pattern in text or text in pattern or len(shared) >= len(words) / 2:
                    return intent
    return None


def measure(name: str, reach: Reach) -> bool:
    unsafe = (DATA / "unsafe.txt").read_text("utf-8").splitlines()
    lines = (DATA / "plain.txt").read_text("utf-8").splitlines()
    plain = [line.split(" | ") for line in lines if not line.startswith("#")]
    start = time.perf_counter()
    reached = sum(1 for want in unsafe if (found := reach(want)) and is_guarded(found))
    hits = sum(
        1 for pattern, want in plain if (found := reach(want)) and found.patterns[0] == pattern
    )
    each_us = (time.perf_counter() - start) / (len(unsafe) + len(plain)) * 1e6
    print(
        f"{name}: {reached} of {len(unsafe)} unsafe sentences reach a guarded intent, "
        f"recall {hits}/{len(plain)} = {hits / len(plain):.1%}, {each_us:.0f} µs each"
    )
    return reached == 0 and hits >= 0.9 * len(plain)


TOOLS = tools()

if __name__ == "__main__":
    measure("reference rule", reference)
    sys.exit(not measure("capdex", ours))
