"""`capdex install` and its sisters against a node of canned answers, and the router after them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex_cli.config.completion_cache import complete
from capdex_router.commands.sandbox.bubblewrap import Sandbox
from tests.e2e.forks import Warm

ROOT = Path(__file__).parents[3]
HOST = "host:tools.example.org"


@pytest.fixture
def publish(node: Any, making: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`publish(version)` has the node answer with this version of weather from now on."""
    monkeypatch.setenv("CAPDEX_CHAIN_ID", str(making.CHAIN_ID))
    monkeypatch.setenv("CAPDEX_REGISTRY", making.checksum_address(making.REGISTRY))

    def go(version: str = "1.0.0", name: str = "weather", **options: Any) -> dict[str, Any]:
        tools = [making.tool("now", city="A city.")]
        data = making.package_bytes(name, version, tools=tools, **options)
        cid = making.Cid.of(data)
        told = {
            "acp_metadata": {"name": name.title(), "summary": f"What {name} does."},
            "cap_uri": f"did:nuwa:cap:{name}@{version}",
            "semver": version,
            "ipfs_cid": cid.text,
            "sha256": cid.digest.hex(),
            "status": {"yanked": False},
            "chain": {
                "chain_id": making.CHAIN_ID,
                "contract": making.checksum_address(making.REGISTRY),
                "publisher": making.checksum_address(making.PUBLISHER),
                "block_number": 7,
                "sequence": 1,
            },
        }
        node.blocks[cid.text] = data
        node.answer("resolve_capability", told)
        return told

    return go


def home() -> Path:
    return Path(os.environ["CAPDEX_HOME"]) / "data" / "router"


def router(warm: Warm) -> Client:
    server = StdioServerParameters(
        command=warm.capdex,
        args=["router"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key.startswith("CAPDEX_")},
    )
    return Client(server)


def said(result: Any) -> str:
    return "".join(block.text for block in result.content)


# install ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["installed", "upgrade", "sync"])
def test_where_nothing_is_installed_the_commands_say_so(capdex: Any, command: str) -> None:
    result = capdex(command, "--format", "human")
    assert (result.exit_code, result.stderr) == (0, "nothing is installed\n")


