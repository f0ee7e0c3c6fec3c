"""Build what a release consists of: `python release/build.py [FOLDER]` writes it into dist/.

The same commit gives the same bytes, on one kind of machine and Python: the list of parts and the
licences are those of an environment with every extra, and on another platform that has other parts.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import licences

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CYCLONEDX = ROOT / ".tools/dist/bin/cyclonedx-py"
EXTRAS = "local,node,postgres,semantic"
LOCKS = [ROOT / "requirements" / name for name in ("run.lock", "semantic.lock")]  # of all extras
SUMS = "SHA256SUMS"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return what a command prints; raise CalledProcessError with its errors shown otherwise."""
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def distributions(into: Path, work: Path) -> tuple[Path, Path, Path]:
    """Build source distribution and wheel: their paths, and the sources that the wheel is made of.

    The wheel is made of the unpacked source distribution, so that everybody can make it again.
    """
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", into)
    [sdist] = into.glob("*.tar.gz")
    run("tar", "-xzf", sdist, "-C", work)
    sources = work / sdist.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into, cwd=sources)
    [wheel] = into.glob("*.whl")
    return sdist, wheel, sources


def constraints() -> str:
    """Return the locked version of every part of every extra, a line each, without hashes.

    pip would demand hashes of everything that is installed with them, of capdex too.
    """
    pins = (re.findall(r"^\S+==.*?(?= *\\$)", x.read_text("utf-8"), re.MULTILINE) for x in LOCKS)
    return "".join(f"{line}\n" for line in sorted({line for lines in pins for line in lines}))


def environment(into: Path, version: str, dist: Path) -> Path:
    """Install the wheel with every extra at the locked hashes, and return its Python."""
    python = into / "bin" / "python"
    install = (BIN / "uv", "pip", "install", "--quiet", "--python", python)
    build = ("--build-constraints", ROOT / "requirements/bootstrap.lock")
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, into)
    run(*install, "--require-hashes", *build, *(word for lock in LOCKS for word in ("-r", lock)))
    # By its name and not by its path, which would stand in the metadata of the environment.
    source = ("--no-index", "--find-links", dist, "--refresh-package", "capdex")
    run(*install, "--no-deps", *source, f"capdex[{EXTRAS}]=={version}")
    run(BIN / "uv", "pip", "check", "--quiet", "--python", python)
    return python


def parts(python: Path, sources: Path, version: str, into: Path) -> None:
    """Write the CycloneDX list of the parts of an environment, which tests check by its schema."""
    project = sources / "pyproject.toml"  # its version is dynamic, and the tool wants it there
    project.write_text(
        re.sub("^dynamic = .*$", f'version = "{version}"', project.read_text("utf-8"), flags=re.M),
        "utf-8",
    )
    form = ("--of", "JSON", "--sv", "1.6", "--output-reproducible", "--no-validate")
    run(CYCLONEDX, "environment", "--pyproject", project, *form, "-o", into, python)


def main() -> None:
    """Replace the folder's content by the files of a release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    folder = parser.parse_args().folder.resolve()
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as temporary:
        work, made = Path(temporary), Path(temporary) / "dist"
        made.mkdir()
        _, wheel, sources = distributions(made, work)
        stem = "-".join(wheel.name.split("-")[:2])
        version = stem.partition("-")[2]
        (made / f"{stem}-constraints.txt").write_text(constraints(), "utf-8")
        python = environment(work / "environment", version, made)
        parts(python, sources, version, made / f"{stem}.cdx.json")
        [packages] = (work / "environment").glob("lib/python*/site-packages")
        (made / f"{stem}-licences.txt").write_text(licences.notice(packages), "utf-8")
        sums = [f"{hashlib.sha256(x.read_bytes()).hexdigest()}  {x.name}\n" for x in made.iterdir()]
        (made / SUMS).write_text("".join(sorted(sums, key=lambda line: line[66:])), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)
    for file in sorted(folder.iterdir()):
        print(f"{file.stat().st_size:10}  {file.name}")


if __name__ == "__main__":
    main()
