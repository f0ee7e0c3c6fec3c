"""The licences of all distributions of an environment: `python licences.py SITE_PACKAGES`.

It needs Python alone, so that the build of the image can run it.
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Any

RULE = "=" * 80
_NAMES = ("licen", "copying", "notice", "authors")


def notice(packages: Path) -> str:
    """Return name, version, licence and licence texts of every distribution in a folder."""
    parts = sorted(distributions(path=[str(packages)]), key=lambda x: x.name.lower())
    head = f"""\
The {len(parts)} Python distributions that are installed together here, and their licences.
Each has the texts that its publisher put into it.
"""
    return head + "".join(map(_entry, parts))


def _entry(distribution: Distribution) -> str:
    files = sorted(filter(_is_licence, distribution.files or []), key=str)
    texts = [
        f"--- {file}\n\n{Path(file.locate()).read_text('utf-8', 'replace').strip()}\n"
        for file in files
    ] or ["It contains no text of its licence.\n"]
    title = f"{distribution.name} {distribution.version}: {_name(distribution)}"
    return "\n".join(["", RULE, title, RULE, "", *texts])


def _is_licence(file: PurePosixPath) -> bool:
    """True for licence files beside the metadata, and for those of code of others inside."""
    name = file.name.lower()
    if any(part.endswith(".dist-info") for part in file.parts):
        return "licenses" in file.parts or name.startswith(_NAMES)
    return file.suffix in ("", ".txt", ".md") and name.startswith(("licen", "copying"))


def _name(distribution: Distribution) -> str:
    """Return the SPDX expression, else the classifiers, else the field that came before both."""
    told: dict[str, Any] = distribution.metadata.json
    classifiers = [
        x.rpartition(" :: ")[2] for x in told.get("classifier", []) if x.startswith("License ::")
    ]
    older: str = told.get("license", "")  # some have the whole text there
    named: str = told.get("license_expression") or ", ".join(classifiers) or older
    return named if named and "\n" not in named else "see its text"


if __name__ == "__main__":
    sys.stdout.write(notice(Path(sys.argv[1])))