def test_what_only_reads_works_on_a_read_only_file_system(capdex: Any, publish: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    bwrap = [str(Sandbox.find().bwrap), "--dev-bind", "/", "/", "--ro-bind", *[str(home())] * 2]

    def there(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*bwrap, sys.executable, "-m", "capdex", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    for words in (("installed",), ("sync", "--check"), ("upgrade", "--preview")):
        result = there(*words, "--plain")
        assert (result.returncode, result.stdout) == (0, "weather@1.0.0\n"), result.stderr
    assert "UNREADABLE" in there("remove", "weather").stderr
    assert capdex("installed", "--plain").stdout == "weather@1.0.0\n"


def test_install_shows_what_it_asks_for_and_notes_it(capdex: Any, publish: Any) -> None:
    told = publish(permissions={"require": ["state.create"]})
    result = capdex("install", "weather@^1", "--yes", "--json")
    assert result.exit_code == 0, result.stderr
    assert "Install weather 1.0.0?" in result.stderr
    assert "now: GET https://tools.example.org/do" in result.stderr
    (found,) = json.loads(result.stdout)["results"]
    assert (found["name"], found["status"], found["sha256"]) == (
        "weather", "installed", told["sha256"],
    )  # fmt: skip
    assert "asked for: ^1" in capdex("installed", "--format", "human").stdout
    context: Any = None
    assert complete(context, context, "wea") == ["weather"]  # to a TAB after `capdex remove`
    (row,) = capdex.json("installed")["results"]
    assert (row["name"], row["request"], row["standing"]) == ("weather", "^1", "ready")
    assert capdex("installed", "--plain").stdout == "weather@1.0.0\n"
    granted = {json.loads(line)["target"] for line in capdex("grant").stdout.splitlines()}
    assert granted == {"install", HOST, "state.create"}


def test_a_call_goes_to_another_server_for_once_with_a_right_of_its_own(
    capdex: Any, publish: Any, node: Any
) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    words = (
        "call",
        "weather#now",
        '{"city": "Oslo"}',
        "--at",
        f"https://tools.example.org={node.url}",
    )
    asked = capdex(*words)
    assert asked.exit_code == 4
    assert f"GET {node.url}/do" in asked.stderr
    assert "127.0.0.1 answered with status 404" in capdex(*words, "--yes").stderr
    wrong = capdex(*words[:-1], f"https://other.example.org={node.url}", "--yes")
    assert "the tool is not at any of the URLs that are moved" in wrong.stderr


def test_install_needs_a_yes_where_nobody_can_be_asked(capdex: Any, publish: Any) -> None:
    publish()
    result = capdex("install", "weather")
    assert result.exit_code == 4
    assert "Install weather 1.0.0?" in result.stderr
    assert "--yes" in result.stderr
    assert not (home() / "capdex.lock").exists()


def test_a_dry_run_writes_nothing(capdex: Any, publish: Any) -> None:
    publish()
    result = capdex("install", "weather", "--dry-run", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["results"][0]["status"] == "planned"
    assert "signed by: did:key:" in result.stderr
    assert not (home() / "capdex.lock").exists()


def test_a_wish_with_several_hits_is_a_list(capdex: Any, publish: Any, node: Any) -> None:
    hits = [publish(), publish(name="tides")]
    node.answer("search_capabilities", {"list_of_results": hits})
    result = capdex("install", "what will it be like", "--yes")
    assert result.exit_code == 1
    assert "error[AMBIGUOUS]" in result.stderr
    assert "weather, tides" in result.stderr
    node.answer("search_capabilities", {"list_of_results": hits[:1]})
    assert "AMBIGUOUS" in capdex("install", "what will it be like", "--yes").stderr
    node.answer("search_capabilities", {"list_of_results": []})
    assert "NOT_FOUND" in capdex("install", "what will it be like", "--yes").stderr


def test_what_was_installed_is_told_though_the_next_one_fails(
    capdex: Any, publish: Any, node: Any
) -> None:
    publish()
    node.answer("search_capabilities", {"list_of_results": []})
    result = capdex("install", "weather", "what is not there", "--yes", "--json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)["results"]
    assert (found["name"], found["status"]) == ("weather", "installed")
    assert "NOT_FOUND" in result.stderr


def test_ctrl_c_at_the_choice_of_a_capability_ends_the_command(
    publish: Any, node: Any, ctrl_c: Any
) -> None:
    hits = [publish(), publish(name="tides")]
    node.answer("search_capabilities", {"list_of_results": hits})
    process = pexpect.spawn(
        sys.executable,
        ["-m", "capdex", "install", "what will it be like"],
        env={key: value for key, value in os.environ.items() if key != "CI"},
        encoding="utf-8",
        timeout=30,
    )
    process.expect("Which one")
    ctrl_c(process)
    process.close()
    assert "interrupted" in process.before
    assert process.exitstatus == 130


# upgrade, remove, sync, audit ---------------------------------------------------------------


def test_upgrade_previews_asks_about_what_widened_and_upgrades(capdex: Any, publish: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    publish("1.1.0", permissions={"require": ["state.delete"]}, prompt="Else.")
    preview = capdex("upgrade", "--preview", "--json")
    assert preview.exit_code == 0
    told = preview.stderr.splitlines()
    assert len(told) == len(set(told))
    (found,) = json.loads(preview.stdout)["results"]
    assert (found["status"], found["was"]) == ("planned", "1.0.0")
    assert any("state.delete" in line for line in found["widened"])
    assert any("prompt" in change["section"] for change in found["changes"])
    refused = capdex("upgrade", "--format", "human")
    assert "\n  fix: run the same command in a terminal, or add --yes\n" in refused.stderr
    assert refused.exit_code == 4
    assert capdex("installed", "--plain").stdout == "weather@1.0.0\n"
    done = capdex("upgrade", "weather", "--yes", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["results"][0]["status"] == "upgraded"
    again = json.loads(capdex("upgrade", "--json").stdout)["results"]
    assert [one["status"] for one in again] == ["unchanged"]


@pytest.mark.parametrize("more", [["--yes"], ["--dry-run"], []])
def test_an_installation_warns_once_of_what_is_deprecated(
    capdex: Any, publish: Any, node: Any, more: list[str]
) -> None:
    told = publish()
    node.answer("resolve_capability", told | {"status": {"deprecated": True}})
    for _ in range(2):  # the second one asks nothing
        result = capdex("install", "weather", *more, "--format", "human")
        assert result.stderr.count("did:nuwa:cap:weather@1.0.0 is deprecated") == 1


@pytest.mark.parametrize("more", [["--yes"], ["--preview"], []])
def test_an_upgrade_that_asks_nothing_warns_of_what_is_deprecated(
    capdex: Any, publish: Any, node: Any, more: list[str]
) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    told = publish("1.0.1", license="MIT")
    node.answer("resolve_capability", told | {"status": {"deprecated": True}})
    result = capdex("upgrade", *more, "--format", "human")
    assert result.exit_code == 0
    assert result.stderr.count("did:nuwa:cap:weather@1.0.1 is deprecated") == 1


@pytest.mark.parametrize("request_", ["weather", "did:nuwa:cap:weather@1.0.0"])
@pytest.mark.parametrize("more", [[], ["--preview"]])
def test_an_upgrade_that_finds_nothing_newer_warns_of_what_became_of_what_is_installed(
    capdex: Any, publish: Any, node: Any, request_: str, more: list[str]
) -> None:
    told = publish()
    assert capdex("install", request_, "--yes").exit_code == 0
    status = {"yanked": True, "yank_reason": "leaks", "name_deprecated": True}
    node.answer("resolve_capability", told | {"status": status | {"replaced_by": "climate"}})
    result = capdex("upgrade", *more, "--json")
    assert result.exit_code == 0
    assert 'warning: did:nuwa:cap:weather@1.0.0 is yanked: "leaks"\n' in result.stderr
    (outcome,) = json.loads(result.stdout)["results"]
    assert outcome["status"] == "unchanged"
    assert outcome["warnings"] == [
        'did:nuwa:cap:weather@1.0.0 is yanked: "leaks"',
        'the name weather is deprecated, and its owner names "climate" in its place',
    ]


def test_an_older_version_is_no_upgrade_and_said_so(capdex: Any, publish: Any) -> None:
    publish("1.1.0")
    assert capdex("install", "weather", "--yes").exit_code == 0
    publish("1.0.0")
    result = capdex("upgrade", "--yes")
    assert result.exit_code == 0
    assert "which is older" in result.stderr
    assert capdex("installed", "--plain").stdout == "weather@1.1.0\n"


def test_sync_checks_and_mends(capdex: Any, publish: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    assert capdex.json("sync", "--check")["packages"] == 1
    (block,) = (home() / "blocks").glob("*/bafk*")
    block.unlink()
    drift = capdex("sync", "--check")
    assert drift.exit_code == 1
    assert "error[LOCK_DRIFT]" in drift.stderr
    assert capdex.json("installed")["results"][0]["standing"] == "missing"
    assert capdex.json("sync", "--frozen")["results"][0]["status"] == "fetched"
    assert capdex("sync", "--check").exit_code == 0


def test_an_upgrade_leads_to_sync_for_a_line_that_nobody_agreed_to_here(
    capdex: Any, publish: Any
) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    (home() / "grants.json").unlink()
    (row,) = capdex.json("installed")["results"]
    assert (row["standing"], row["verdict"]) == ("not agreed", None)
    result = capdex("upgrade", "--yes", "--format", "human")
    assert "unchanged" in result.stdout
    assert "nobody agreed to weather 1.0.0 on this machine: capdex sync asks" in result.stderr
    assert not (home() / "grants.json").exists()  # it may have been taken back
    assert capdex("sync", "--yes").exit_code == 0
    assert "nobody agreed" not in capdex("upgrade", "--yes").stderr


def test_plain_values_are_those_of_the_lines_that_did_not_fail(capdex: Any, publish: Any) -> None:
    for name in ("tides", "weather"):
        publish(name=name)
        assert capdex("install", name, "--yes").exit_code == 0
    lock = home() / "capdex.lock"
    weather = lock.read_bytes().splitlines()[2]
    edited = weather.replace(b"tools.example.org", b"other.example.org")
    lock.write_bytes(lock.read_bytes().replace(weather, edited))
    result = capdex("sync", "--plain")
    assert (result.exit_code, result.stdout) == (1, "tides@1.0.0\n")
    assert "weather: the lock file does not say of weather what its package says" in result.stderr


def test_a_check_shows_how_much_of_it_is_done(capdex: Any, publish: Any, warm: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    process = pexpect.spawn(
        warm.capdex,
        ["sync", "--check"],
        env={key: value for key, value in os.environ.items() if key != "CI"},
        encoding="utf-8",
        timeout=30,
    )
    process.expect("0 of 1 packages")
    process.expect("1 package as the lock file says")
    process.expect(pexpect.EOF)
    process.close()
    assert process.exitstatus == 0


def test_a_skill_is_written_for_a_host_compared_and_taken_away(
    capdex: Any, publish: Any, node: Any, making: Any, tmp_path: Path
) -> None:
    files = {"scripts/now.sh": b"#!/bin/sh\ndate\n", "notes.md": b"# Notes"}
    node.blocks |= {str(cid): x for content in files.values() for cid, x in making.divide(content)}
    publish(files=files)
    shown = capdex("install", "weather", "--to", "claude", "--plan", "--format", "human").stderr
    folder = Path.cwd() / ".claude/skills/weather"
    assert f'"{folder}"' in shown
    assert '"scripts/now.sh", executable, "#!/bin/sh"' in shown
    assert not folder.exists()
    capdex("install", "weather", "--to", "claude", "--to", str(tmp_path / "other"), "--yes")
    assert (tmp_path / "other/weather/notes.md").read_bytes() == b"# Notes"
    (listed,) = capdex.json("installed")["results"]
    assert listed["folders"] == [str(folder), str(tmp_path / "other/weather")]
    assert capdex("sync", "--check").exit_code == 0
    (folder / "notes.md").write_text("edited")
    refused = capdex("sync", "--check")
    assert refused.exit_code == 1
    assert f"{folder}/notes.md is not what was installed" in refused.stderr
    for number in range(6):
        (folder / f"more{number}.md").write_text("mine")
    assert "; and 2 more, which --json has" in capdex("sync", "--check").stderr
    told = capdex("sync", "--check", "--json").stderr
    assert len(json.loads(told)["details"]["problems"]) == 7
    assert "mended" in capdex("sync", "--format", "human").stdout
    (folder / "mine.md").write_text("mine")
    told = capdex("remove", "weather").stderr
    assert f"{folder} stays" in told
    assert [path.name for path in folder.iterdir()] == ["mine.md"]
    assert not (tmp_path / "other/weather").exists()


def test_a_folder_whose_grants_were_taken_back_stays_and_is_named(
    capdex: Any, publish: Any
) -> None:
    publish()
    capdex("install", "weather", "--to", "claude", "--yes")
    assert "asked for: any" in capdex("installed", "--format", "human").stdout
    capdex("grant", "weather", "--revoke")
    told = capdex("remove", "weather").stderr
    assert "what was granted to weather was taken back, and the folder with it; delete it" in told
    assert (Path.cwd() / ".claude/skills/weather/SKILL.md").exists()


def test_one_more_folder_of_the_same_version_is_no_upgrade(capdex: Any, publish: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    again = capdex("install", "weather", "--to", "claude", "--yes", "--format", "human")
    assert "Install weather 1.0.0?" in again.stderr
    assert "new: writes SKILL.md" in again.stderr
    assert "before" not in again.stdout


def test_a_user_s_folder_needs_a_host(capdex: Any, publish: Any) -> None:
    publish()
    for to, told in (([], "--user needs --to"), (["--to", "./here"], "is no host")):
        refused = capdex("install", "weather", *to, "--user", "--yes")
        assert (refused.exit_code, told in refused.stderr) == (2, True)


def test_remove_takes_the_rights_back(capdex: Any, publish: Any) -> None:
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    assert capdex.json("remove", "weather")["results"] == [{"name": "weather", "version": "1.0.0"}]
    assert capdex("grant").stdout == ""
    assert capdex("remove", "weather").exit_code == 1
    assert capdex.json("installed")["results"] == []


def test_objects_stay_unless_they_are_purged(capdex: Any, publish: Any) -> None:
    from capdex_router.state.rows import Space
    from capdex_router.state.store import ObjectStore
    from capdex_router.state.strategies import model

    space, schema = Space("did:nuwa:cap:weather", "notes"), model("urn:notes", {"type": "object"})
    other = Space("did:nuwa:cap:tides", "notes")
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    with ObjectStore(home() / "state.sqlite") as store:
        for owner in (space, other):
            store.create(owner, schema, "a", {"text": "kept"})
    assert capdex("remove", "weather").exit_code == 0
    with ObjectStore(home() / "state.sqlite") as store:
        assert [one.live for one in store.collections()] == [1, 1]
    assert capdex("install", "weather", "--yes").exit_code == 0
    assert capdex("remove", "weather", "--purge-state").exit_code == 4
    assert capdex("remove", "weather", "--purge-state", "--yes").exit_code == 0
    with ObjectStore(home() / "state.sqlite") as store:
        assert [one.space for one in store.collections()] == [other]


def test_the_question_tells_of_objects_that_another_signer_s_package_kept(
    capdex: Any, publish: Any, making: Any
) -> None:
    from capdex_router.state.rows import Space
    from capdex_router.state.store import ObjectStore
    from capdex_router.state.strategies import model

    told = "objects of an earlier installation, which it may use"
    reads: Any = {"permissions": {"require": ["state.query"]}, "memory_scope": "notes"}
    publish(**reads)
    assert told not in capdex("install", "weather", "--yes").stderr
    diary, schema = Space("did:nuwa:cap:weather", "notes"), model("urn:n", {"type": "object"})
    with ObjectStore(home() / "state.sqlite") as store:
        for id_ in "abc":
            store.create(diary, schema, id_, {"text": "kept"})
        store.delete(diary, schema, "c")
    assert capdex("remove", "weather").exit_code == 0
    publish(key=making.OTHER_KEY)
    assert told not in capdex("install", "weather", "--yes").stderr
    assert capdex("remove", "weather").exit_code == 0
    publish(key=making.OTHER_KEY, **reads)
    assert f"{told}: 2" in capdex("install", "weather", "--yes").stderr
    assert capdex("remove", "weather").exit_code == 0
    for name in ("tides", "weather"):
        assert capdex("remove", name, "--purge-state").exit_code == (1 if name == "tides" else 4)
    assert "3 objects removed" in capdex("remove", "weather", "--purge-state", "--yes").stderr
    assert told not in capdex("install", "weather", "--yes").stderr


def test_audit_checks_the_chain_of_decisions(capdex: Any, publish: Any) -> None:
    assert capdex.json("audit") == {
        "schema": "capdex.audit/1", "results": [], "lines": 0, "broken": None,
    }  # fmt: skip
    publish()
    assert capdex("install", "weather", "--yes").exit_code == 0
    found = capdex.json("audit", "--last", "1")
    assert (found["lines"], [line["event"] for line in found["results"]]) == (2, ["install"])
    consent, install = capdex("audit", "--plain").stdout.splitlines()
    assert consent.endswith(" consent did:nuwa:cap:weather agreed")
    assert install.endswith(" install did:nuwa:cap:weather 1.0.0")
    log = home() / "audit.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"agreed":true', b'"agreed":null'))
    result = capdex("audit")
    assert result.exit_code == 1
    assert "line 2" in result.stderr


# the router ---------------------------------------------------------------------------------


async def test_a_running_router_offers_what_is_installed_meanwhile(
    capdex: Any, publish: Any, warm: Warm
) -> None:
    publish(prompt="Say it kindly.", triggers=[{"type": "keyword", "value": "rain"}])
    async with router(warm) as client:
        assert "nothing is installed" in said(await client.call_tool("manage", {"action": "list"}))
        result = await asyncio.to_thread(capdex, "install", "weather", "--yes")
        assert result.exit_code == 0
        assert "did:nuwa:cap:weather@1.0.0" in said(
            await client.call_tool("manage", {"action": "list"})
        )
        routed = json.loads(said(await client.call_tool("route", {"message": "will it rain?"})))
        assert routed["capability"] == "did:nuwa:cap:weather"
        assert routed["tools"] == ["did:nuwa:cap:weather#now"]
        asked = {"action": "remove", "target": "weather"}
        refused = await client.call_tool("manage", asked)
        assert refused.structured_content is not None
        assert refused.structured_content["error"]["details"]["fix"] == (
            "a person can run: capdex remove weather"
        )


async def test_find_asks_the_node_and_install_asks_the_person(
    capdex: Any, publish: Any, node: Any, warm: Warm
) -> None:
    told = publish()
    node.answer("search_capabilities", {"list_of_results": [told]})
    async with router(warm) as client:
        found = said(await client.call_tool("find", {"want": "weather"}))
        assert found.startswith("weather What weather does. [registry 1.0.0, by meaning]")
        assert found.endswith(f"\nasked {node.url.removeprefix('http://')}")
        local = await client.call_tool("find", {"want": "weather", "remote": False})
        assert said(local).endswith("try other words, or ask the registry: remote true")
        refused = await client.call_tool("manage", {"action": "install", "target": "weather"})
        error = (refused.structured_content or {})["error"]
        assert error["reason"] == "CONFIRM_NEEDED"
        assert error["details"]["fix"] == "a person can run: capdex install weather"
