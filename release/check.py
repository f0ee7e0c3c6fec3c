"""Check that this commit can be released, and build it: `python release/check.py [TAG]`.

Without a tag it ends with the command that makes it. With a tag, the tag is checked too.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
MAX_NOTES = 120_000  # GitHub takes 125 000 characters for the page of a release
HEADING = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def git(*args: str) -> str:
    """Return what git prints in the repository."""
    done = subprocess.run(["git", *args], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def version_of(root: Path) -> str:
    """Return the version that capdex/__init__.py says."""
    [version] = re.findall(
        '^__version__ = "(.+)"$', (root / "capdex/__init__.py").read_text(), re.M
    )
    return str(version)


def entries(changelog: str) -> dict[str, tuple[str, str]]:
    """Return date and text of each entry, by its version; the newest is first."""
    parts = HEADING.split(changelog)[1:]
    return {
        name: (date or "", text.strip())
        for name, date, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def message(version: str, changelog: str) -> str:
    """Return the message of the tag: a title, and the entry without signs that git takes away."""
    text = re.sub("^#+ ", "", entries(changelog)[version][1], flags=re.MULTILINE)
    if len(text) > MAX_NOTES:
        text = f"CHANGELOG.md has the entry of {version}, which is too long for this page."
    return f"capdex {version}\n\n{text}\n"


def of_version(version: str, changelog: str) -> Iterator[str]:
    """Yield what is wrong with a version and its entry in the changelog."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        yield f"the version {version} is none"
        return
    if parsed.is_devrelease or parsed.local or str(parsed) != version or len(parsed.release) != 3:
        yield f"the version {version} is not of the form 1.2.3 or 1.2.3rc1 (capdex/__init__.py)"
    (first, (_, waiting)), *released = entries(changelog).items()
    if first != "Unreleased" or waiting:
        yield "CHANGELOG.md must begin with an empty entry [Unreleased]"
    if not released or released[0][0] != version:
        yield f"the newest entry of CHANGELOG.md is not [{version}]"
        return
    date, text = released[0][1]
    if not date or not text:
        yield f"the entry [{version}] of CHANGELOG.md has no date or no text"
    if len(released) > 1 and parsed <= Version(released[1][0]):
        yield f"the version {version} is not newer than {released[1][0]}"


def of_tag(tag: str, version: str, wanted: str) -> Iterator[str]:
    """Yield what is wrong with a tag of this repository."""
    if tag != f"v{version}":
        yield f"the tag {tag} is not v{version}"
        return
    told = git("tag", "-l", "--format=%(objecttype) %(*objectname)", tag)
    kind, _, commit = told.partition(" ")
    if kind != "tag":
        yield f"{tag} is not an annotated tag"
        return
    if commit != git("rev-parse", "HEAD"):
        yield f"{tag} is not at this commit"
    said = git("tag", "-l", "--format=%(contents:subject)%0a%0a%(contents:body)", tag)
    if said != wanted.strip():
        yield f"the message of {tag} is not the entry of CHANGELOG.md"


def of_build(version: str) -> Iterator[str]:
    """Build into dist/, and yield what the wheel says wrongly about itself."""
    subprocess.run([sys.executable, ROOT / "release/build.py"], check=True)
    wheel = ROOT / "dist" / f"capdex-{version}-py3-none-any.whl"
    if not wheel.exists():
        yield f"dist/ has no {wheel.name}"
        return
    with ZipFile(wheel) as archive:
        beside = f"capdex-{version}.dist-info"
        commit = archive.read(f"{beside}/extra_metadata/COMMIT").decode().strip()
        page = archive.read(f"{beside}/METADATA").decode()
    if commit != git("rev-parse", "HEAD"):
        yield f"the wheel says the commit {commit}"
    if f"/blob/v{version}/CHANGELOG.md" not in page:
        yield f"the description of the package does not link to v{version}"


def main() -> None:
    """Exit with 1 and a line for each problem, or with 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag", nargs="?")
    parser.add_argument("--message", action="store_true", help="print the message of the tag alone")
    asked = parser.parse_args()
    version, changelog = version_of(ROOT), (ROOT / "CHANGELOG.md").read_text("utf-8")
    problems = list(of_version(version, changelog))
    if asked.message and not problems:
        sys.stdout.write(message(version, changelog))
        return
    if git("status", "--porcelain"):
        problems.append("there are files that are not committed: git status")
    if asked.tag and not problems:
        problems += of_tag(asked.tag, version, message(version, changelog))
    if not problems:
        problems += of_build(version)
    for problem in problems:
        print(f"✗ {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"✓ capdex {version} can be released")
    if not asked.tag:
        python = shlex.quote(sys.executable)
        print(f"  {python} release/check.py --message | git tag --annotate v{version} --file -")


if __name__ == "__main__":
    main()
