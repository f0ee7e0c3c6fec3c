"""What `make dist` builds: the same bytes each time, whole, and true about itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from capdex import __version__

ROOT = Path(__file__).parents[2]
ROOMS = ("capdex", "capdex_cli", "capdex_explorer", "capdex_router", "capdex_indexer",
         "capdex_publisher", "capdex_service")  # fmt: skip


def head() -> str:
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def wheel(dist: Path) -> ZipFile:
    return ZipFile(dist / f"capdex-{__version__}-py3-none-any.whl")


def test_a_second_build_gives_the_same_bytes_whatever_mask_zone_and_hash_seed_are(
    dist: Path, rebuild: Callable[..., Path], tmp_path: Path
) -> None:
    mask = os.umask(0o077)
    try:
        again = rebuild(tmp_path / "again", TZ="Asia/Kathmandu", PYTHONHASHSEED="7")
    finally:
        os.umask(mask)
    made, before = (
        {x.name: hashlib.sha256(x.read_bytes()).hexdigest() for x in folder.iterdir()}
        for folder in (again, dist)
    )
    assert made == before


def test_the_sources_of_the_repository_and_of_the_archive_give_the_same_wheel(
    dist: Path, tmp_path: Path
) -> None:
    at = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "SOURCE_DATE_EPOCH": at}, check=True,
    )  # fmt: skip
    [made] = tmp_path.iterdir()
    assert made.read_bytes() == (dist / made.name).read_bytes()


def test_a_release_has_its_files_and_their_checksums(dist: Path) -> None:
    stem = f"capdex-{__version__}"
    ends = ("-py3-none-any.whl", ".tar.gz", "-constraints.txt", "-licences.txt", ".cdx.json")
    assert {x.name for x in dist.iterdir()} == {"SHA256SUMS", *(stem + end for end in ends)}
    lines = (line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines())
    sums = {name: digest for digest, name in lines}
    files = [x for x in dist.iterdir() if x.name != "SHA256SUMS"]
    assert sums == {x.name: hashlib.sha256(x.read_bytes()).hexdigest() for x in files}


def test_the_archive_of_sources_has_no_file_that_git_does_not_know(dist: Path) -> None:
    known = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tarfile.open(dist / f"capdex-{__version__}.tar.gz") as archive:
        names = {x.name.partition("/")[2] for x in archive.getmembers() if x.isfile()}
    assert names - set(listed.splitlines()) == {"PKG-INFO", "COMMIT"}
    assert {"LICENSE", "README.md", "contracts/src/CapabilityRegistry.sol"} <= names


def test_the_wheel_has_every_file_of_every_room_and_says_that_each_is_typed(wheel: ZipFile) -> None:
    names = set(wheel.namelist())
    assert {f"{room}/py.typed" for room in ROOMS} <= names
    listed = subprocess.run(
        ["git", "ls-files", *ROOMS[:4], "indexer", "publisher", "mcp_service", "examples/*.yaml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    moved = re.compile(r"^(indexer|publisher|mcp_service)/|^examples(?=/)", re.MULTILINE)
    wanted = moved.sub(lambda x: "" if x[1] else "capdex_cli/examples", listed).split()
    assert set(wanted) - names == set()


def test_the_metadata_leads_to_pages_that_exist_and_has_no_relative_link(wheel: ZipFile) -> None:
    [file] = (x for x in wheel.namelist() if x.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(wheel.read(file))
    ref = head().removesuffix("-dirty") if "dev" in __version__ else f"v{__version__}"
    page = metadata.get_payload()
    assert isinstance(page, str)
    addresses = dict(x.split(", ") for x in metadata.get_all("Project-URL", []))
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    assert [x for x in links if not x.startswith("https://")] == []
    ours = [x for x in links if x.startswith(addresses["Source"] + "/")]
    kinds = re.compile(rf"/(blob|raw)/{re.escape(ref)}/([^#]+)(#.+)?")
    found = [kinds.fullmatch(x.removeprefix(addresses["Source"])) for x in ours]
    assert [x and (ROOT / x[2]).exists() for x in found] == [True] * len(ours)
    pictures = [x for x in found if x and x[2].endswith((".png", ".svg"))]
    assert {x[1] for x in pictures} == {"raw"}
    assert set(addresses) == {"Source", "Documentation", "Changelog", "Issues"}


def test_the_wheel_and_the_archive_say_their_commit(wheel: ZipFile, dist: Path) -> None:
    stem = f"capdex-{__version__}"
    with tarfile.open(dist / f"{stem}.tar.gz") as archive:
        file = archive.extractfile(f"{stem}/COMMIT")
        assert file is not None
        told = file.read()
    assert wheel.read(f"{stem}.dist-info/extra_metadata/COMMIT") == told
    assert told.decode() == f"{head()}\n"


def locked(text: str) -> dict[str, set[str]]:
    """The versions of each distribution in a lock or in constraints."""
    found: dict[str, set[str]] = {}
    for line in re.findall(r"^\S+==[^\\\n]*", text, re.MULTILINE):
        one = Requirement(line.strip())
        found.setdefault(canonicalize_name(one.name), set()).add(str(one.specifier))
    return found


def test_the_constraints_are_the_versions_of_the_locks(dist: Path) -> None:
    told = locked((dist / f"capdex-{__version__}-constraints.txt").read_text())
    locks = [locked((ROOT / "requirements" / f"{x}.lock").read_text()) for x in ("run", "semantic")]
    assert told == locks[0] | locks[1]
    image = locked((ROOT / "requirements/node.lock").read_text())
    assert {name: told.get(name) for name in image} == image


def test_the_list_of_parts_follows_its_schema(dist: Path) -> None:
    strict = (
        "import sys; from cyclonedx.schema import SchemaVersion as V;"
        "from cyclonedx.validation.json import JsonStrictValidator as Strict;"
        "sys.exit(Strict(V.V1_6).validate_str(sys.stdin.read()))"
    )
    text = (dist / f"capdex-{__version__}.cdx.json").read_text()
    tool: list[str | Path] = [ROOT / ".tools/dist/bin/python", "-c", strict]
    done = [
        subprocess.run(tool, input=x, stderr=subprocess.PIPE, text=True, check=False)
        for x in (text, text.replace('"version"', '"verse"', 1))
    ]
    assert [x.returncode for x in done] == [0, 1], done[0].stderr[-2000:]


def test_parts_and_licences_name_everything_that_is_installed(dist: Path) -> None:
    bom = json.loads((dist / f"capdex-{__version__}.cdx.json").read_text())
    root = bom["metadata"]["component"]
    assert (root["name"], root["version"]) == ("capdex", __version__)
    told = locked((dist / f"capdex-{__version__}-constraints.txt").read_text())
    parts = {canonicalize_name(x["name"]): f"=={x['version']}" for x in bom["components"]}
    assert [name for name, at in parts.items() if at not in told[name]] == []
    assert len(bom["dependencies"]) == len(parts) + 1
    notice = (dist / f"capdex-{__version__}-licences.txt").read_text("utf-8")
    titles = re.findall(r"^(\S+) (\S+): (.+)$", notice, re.MULTILINE)
    named = {canonicalize_name(name): f"=={at}" for name, at, _ in titles}
    assert parts.items() | {("capdex", f"=={__version__}")} <= named.items()
    for text in ("Zero-Clause BSD", "UNICODE LICENSE V3", "GNU LESSER GENERAL PUBLIC LICENSE"):
        assert text in notice
    assert "file:" not in json.dumps(bom)  # no path of the machine that built it
