"""Agent Skills become packages of a prompt, and other files are told what they are."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput, UsageError
from capdex.manifest.manifest import Manifest, read
from capdex_publisher.authoring.imports.detect import import_option_for
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.skill import import_skill, split

ManifestOf = Callable[[Imported], Manifest]

TEXT = """\
---
name: pdf-forms
description: "Fills the forms of a PDF: use it when a user gives one."
license: Apache-2.0
allowed-tools: Bash
---

# Forms

1. List the fields.
\t2. Fill them.
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "pdf-forms"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT)
    (folder / "scripts" / "fill.py").write_text("print()")
    (folder / "scripts" / ".env").write_text("TOKEN=1")
    return folder


@pytest.mark.parametrize("file", ["", "SKILL.md"])
def test_a_skill_becomes_a_prompt(skill: Path, file: str, manifest_of: ManifestOf) -> None:
    package = write_package(import_skill(skill / file))
    manifest = manifest_of(package)
    assert (manifest.uri.name, manifest.title) == ("pdf-forms", "Pdf Forms")
    assert manifest.description == "Fills the forms of a PDF: use it when a user gives one."
    assert manifest.metadata["license"] == "Apache-2.0"
    assert manifest.prompt == "# Forms\n\n1. List the fields.\n\t2. Fill them.\n"
    assert [x.path for x in manifest.resources] == ["scripts/fill.py"]
    assert manifest.tools == ()
    assert [(x.source, x.subject, x.fate) for x in package.notes] == [
        ("document", "allowed-tools of its front matter", "left out"),
        ("document", "file scripts/.env", "left out"),
    ]
    assert package.to_edit == ()


def test_instructions_that_begin_with_code_keep_its_indentation(
    skill: Path, manifest_of: ManifestOf
) -> None:
    (skill / "SKILL.md").write_text(TEXT.replace("# Forms", "    fill --all"))
    package = write_package(import_skill(skill))
    assert manifest_of(package).prompt.startswith("    fill --all\n\n1. List the fields.\n")


def test_what_is_left_out_of_the_front_matter_says_what_to_do(skill: Path) -> None:
    text = TEXT.replace("Apache-2.0", "Own terms")
    (skill / "SKILL.md").write_text(text)
    notes = {x.subject: x.after for x in write_package(import_skill(skill)).notes}
    assert "say in the instructions" in notes["allowed-tools of its front matter"]
    assert "write one such as MIT" in notes["license"]


def test_a_skill_that_persons_alone_may_call_is_told_that_agents_may(skill: Path) -> None:
    for value, told in (("true", "a person has to ask for it"), ("false", "hosts will not see")):
        line = f"disable-model-invocation: {value}\n---\n\n# Forms"
        (skill / "SKILL.md").write_text(TEXT.replace("---\n\n# Forms", line))
        notes = {x.subject: x.after for x in write_package(import_skill(skill)).notes}
        assert told in notes["disable-model-invocation of its front matter"]


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        ("Apache 2.0", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache 2.0 License", "Apache-2.0"),
        ("MPL v2.0", "MPL-2.0"),
        ("MIT License", "MIT"),
        ("Terms 2.0", None),
        ("Apache 2.0 or MIT", None),
    ],
)
def test_a_licence_by_its_usual_name_is_carried(
    skill: Path, text: str, spdx: str | None, manifest_of: ManifestOf
) -> None:
    (skill / "SKILL.md").write_text(TEXT.replace("license: Apache-2.0", f"license: {text}"))
    package = write_package(import_skill(skill))
    assert manifest_of(package).metadata.get("license") == spdx
    assert [x.before for x in package.notes if x.subject == "license"] == [text]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with front matter"),
        ("---\nname: a\n", "does not begin with front matter"),
        ("---\nname: [\n---\nDo it.", "front matter cannot be read"),
        ("---\n- a\n---\nDo it.", "it is not a mapping"),
        ("---\nname: a-b\n---\nDo it.", "has no description"),
        ("---\nname: a-b\ndescription: c\n---\n", "has no instructions"),
    ],
)
def test_what_is_no_skill_is_named(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "SKILL.md").write_text(text)
    with pytest.raises(InvalidInput, match="is not an Agent Skill") as told:
        import_skill(tmp_path)
    assert why in told.value.why


def test_a_packed_skill_is_to_be_unpacked(skill: Path, tmp_path: Path) -> None:
    packed = tmp_path / "pdf-forms.skill"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(skill / "SKILL.md", "pdf-forms/SKILL.md")
    with pytest.raises(InvalidInput, match="is not an Agent Skill") as told:
        import_skill(packed)
    assert told.value.why == "it is an archive"
    assert told.value.fix.startswith("unpack it")


