"""Placeholders in the texts of a binding: `{parameter}` (P10)."""

from __future__ import annotations

import re
from collections.abc import Collection

from capdex.diagnostics import Findings, Path
from capdex.problems import Reason

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.-]{1,64})\}", re.ASCII)


def check_placeholders(
    text: str, path: Path, findings: Findings, parameters: Collection[str]
) -> None:
    """Report placeholders that name none of `parameters`, and braces of no placeholder."""
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        if name not in parameters:
            message = f"the placeholder {{{name}}} names no parameter of the tool"
            hint = findings.suggest(name, parameters)
            findings.error(Reason.BAD_BINDING, path, message, hint=hint)
    rest = PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        message = "a brace stands here that belongs to no placeholder"
        findings.error(Reason.BAD_BINDING, path, message, hint="write {parameter}, or %7B and %7D")
