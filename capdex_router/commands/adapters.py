"""Adapters: the intents of a program that does not know CMP, and values to probe them with.

The form is that of CMP v0.1.0, 8.1, with `samples` besides: pairs of an intent and its values. Some
come with the router, in `adapters.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput
from capdex_router.commands.intents.manifest import (
    CommandManifest,
    CommandTool,
    parse_capability,
    parse_manifest,
)
from capdex_router.commands.learned import parse_samples

# The directory in which samples run has these files.
KNOWN_CONTENT: Final[Mapping[str, str]] = {"notes.txt": "alpha\nbeta\n"}


def find(binary: str) -> CommandTool:
    """Return the adapter that comes with the router, by the name of its binary.

    Of another program it is one without intents: its help makes them.
    """
    for value in orjson.loads((files("capdex_router.commands") / "adapters.json").read_bytes()):
        if value["wraps"] == binary:
            return parse(orjson.dumps(value))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", binary).strip("._-")[:64] or "program"
    return CommandTool(
        CommandManifest("programs", name, f"The program {name}", "0.0.0", binary), ()
    )


def parse(data: bytes, capability: bytes | None = None) -> CommandTool:
    """Read an adapter's one file, or a `manifest.json` and its `capability.json`.

    Raises InvalidInput; also if its commands begin with different programs.
    """
    manifest = parse_manifest(data)
    intents = parse_capability(data if capability is None else capability)
    programs = {intent.template.elements[0].literal for intent in intents}
    if len(programs) != 1:
        raise InvalidInput(
            "the commands of a tool begin with one program",
            why=f"here they begin with {', '.join(sorted(programs)) or 'none'}",
            fix="let each template begin with the same program",
        )
    value: Any = orjson.loads(data)  # an object: parse_manifest has read it
    samples = parse_samples(value, len(intents))
    return CommandTool(replace(manifest, binary=programs.pop()), intents, samples)