@pytest.mark.parametrize(
    "body",
    [
        "Two spaces  \nbreak a line.",
        "\tA tab\n    and blanks",
        "a\n   \nb\n\n\n  - c",
        "# no comment: here\n--- \n{}",
        "end with\n\t",
    ],
)
def test_instructions_stand_in_the_package_letter_for_letter(
    tmp_path: Path, body: str, manifest_of: ManifestOf
) -> None:
    (tmp_path / "SKILL.md").write_text(f"---\nname: a-b\ndescription: c\n---\n{body}\n")
    prompt = manifest_of(write_package(import_skill(tmp_path))).prompt
    assert prompt is not None
    assert prompt.strip() == body.strip()


def test_instructions_too_long_for_a_prompt_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(f"---\nname: a-b\ndescription: c\n---\n{'x' * 65_537}")
    with pytest.raises(InvalidInput, match="too long for a prompt") as told:
        import_skill(tmp_path)
    assert "65537 bytes" in told.value.why
    assert "into files beside it" in told.value.fix


def test_a_folder_without_a_skill_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"SKILL\.md"):
        import_skill(tmp_path)


def test_a_repository_of_skills_names_the_folders_to_choose_among(tmp_path: Path) -> None:
    for number in range(10):
        folder = tmp_path / "plugins" / "a" / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(TEXT)
    with pytest.raises(UsageError) as error:
        import_skill(tmp_path)
    named = [f"{tmp_path}/plugins/a/skills/skill-{number}" for number in range(8)]
    assert error.value.fix == f"name one of the folders in it that have one: {', '.join(named)}, …"


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda x: f"---\n{x}\n---\nx".encode()))
def test_any_bytes_are_read_or_refused_by_type(data: bytes) -> None:
    try:
        front, prompt, _ = split(data, "SKILL.md")
    except CapdexError as error:
        assert error.why  # noqa: PT017 - or a skill
        return
    assert prompt
    assert isinstance(front, dict)


@pytest.mark.parametrize(
    ("data", "option"),
    [
        (TEXT.encode(), "--from-skill"),
        (b'{"openapi": "3.1.0"}', "--from-openapi"),
        (b"swagger: '2.0'", "--from-openapi"),
        (b'[{"type": "function", "function": {"name": "a"}}]', "--from-openai"),
        (b'{"mcpServers": {"a": {"command": "npx"}}}', "--from-mcp"),
        (b'{"name": "a", "remotes": [], "packages": []}', "--from-mcp"),
        (b'{"name": "a", "input_schema": {}}', "--from-openai"),
        (b"metadata: {id: 1}", ""),
        (b"name: Tides\nprompt: Say them.", ""),  # a package without its metadata
        (b"", ""),
        (b"\xff\xfe", ""),
        (b"{" * 100_000, ""),
    ],
)
def test_files_of_other_formats_are_recognised(data: bytes, option: str) -> None:
    assert import_option_for(data) == option


@given(st.binary(max_size=300))
def test_any_bytes_can_be_looked_at(data: bytes) -> None:
    assert import_option_for(data) in ("", "--from-skill", "--from-openapi", "--from-openai")


def test_texts_of_a_stranger_are_cleaned(tmp_path: Path) -> None:
    hidden = "Do\u202e it.\x1b[31m\u200b\r\nThen\u2028 stop."
    text = f"---\nname: tidy\ndescription: d\n---\n{hidden}"
    (tmp_path / "SKILL.md").write_text(text, newline="")
    package = write_package(import_skill(tmp_path))
    assert read(package.text.encode()).problems == ()


def test_a_description_that_no_host_takes_is_noted(tmp_path: Path) -> None:
    text = "---\nname: long\ndescription: {}\n---\nDo it.\n"
    (tmp_path / "SKILL.md").write_text(text.format("d" * 1025))
    assert [x.before for x in import_skill(tmp_path, "long").notes] == ["1025 characters"]
    (tmp_path / "SKILL.md").write_text(text.format("d" * 1024))
    assert import_skill(tmp_path, "long").notes == []


def test_the_homepage_of_a_skill_is_that_of_its_package(
    skill: Path, manifest_of: ManifestOf
) -> None:
    text = TEXT.replace("allowed-tools: Bash", "homepage: https://forms.dev/pdf")
    (skill / "SKILL.md").write_text(text)
    package = write_package(import_skill(skill))
    assert manifest_of(package).metadata["homepage"] == "https://forms.dev/pdf"
    assert [x.subject for x in package.notes] == ["file scripts/.env"]


@pytest.mark.parametrize("homepage", ["https://localhost/pdf", "ask me"])
def test_a_homepage_that_no_reader_reaches_is_left_out(
    homepage: str, skill: Path, manifest_of: ManifestOf
) -> None:
    package = write_package(replace(import_skill(skill), homepage=homepage))
    assert "homepage" not in manifest_of(package).metadata
    assert ("homepage", homepage) in [(x.subject, x.before) for x in package.notes]
