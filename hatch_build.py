"""What the build adds to pyproject.toml: addresses, the page of the package index, the commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# A link or picture of Markdown to somewhere in the repository.
_RELATIVE = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?![a-z]+:)([^)\s]*)\)")


def commit_of(root: Path) -> str | None:
    """Return the commit of these sources, with `-dirty` if tracked files differ from it.

    A source distribution has it in the file `COMMIT`, a clone in its history. None elsewhere.
    """
    if (root / "COMMIT").exists():
        return (root / "COMMIT").read_text("utf-8").strip()
    if not (root / ".git").exists():
        return None
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def absolute(page: str, repository: str, ref: str) -> str:
    """Return a page of the repository's root with its relative links and pictures as addresses."""

    def address(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        if picture:
            return f"!{text}({repository}/raw/{ref}/{target})"
        inner = _RELATIVE.sub(address, text)
        path = f"README.md{target}" if target.startswith("#") else target
        return f"{inner}({repository}/blob/{ref}/{path})"

    return _RELATIVE.sub(address, page)


class Metadata(MetadataHookInterface):
    """Addresses of the project, and the README for the package index."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `urls` and `readme`; links lead to the tag of a release, else to the commit."""
        repository, version = self.config["repository"], metadata["version"]
        commit = (commit_of(Path(self.root)) or "HEAD").removesuffix("-dirty")
        ref = commit if "dev" in version else f"v{version}"
        metadata["urls"] = {
            "Source": repository,
            "Documentation": f"{repository}/tree/{ref}/docs",
            "Changelog": f"{repository}/blob/{ref}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, repository, ref),
        }


class Commit(BuildHookInterface[Any]):
    """The commit, in the source distribution and beside the metadata of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file; an editable install has none, since its commit changes."""
        commit = commit_of(Path(self.root))
        if commit is None or version == "editable":
            return
        made = Path(self.directory) / ".commit"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(f"{commit}\n", "utf-8")
        where = "extra_metadata" if self.target_name == "wheel" else "force_include"
        build_data[where][str(made)] = "COMMIT"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what `initialize` wrote."""
        (Path(self.directory) / ".commit").unlink(missing_ok=True)
