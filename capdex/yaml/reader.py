"""Strict YAML (P7): the bytes of a file in, a JSON-able value with places and byte spans out.

Text that readers understand in different ways is refused, or noted if it stays text.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from capdex.diagnostics import Findings
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.problems import Problem, Reason
from capdex.yaml.composer import Composer, Nested, Stop
from capdex.yaml.source_map import Outline, place


@dataclass(frozen=True, slots=True)
class YamlReading:
    """Result of `read_yaml(data)`. `value` is None if the file could not be read to its end.

    `outline` has the places of values by path: `("metadata", "id")`, `("tools", 2)`, and `()` for
    the whole document.
    """

    data: bytes
    value: Any = None
    problems: tuple[Problem, ...] = ()
    outline: Outline = field(default_factory=Outline, repr=False, compare=False)


def read_yaml(data: bytes) -> YamlReading:
    """Read one strict YAML document; never raises on content (P7)."""
    findings = Findings()  # every problem here knows its place
    text = _decode(data, findings)
    if text is None:
        return YamlReading(data, None, findings.problems())
    composer = Composer(text, findings)
    value = None
    try:
        with suppress(Stop):
            value = composer.compose()
    except Nested as error:  # what stands before has too many levels, too, and a place for each
        return replace(read_yaml(text[: error.index].encode()), data=data)
    return YamlReading(data, value, findings.problems(), composer.outline)


def _decode(data: bytes, findings: Findings) -> str | None:
    if len(data) > MAX_PACKAGE_BYTES:
        findings.error(
            Reason.TOO_LARGE,
            (),
            f"the file has more than {MAX_PACKAGE_BYTES} bytes",  # readers stop there
        )
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        findings.error(
            Reason.NOT_UTF8,
            (),
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
            at=place(before, len(before)),
        )
        return None
    if text.startswith("\ufeff"):
        findings.error(Reason.NOT_UTF8, (), "the file starts with a byte order mark")
        return None
    return text
