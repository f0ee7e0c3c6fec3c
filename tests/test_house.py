"""What a script can count of how the house is kept: each number has one place where it may grow."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from configparser import ConfigParser
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("capdex", "capdex_cli", "capdex_explorer", "capdex_router"),
    *("indexer/capdex_indexer", "publisher/capdex_publisher", "mcp_service/capdex_service"),
)
# Public class names that two modules may have, with the reason.
REPEATED: dict[str, str] = {}
MAX_DISABLED = 3  # codes of mypy that the tests are not held to
# An error is made whole: two places give one its code while they decide whose fault it was.
MAX_CHANGES_OF_ERRORS = 4
FIELDS_OF_ERRORS = {"message", "code", "why", "fix", "details"}

# Errors here are read by persons and models, so each says what to do.
TELLING = re.compile(
    r"mcp_service/|"
    r"capdex_router/((state|commands|home|bindings|policy)/|faces/(?!hosts/(jsonc|toml|yaml)\.py))"
)
FAMILIES = {"InvalidInput", "UsageError", "Refused", "Unavailable", "ExecutionFailed"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product by its path."""
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}


def where(name: str) -> set[str]:
    """The modules that read an attribute of this name."""
    return {
        path
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == name
    }


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    repeated = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert repeated.keys() == REPEATED.keys(), repeated


def test_no_class_or_module_has_a_name_that_says_nothing() -> None:
    classes = {
        n.name for t in modules().values() for n in ast.walk(t) if isinstance(n, ast.ClassDef)
    }
    names = classes | {Path(path).stem for path in modules()}
    assert [
        x for x in names if re.search(r"Manager$|Helper|Util|^utils?$|^helpers?$|^common$", x)
    ] == []


def test_files_are_brought_to_the_disk_in_two_modules() -> None:
    assert where("fsync") == {"capdex/net/files.py", "capdex/net/ipfs/block_store.py"}


def test_the_type_of_json_is_declared_once() -> None:
    declared = [
        path
        for path, tree in modules().items()
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "Json"
    ]
    assert declared == ["capdex/json.py"]


def test_errors_hardly_change_after_they_are_made() -> None:
    changed = [
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr in FIELDS_OF_ERRORS
        if ast.unparse(target.value) in ("error", "refusal", "caught")
    ]
    assert len(changed) <= MAX_CHANGES_OF_ERRORS, changed


def test_errors_that_persons_and_models_read_say_what_to_do() -> None:
    silent = [
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        if TELLING.match(path)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        if ast.unparse(node.func) in FAMILIES | {"unusable"}
        if "fix" not in {one.arg for one in node.keywords}
        if len(node.args) < (3 if ast.unparse(node.func) == "unusable" else 4)
    ]
    assert silent == []


def test_no_import_of_the_pure_core_is_ignored() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = configured["tool"]["importlinter"]["contracts"]
    assert len(contracts) >= 15
    [pure] = (x for x in contracts if x["name"].startswith("The pure core"))
    assert "ignore_imports" not in pure


def test_the_tests_are_held_to_all_but_three_codes_of_mypy() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "tests/mypy.ini")
    assert len(settings["mypy"]["disable_error_code"].split(",")) <= MAX_DISABLED
