"""Learning real programs: their help, their templates, and what probes say."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import ExecutionFailed, InvalidInput
from capdex_router.commands.executor import CommandExecutor
from capdex_router.commands.intents.manifest import (
    CommandManifest,
    CommandTool,
    ProbeValues,
    parse_capability,
    parse_intent,
    parse_manifest,
)
from capdex_router.commands.learned import Learned
from capdex_router.commands.probe import kind_of, learn
from capdex_router.commands.sandbox.bubblewrap import ProcessResult, Sandbox, Surroundings

GREP = Path(shutil.which("grep") or "/usr/bin/grep").resolve()
MANIFEST = CommandManifest("files", "grep", "Search of files", "0.0.0", "grep")
SEARCH: dict[str, object] = {
    "patterns": ["search for"],
    "command": "grep --recursive --with-filename {query} {path}",
    "params": {"query": {"type": "string", "required": True}, "path": {"type": "string"}},
}


def learned(
    tmp_path: Path, *intents: dict[str, object], samples: Sequence[ProbeValues] = ()
) -> Learned:
    (tmp_path / "notes.txt").write_text("alpha\nbeta\n")
    sandbox = Sandbox.find()

    async def run(argv: Sequence[str]) -> ProcessResult:
        return await sandbox.run(argv, Surroundings(tmp_path), timeout_s=20)

    found = tuple(parse_intent(one) for one in intents)
    return asyncio.run(learn(CommandTool(MANIFEST, found, tuple(samples)), GREP, run))


def test_grep_is_learned(tmp_path: Path) -> None:
    found = learned(
        tmp_path,
        SEARCH,
        samples=(
            ProbeValues(0, {"query": "alpha", "path": "."}),
            ProbeValues(0, {"query": "absent", "path": "."}),
        ),
    )
    assert found.successes == (frozenset((0, 1)),)
    assert found.tool.intents[0].kind == "lines"
    assert found.tool.intents[0].template.argv({"query": "-x", "path": "."})[1:] == (
        *("--recursive", "--with-filename", "--", "-x", "."),
    )
    assert found.evidence["version"] == found.tool.manifest.version != "0.0.0"
    assert len(found.digest) == 64
    assert found.help.options["--regexp"]
    assert not found.help.options["--recursive"]


def test_an_intent_with_an_option_of_one_dash_does_what_it_says(tmp_path: Path) -> None:
    intent: dict[str, object] = {
        "patterns": ["first matches"],
        "command": "grep -m {count} {query} {path}",
    }
    found = learned(tmp_path, intent)
    (tmp_path / "notes.txt").write_text("alpha\nalpha\nalpha\n")
    values = {"count": "2", "query": "alpha", "path": "notes.txt"}
    assert call(found, 0, tmp_path, **values) == {"lines": ["alpha", "alpha"]}


def test_an_option_that_the_help_does_not_list_is_refused(tmp_path: Path) -> None:
    for command in ("grep --pre {query}", "grep --pre={query}", "grep --no-such -- {query}"):
        with pytest.raises(InvalidInput, match="does not list"):
            learned(tmp_path, {"patterns": ["x"], "command": command})


@pytest.fixture(scope="module")
def rg() -> Path:
    # package-lock.json has one for Linux on x86-64, with its hash.
    bundled = Path(__file__).parents[3] / "node_modules/@vscode/ripgrep-linux-x64/bin/rg"
    found = shutil.which("rg") or (str(bundled) if bundled.is_file() else None)
    if found is None:
        pytest.skip("no rg: `make node` installs one on Linux x86-64")
    return Path(found).resolve()


@pytest.fixture
def ripgrep(rg: Path, tmp_path: Path) -> Learned:
    """`rg` with both templates of the specification, learned in a directory of known content."""
    (tmp_path / "notes.txt").write_text("alpha\nbeta\n")
    data = (Path(__file__).parent / "data/rg.json").read_bytes()
    samples = (ProbeValues(i, {"query": text}) for i in (0, 1) for text in ("alpha", "absent"))

    async def run(argv: Sequence[str]) -> ProcessResult:
        return await Sandbox.find().run(argv, Surroundings(tmp_path), timeout_s=20)

    tool = CommandTool(parse_manifest(data), parse_capability(data), tuple(samples))
    return asyncio.run(learn(tool, rg, run))


def call(found: Learned, intent: int, work: Path, **values: object) -> dict[str, Any]:
    chosen = found.tool.intents[intent]
    command = CommandExecutor(
        found.program,
        found.digest,
        chosen.template,
        Sandbox.find(),
        Surroundings(work),
        chosen.kind or "lines",
        found.successes[intent],
    )
    return asyncio.run(command.run(values, timeout_s=20))


def test_a_learned_tool_is_read_again(ripgrep: Learned) -> None:
    assert Learned.from_json(json.dumps(ripgrep.to_json()).encode()) == ripgrep


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"options": 7}', b" " * 2_000_000])
def test_a_broken_learned_tool_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        Learned.from_json(data)


def test_rg_is_learned_from_the_specification_s_example(ripgrep: Learned, tmp_path: Path) -> None:
    search, count = ripgrep.tool.intents
    assert ripgrep.successes == (frozenset((0, 1)), frozenset((0, 1)))
    assert (search.kind, count.kind) == ("jsonLines", "lines")
    assert search.template.argv({"query": "--pre=x"}) == ("rg", "--json", "--", "--pre=x", ".")
    found = call(ripgrep, 0, tmp_path, query="alpha")["records"]
    assert [one["type"] for one in found] == ["begin", "match", "end", "summary"]
    assert call(ripgrep, 1, tmp_path, query="absent") == {"lines": []}


@pytest.mark.parametrize("query", ["--pre=/bin/sh", "-e", "; rm -rf .", "a'b\"c", "`id`"])
def test_rg_searches_for_hostile_queries(ripgrep: Learned, tmp_path: Path, query: str) -> None:
    (tmp_path / "-evil.txt").write_text(f"before {query} after\n")
    assert call(ripgrep, 1, tmp_path, query=query)["lines"] == ["./-evil.txt:1"]
    assert call(ripgrep, 1, tmp_path, query=query, path="-evil.txt")["lines"] == ["1"]


def test_rg_fails_for_a_bad_pattern_and_for_no_file(ripgrep: Learned, tmp_path: Path) -> None:
    for values in ({"query": "["}, {"query": "a", "path": "; rm"}, {"query": "a\nb"}):
        with pytest.raises(ExecutionFailed):
            call(ripgrep, 1, tmp_path, **values)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (b'{"a": 1}\n', "json"),
        (b"[]", "json"),
        (b'{"a": 1}\n{"a": 2}\n', "jsonLines"),
        (b"NAME   AGE\nann    3\n", "table"),
        (b"one line\n", "lines"),
        (b"a\nb\n", "lines"),
        (b"", "lines"),
        (b"{broken\n", "lines"),
        (b"\xff\xfe", "lines"),
    ],
)
def test_the_shape_of_an_output(output: bytes, kind: str) -> None:
    assert kind_of(output) == kind


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode()))
def test_any_output_has_a_shape(data: bytes) -> None:
    kind_of(data)
