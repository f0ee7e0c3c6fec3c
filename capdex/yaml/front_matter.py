"""The front matter of a SKILL.md: YAML between two lines ---, and the text below it.

Format: agentskills.io specification.
"""

from __future__ import annotations

import json
import re
from typing import Final

from capdex.problems import Severity
from capdex.yaml.reader import YamlReading, read_yaml

FRONT: Final = re.compile(rb"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)", re.DOTALL)
# What YAML cannot read other readers of skills take as text: `: ` in it, or `@`, `[a] b` in front.
_UNQUOTED: Final = re.compile(
    rb"(?m)^([A-Za-z][\w-]*):[ \t]+("
    rb"(?:[^\s>|\[{]|\[[^\]\n]*\][ \t]*\S|\{[^}\n]*\}[ \t]*\S|[>|][ \t]+[^\s#])"
    rb".*(?:\n[ \t]+\S.*)*)$"
)


def read_front_matter(data: bytes) -> tuple[YamlReading, str]:
    """Return the front matter, whose value is an object, and the text below it.

    Raises ValueError in words that complete "it is not an Agent Skill: …".
    """
    match = FRONT.match(data.removeprefix(b"\xef\xbb\xbf"))
    if match is None:
        raise ValueError("it does not begin with front matter between two lines ---")
    front = match[1].replace(b"\r\n", b"\n") + b"\n"
    reading = read_yaml(front)
    if not isinstance(reading.value, dict):
        reading = read_yaml(_UNQUOTED.sub(_quoted, front))
    if not isinstance(reading.value, dict):
        wrong = [x for x in reading.problems if x.severity is Severity.ERROR]
        why = f"line {wrong[0].line + 1}: {wrong[0].message}" if wrong else "it is not a mapping"
        raise ValueError(f"its front matter cannot be read: {why}")
    return reading, match[2].decode("utf-8", "replace").replace("\r\n", "\n")


def _quoted(match: re.Match[bytes]) -> bytes:
    text = " ".join(match[2].decode("utf-8", "replace").split())
    if text[:1] not in ("'", '"') or not isinstance(read_yaml(text.encode()).value, str):
        text = json.dumps(re.sub(r'\A"([^"]*)"\Z', r"\1", text), ensure_ascii=False)
    return match[1] + b": " + text.encode()
