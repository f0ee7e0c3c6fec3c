#!/usr/bin/env python3
"""Compile the contracts and write the artifacts that Python reads.

    python contracts/build.py            # regenerate
    python contracts/build.py --check    # exit 1 if an artifact is not what the sources compile to

Needs `npm ci` once (forge and solc come from npm) and `node` on the PATH.
"""
# ruff: noqa: T201 - a script prints

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONTRACTS = Path(__file__).resolve().parent
REPOSITORY = CONTRACTS.parent
FORGE = REPOSITORY / "node_modules" / ".bin" / "forge"

# Always these together: what else is compiled alongside could change via-IR output.
ARTIFACTS = {
    CONTRACTS / "src" / "CapabilityRegistry.sol": REPOSITORY / "capdex/abi/CapabilityRegistry.json",
    CONTRACTS / "src" / "CapabilityVotes.sol": REPOSITORY / "capdex/abi/CapabilityVotes.json",
    CONTRACTS / "test" / "LaxRegistry.sol": REPOSITORY / "tests/contracts/LaxRegistry.json",
}


class BuildError(Exception):
    """forge is missing or does not compile the sources."""


def compile_artifacts() -> dict[Path, str]:
    """Compile in a directory of its own, and return the text of each artifact by its path."""
    if not FORGE.exists():
        raise BuildError(f"{FORGE.relative_to(REPOSITORY)} is missing: run npm ci")
    with tempfile.TemporaryDirectory(prefix="capdex-forge-") as scratch:
        command = [str(FORGE), "build", "--force", "--out", f"{scratch}/out"]
        command += ["--cache-path", f"{scratch}/cache", *map(str, ARTIFACTS)]
        done = subprocess.run(  # noqa: S603 - every argument is ours
            command, cwd=CONTRACTS, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"forge build failed:\n{done.stdout}{done.stderr}")
        return {
            target: render(
                json.loads(Path(scratch, "out", source.name, f"{source.stem}.json").read_text())
            )
            for source, target in ARTIFACTS.items()
        }


def render(output: dict[str, Any]) -> str:
    """Return what Python needs of forge's output, as text that is the same on every machine."""
    metadata = output["metadata"]
    (name,) = metadata["settings"]["compilationTarget"].values()
    artifact = {
        "contractName": name,
        "compiler": f"solc {metadata['compiler']['version']}",
        "abi": output["abi"],
        "bytecode": output["bytecode"]["object"],
        "storageLayout": storage_layout(output["storageLayout"]),
    }
    return json.dumps(artifact, indent=2, ensure_ascii=False) + "\n"


def storage_layout(layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the variables with readable types: solc's type ids change with unrelated edits."""
    types = layout["types"] or {}
    return [
        {"label": entry["label"], "slot": int(entry["slot"]), "type": types[entry["type"]]["label"]}
        for entry in layout["storage"]
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description="Compile the contracts and write their artifacts.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 on a difference"
    )
    options = parser.parse_args(arguments)
    try:
        artifacts = compile_artifacts()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1

    stale = [p for p, text in artifacts.items() if not p.exists() or p.read_text() != text]
    for path in stale:
        shown = path.relative_to(REPOSITORY)
        if options.check:
            print(f"{shown} is not what the sources compile to: run python contracts/build.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(artifacts[path])
            print(f"wrote {shown}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
