#!/usr/bin/env python3
"""Compile the contracts and write the artifacts that Python reads.

    python contracts/build.py            # regenerate
    python contracts/build.py --check    # exit 1 if a file is not what the sources compile to

Each contract is compiled by itself, from one standard JSON input that is written beside its
artifact: who gives that to the same solc, as block explorers do, gets the same bytecode.

Needs `npm ci` once (solc comes from npm) and `node` on the PATH.
"""
# ruff: noqa: T201 - a script prints

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONTRACTS = Path(__file__).resolve().parent
REPOSITORY = CONTRACTS.parent
SOLC = CONTRACTS / "solc-wrap"  # as forge calls it

ARTIFACTS = {
    "src/CapabilityRegistry.sol": REPOSITORY / "capdex/abi/CapabilityRegistry.json",
    "src/CapabilityVotes.sol": REPOSITORY / "capdex/abi/CapabilityVotes.json",
    "test/LaxRegistry.sol": REPOSITORY / "tests/contracts/LaxRegistry.json",
}
OUTPUTS = ["abi", "evm.bytecode.object", "storageLayout"]
IMPORT = re.compile(r'^import [^;"]*"([^"]+)";', re.MULTILINE)


class BuildError(Exception):
    """solc is missing or does not compile the sources."""


def compile_artifacts() -> dict[Path, str]:
    """Return the text of each artifact, and of the input it is compiled from, by its path."""
    texts = {}
    for source, target in ARTIFACTS.items():
        given = standard_json(source)
        texts[target] = render(source, compile_solidity(given))
        if source.startswith("src/"):
            texts[target.with_suffix(".input.json")] = dump(given)
    return texts


def standard_json(source: str) -> dict[str, Any]:
    """Return all that solc needs to compile one contract, with the settings that forge has."""
    forge = tomllib.loads((CONTRACTS / "foundry.toml").read_text("utf-8"))["profile"]["default"]
    sources = dict(sorted(closure(source)))
    return {
        "language": "Solidity",
        "sources": {name: {"content": content} for name, content in sources.items()},
        "settings": {
            "evmVersion": forge["evm_version"],
            "viaIR": forge["via_ir"],
            "optimizer": {"enabled": forge["optimizer"], "runs": forge["optimizer_runs"]},
            "metadata": {
                "bytecodeHash": forge["bytecode_hash"],
                "appendCBOR": forge["cbor_metadata"],
            },
            "outputSelection": {source: {Path(source).stem: OUTPUTS}},
        },
    }


def closure(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of a source and of all that it imports."""
    seen, wanted = set[str](), [source]
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        text = locate(name).read_text("utf-8")
        yield name, text
        wanted += [resolve(name, path) for path in IMPORT.findall(text)]


def resolve(name: str, path: str) -> str:
    """Return the name of what the source `name` imports as `path`."""
    if path.startswith("@"):
        return path
    parts = [*Path(name).parent.parts]
    for part in Path(path).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def locate(name: str) -> Path:
    """Return the file of a source by its name."""
    return (REPOSITORY / "node_modules" if name.startswith("@") else CONTRACTS) / name


def compile_solidity(given: dict[str, Any]) -> dict[str, Any]:
    """Return what solc answers; raises BuildError with its complaints."""
    done = subprocess.run(  # noqa: S603 - every argument is ours
        [str(SOLC), "--standard-json"],
        cwd=CONTRACTS,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"solc failed (npm ci?):\n{done.stderr}")
    output: dict[str, Any] = json.loads(done.stdout)
    errors = [e["formattedMessage"] for e in output.get("errors", []) if e["severity"] == "error"]
    if errors:
        raise BuildError("\n".join(errors))
    return output


def compiler_version() -> str:
    """Return the version that the wrapper holds npm's solc to."""
    (version,) = re.findall(r"\d+\.\d+\.\d+\+commit\.[0-9a-f]+", SOLC.read_text("utf-8"))[:1]
    return str(version)


def render(source: str, output: dict[str, Any]) -> str:
    """Return what Python needs of solc's output, as text that is the same on every machine."""
    name = Path(source).stem
    contract = output["contracts"][source][name]
    return dump(
        {
            "contractName": name,
            "compiler": f"solc {compiler_version()}",
            "abi": contract["abi"],
            "bytecode": "0x" + contract["evm"]["bytecode"]["object"],
            "storageLayout": storage_layout(contract["storageLayout"]),
        }
    )


def storage_layout(layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the variables with readable types: solc's type ids change with unrelated edits."""
    types = layout["types"] or {}
    return [
        {"label": entry["label"], "slot": int(entry["slot"]), "type": types[entry["type"]]["label"]}
        for entry in layout["storage"]
    ]


def dump(value: dict[str, Any]) -> str:
    """Return JSON as it is checked in."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


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
