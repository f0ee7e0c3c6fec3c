"""SKILL.md made from a package: front matter of the Agent Skills specification, then the prompt."""

from __future__ import annotations

import json
from typing import Final

from capdex.errors import Code, InvalidInput
from capdex.manifest.manifest import Manifest

SKILL: Final = "SKILL.md"
MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1_024
# Line breaks of YAML that JSON leaves as they are.
_ESCAPED: Final = {ord(char): f"\\u{ord(char):04x}" for char in "\x7f\x85\u2028\u2029\ufeff"}


def skill_document(manifest: Manifest, sha256: str) -> bytes:
    """Return the SKILL.md of a package; its metadata names the release and its sha256 (hex).

    Raises InvalidInput for a package that cannot be a skill: without a prompt, or with a name or a
    description that is longer than hosts take.
    """
    name, description = manifest.uri.name, manifest.description
    prompt = manifest.prompt
    if not prompt:
        raise _no_skill(name, "it has no prompt, and a skill is one")
    if len(name) > MAX_NAME_CHARS or len(description) > MAX_DESCRIPTION_CHARS:
        most = f"a name of {MAX_NAME_CHARS} characters and a description of {MAX_DESCRIPTION_CHARS}"
        raise _no_skill(name, f"hosts take {most}")
    fields = {"name": name, "description": description}
    if license_ := manifest.metadata.get("license"):
        fields["license"] = str(license_)
    rows = [f"{key}: {_text(value)}" for key, value in fields.items()]
    uri = manifest.uri
    origin = {"uri": str(uri), "version": str(uri.version), "sha256": sha256}
    rows += ["metadata:", *(f"  {key}: {_text(value)}" for key, value in origin.items())]
    return "\n".join(("---", *rows, "---", "", prompt.rstrip("\n"), "")).encode()


def _text(value: str) -> str:
    """Return a scalar that is the same in JSON and YAML."""
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


def _no_skill(name: str, why: str) -> InvalidInput:
    message = f"{name} cannot be written as a skill"
    fix = "leave out --to: agents reach it by capdex router"
    return InvalidInput(message, Code.INVALID_INPUT, why=why, fix=fix)
