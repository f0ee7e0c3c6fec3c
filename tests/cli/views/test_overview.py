"""The overview of a name: its package, its rights, its owner and its versions."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from capdex.manifest.manifest import read
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import columns
from capdex_cli.views.overview import overview, package_json, versions
from tests.indexer import making

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def stream() -> Stream:
    return Stream(io.StringIO(), tty=False, color=False, unicode=True)


def release(semver: str, timestamp: Any = 1_790_000_000, **more: Any) -> dict[str, Any]:
    return {
        "semver": semver,
        "acp_metadata": {"name": "Weather", "summary": "Tells the weather", "license": "MIT"},
        "verification": {"verdict": "verified"},
        "availability": "available",
        "chain": {"timestamp": timestamp},
        **more,
    }


def test_a_name_shows_tools_hosts_and_owner(stream: Stream) -> None:
    manifest = read((EXAMPLES / "city-weather.acp.yaml").read_bytes()).require()
    standing = {
        "owner": "0xOwner",
        "maintainers": [],
        "renounced": False,
        "pending_owner": None,
        "deprecated": False,
        "votes": None,
    }
    lines = overview(stream, release("1.0.0"), package_json(manifest), standing)
    assert lines[0] == "Weather 1.0.0  Tells the weather"
    text = "\n".join(lines)
    assert "contacts     geocoding-api.open-meteo.com, api.open-meteo.com, " in text
    assert "licence      MIT" in text
    assert "owner        0xOwner\nmaintainers  none beside the owner" in text
    assert "3 tools\n  find_place       Find places by name." in text
    nobodys = overview(
        stream, release("1.0.0"), package_json(manifest), standing | {"renounced": True}
    )
    assert "owner        none: renounced for good\nmaintainers  none\n" in "\n".join(nobodys)


def test_tools_that_nothing_here_runs_are_named(stream: Stream) -> None:
    tools = [making.tool("now"), making.tool("later")]
    bindings = {"later": {"type": "carrier_pigeon"}}
    file = making.package_bytes("weather", tools=tools, bindings=bindings)
    package = package_json(read(file).require())
    assert package["unbound"] == ["later"]
    assert "not run      later\n" in "\n".join(overview(stream, release("1.0.0"), package, None))


def test_versions_have_a_step_and_a_date(stream: Stream) -> None:
    found = [release("2.0.0"), release("1.1.0"), release("1.0.1"), release("1.0.0", 0)]
    assert [
        line.split()[:3] for line in columns(versions(stream, found, [""] * 4, None), indent=0)
    ] == [
        ["2.0.0", "major", "2026-09-21"],
        ["1.1.0", "minor", "2026-09-21"],
        ["1.0.1", "patch", "2026-09-21"],
        ["1.0.0", "✓", "verified"],
    ]


def test_versions_that_the_owner_did_not_publish_tell_who_did(stream: Stream) -> None:
    old, new = (f"0x{digit * 40}" for digit in "ab")
    found = [
        release(semver) | {"chain": {"publisher": by}}
        for semver, by in (("1.1.0", new), ("1.0.0", old))
    ]
    for owner in (new, None):
        lines = columns(versions(stream, found, ["", "wrong"], owner), indent=0)
        assert "by" not in lines[0]
        assert lines[1].endswith(f"by {old} wrong")


@pytest.mark.parametrize("value", [None, 1, "\x1b[31m", ["\u202e"], {"a": 1}, -1, 1 << 70])
def test_a_node_may_answer_anything(stream: Stream, value: Any) -> None:
    for key in ("semver", "acp_metadata", "verification", "chain", "latest", "availability"):
        found = [release("1.1.0") | {key: value}, release("1.0.0", timestamp=value)]
        rows = versions(stream, found, ["", ""], None)
        lines = [*overview(stream, found[0], None, None), *columns(rows)]
        assert all(line.isprintable() for line in lines)


def test_files_of_a_package_are_listed_with_what_can_be_run(stream: Stream, making: Any) -> None:
    def text(files: dict[str, bytes]) -> str:
        manifest = read(making.package_bytes(files=files)).require()
        return "\n".join(overview(stream, release("1.0.0"), package_json(manifest), None))

    found = text({"a.md": b"A" * 2048, "b.py": b""})
    assert "2 files, 2.0 KiB" in found
    assert re.search(r"^  a\.md  2\.0 KiB  text/plain$", found, re.M)
    assert re.search(r"^  b\.py  0 B      text/plain  may be run$", found, re.M)
    assert "files" not in text({})
    many = text({f"{i:02}.md": b"" for i in range(41)})
    assert "41 files, 0 B" in many
    assert "40.md" not in many
    assert "and 1 more: --json" in many
