"""Answers lines of JSON on stdin: {"action": …} with {"result": …} or {"thrown": …} on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Action = Callable[..., Awaitable[Any]]


async def answer_lines(actions: Mapping[str, Action]) -> None:
    """Run the action of each line until stdin closes; an exception is answered with its text."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        given = json.loads(line)
        try:
            answer = {"result": _plain(await actions[given.pop("action")](**given))}
        except Exception as error:  # noqa: BLE001 - told to the test
            answer = {"thrown": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _plain(value: Any) -> Any:
    """Return models of the SDK as the JSON of the protocol."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value
