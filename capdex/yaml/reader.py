"""Strict YAML (P7): the bytes of a file in, a JSON-able value with places and byte spans out.

Text that readers understand in different ways is refused, or noted if it stays text.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingView
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from capdex.diagnostics import Findings, LineColumn, Path
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.problems import Problem, Reason
from capdex.yaml.composer import Composer, Stop
from capdex.yaml.source_map import Mapping, Scalar, place


@dataclass(frozen=True, slots=True)
class YamlReading:
    """Result of `read_yaml(data)`. `value` is None if the file could not be read to its end.

    `marks`, `scalars` and `mappings` are keyed by path: `("metadata", "id")`, `("tools", 2)`, and
    `()` for the whole document. A mark is the (line, column) of a value, counted from 1.
    """

    data: bytes
    value: Any = None
    problems: tuple[Problem, ...] = ()
    marks: MappingView[Path, LineColumn] = field(default_factory=dict)
    scalars: MappingView[Path, Scalar] = field(default_factory=dict)
    mappings: MappingView[Path, Mapping] = field(default_factory=dict)


def read_yaml(data: bytes) -> YamlReading:
    """Read one strict YAML document; never raises on content (P7)."""
    findings = Findings({})  # every problem here knows its place
    text = _decode(data, findings)
    if text is None:
        return YamlReading(data, None, findings.problems())
    composer = Composer(text, findings)
    value = None
    with suppress(Stop):
        value = composer.compose()
    outline = composer.outline
    return YamlReading(
        data, value, findings.problems(), outline.marks, outline.scalars, outline.mappings
    )


def _decode(data: bytes, findings: Findings) -> str | None:
    if len(data) > MAX_PACKAGE_BYTES:
        findings.error(
            Reason.TOO_LARGE,
            (),
            f"the file has {len(data)} bytes; at most {MAX_PACKAGE_BYTES} are allowed",
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
