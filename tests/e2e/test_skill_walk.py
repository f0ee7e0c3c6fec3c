"""A skill with its files: from a folder to the chain and back, by typed commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdex_publisher.authoring.files import HIDDEN
from capdex_publisher.authoring.imports.skill import split

pytestmark = pytest.mark.real

SKILL = """\
---
name: form-filler
description: Fills the forms of a PDF.
license: Apache-2.0
---

# Forms

Run `scripts/fill.sh FILE`.  See [the fields](references/fields.md).
"""
FILES = {
    "references/fields.md": b"# Fields\n",
    "scripts/fill.sh": b"#!/bin/sh\nexit 0\n",
    "assets/large.bin": bytes(range(256)) * 2400,  # three blocks
    "assets/empty": b"",
}


def contents(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        x.relative_to(folder).as_posix(): (x.read_bytes(), bool(x.stat().st_mode & 0o100))
        for x in folder.rglob("*")
        if x.is_file()
    }


def test_a_skill_is_published_with_its_files_and_comes_back_byte_for_byte(
    network: Any, shell: Any, eventually: Callable[..., Any]
) -> None:
    assert network
    folder = shell / "form-filler"
    for path, data in {"SKILL.md": SKILL.encode(), ".env": b"", **FILES}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "scripts/fill.sh").chmod(0o755)
    made = shell.json("init", "--from-skill", "form-filler")
    assert [(x["subject"], x["after"]) for x in made["notes"]] == [("file .env", HIDDEN)]
    assert made["files"] == 4
    assert made["next"] == "capdex validate form-filler.acp.yaml"
    assert shell.json("validate", made["file"])["ok"]
    shell("sign", made["file"])

    (folder / "references/fields.md").write_text("# Other fields\n")
    assert not json.loads(shell("validate", made["file"], "--json", code=1).stdout)["ok"]
    refused = shell("publish", made["file"], "--yes", code=1)
    assert "references/fields.md changed after the package named it" in refused.stderr
    (folder / "references/fields.md").write_bytes(FILES["references/fields.md"])
    published = shell("publish", made["file"], "--yes")
    assert "4 files" in published.stderr

    def found() -> bool:
        hits = shell.json("search", "fill a form", "--kind", "skill")["results"]
        return "did:nuwa:cap:form-filler@0.1.0" in [x["cap_uri"] for x in hits]

    eventually(found, "a hit of this kind")
    shown = shell("show", "form-filler", "--format", "human").stdout
    assert "scripts/fill.sh" in shown
    back = shell.json("get", "form-filler", "--output", "back/")
    assert (back["files"], back["verdict"]) == (4, "verified")
    expected = {path: (data, path == "scripts/fill.sh") for path, data in FILES.items()}
    package = ((shell / made["file"]).read_bytes(), False)
    written = contents(shell / "back")
    front, body, _ = split(written.pop("SKILL.md")[0], "SKILL.md")
    source = split(SKILL.encode(), "SKILL.md")[:2]
    assert ({x: front[x] for x in source[0]}, body) == source
    assert front["metadata"]["uri"] == "did:nuwa:cap:form-filler@0.1.0"
    assert written == expected | {"form-filler.acp.yaml": package}

    path = shell / made["file"]
    path.write_text(path.read_text("utf-8").replace("@0.1.0", "@0.1.1"), "utf-8")
    (folder / "scripts/fill.sh").write_text("#!/bin/sh\nexit 1\n")
    shell("sign", made["file"])
    told = json.loads(shell("diff", "form-filler", made["file"], "--text", code=None).stdout)
    assert [x["message"] for x in told["changes"] if x["risk"]] == [
        'the file "scripts/fill.sh" may be run, and is another one (17 bytes)'
    ]
    assert told["text"][-2:] == ["-exit 0", "+exit 1"]
