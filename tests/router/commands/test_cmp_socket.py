"""CMP on the socket, over a program really learned: the specification's examples as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from capdex_router.commands.cmp import Cmp
from capdex_router.commands.help import Help
from capdex_router.commands.intents.manifest import CommandManifest, CommandTool
from capdex_router.commands.learned import Learned
from capdex_router.faces.cap import Cap
from capdex_router.faces.socket import serving
from capdex_router.policy.grants import Grant
from capdex_router.runtime import Runtime, open_runtime
from tests.router.catalog.test_mcp_mount import SERVER
from tests.router.commands.programs import emails, learned_inbox

DELETE = {"want": "delete these emails", "context": {"ids": ["abc123", "def456"]}, "confirm": True}
COMMAND = "inbox delete --ids 'abc123,def456' --confirm"
DELETED = {"deleted": 2, "ids": ["abc123", "def456"]}


@asynccontextmanager
async def served(home: Path, *, caller_agrees: bool = False) -> AsyncIterator[tuple[Path, Runtime]]:
    """A socket over the mail program and three more tools, as the specification names them."""
    async with learned_inbox(home) as runtime:
        for name in ("git", "files", "web"):
            tool = CommandTool(CommandManifest(name, f"{name}-tool", "", "1.0.0", name), ())
            runtime.learning.store.put(Learned(tool, Path("/x"), "", Help({}, ()), {}, ()))
        path = home / "router.sock"
        cap = Cap(runtime.catalog, runtime.invoker).methods
        cmp = Cmp(
            runtime.learned.tools,
            runtime.catalog.latest,
            runtime.invoker.invoke,
            caller_agrees=caller_agrees,
        )
        async with serving(path, cap, cmp.answer):
            yield path, runtime


async def ask(path: Path, *requests: Any) -> list[Any]:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.writelines(orjson.dumps(request) + b"\n" for request in requests)
    writer.write_eof()
    answers = [orjson.loads(line) async for line in reader]
    writer.close()
    return answers


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"cmp.{method}", "params": params, "id": 1}


def grant(runtime: Runtime) -> None:
    """Let the person agree to every command of the mail program."""
    owner = runtime.catalog.get("learned:inboxd#delete-emails").owner
    runtime.grants.grant([Grant(owner.name, owner.digest, "*", "effects")])


async def test_the_examples_of_the_specification(tmp_path: Path) -> None:
    async with served(tmp_path) as (path, runtime):
        grant(runtime)
        domains, manifests, intent = await ask(
            path,
            {"method": "domains"},
            {"method": "manifests", "domain": "email"},
            {"method": "intent", "params": DELETE},
        )
    assert set(domains["domains"]) == {"email", "git", "files", "web"}
    assert manifests == {
        "tools": [{"name": "inboxd", "summary": "Gmail management: triage, delete, restore"}]
    }
    assert intent == {"success": True, "result": DELETED, "tool": "inboxd", "command": COMMAND}
    assert emails(tmp_path) == ["ghi789"]


async def test_the_capabilities_of_the_specification_have_fewer_patterns(tmp_path: Path) -> None:
    asked = {"method": "capabilities", "tool": "inboxd"}
    async with served(tmp_path) as (path, runtime):
        ((full,), short) = await ask(path, asked), runtime.learning.store.all()["inboxd"]
        kept = [("check email", "unread count"), ("delete emails",), ("restore emails",)]
        intents = tuple(
            replace(one, patterns=next(names for names in kept if names[0] in one.patterns))
            for one in short.tool.intents
            if one.patterns[0] in {names[0] for names in kept}
        )
        tool = replace(short.tool, intents=intents)
        runtime.learning.store.put(replace(short, tool=tool, successes=short.successes[:3]))
        (found,) = await ask(path, asked)
    assert [one["confirm"] for one in full["intents"]] == [False, False, True, False, False]
    assert found == {
        "intents": [
            {"patterns": ["check email", "unread count"], "confirm": False},
            {"patterns": ["delete emails"], "confirm": True},
            {"patterns": ["restore emails"], "confirm": False},
        ]
    }


async def test_the_five_methods_of_v01(tmp_path: Path) -> None:
    async with served(tmp_path) as (path, runtime):
        grant(runtime)
        found = await ask(
            path,
            rpc("domains"),
            rpc("manifests", domain="email"),
            rpc("capabilities", tool="inboxd"),
            rpc("schema", tool="inboxd", pattern="restore emails"),
            rpc("intent", **DELETE),
        )
    assert [(one["jsonrpc"], one["id"], one["cmp"]) for one in found] == [("2.0", 1, "0.1.0")] * 5
    domains, manifests, capabilities, schema, intent = (one["result"] for one in found)
    assert set(domains["domains"]) == {"email", "git", "files", "web"}
    assert [one["name"] for one in manifests["manifests"]] == ["inboxd"]
    assert len(capabilities["intents"]) == 5
    assert schema["params"] == {"count": {"type": "integer", "default": 1}}
    assert intent == {"success": True, "output": DELETED, "tool": "inboxd", "command": COMMAND}


@pytest.mark.parametrize("key", [0, 1.5, "a", None])
async def test_each_id_of_json_rpc_comes_back(tmp_path: Path, key: object) -> None:
    listing = {"jsonrpc": "2.0", "method": "capability.list"}
    async with served(tmp_path) as (path, _):
        found = await ask(path, rpc("domains") | {"id": key}, listing | {"id": key})
    assert [(one["id"], "result" in one) for one in found] == [(key, True)] * 2


async def test_an_id_and_a_deadline_that_are_none_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as (path, _):
        by_id, late = await ask(
            path, rpc("domains") | {"id": True}, rpc("intent", want="unread count", timeout_s="5")
        )
    assert (by_id["id"], by_id["error"]["message"]) == (None, "id is not an id")
    assert (late["id"], late["error"]["code"]) == (1, -32602)
    assert "timeout_s" in late["error"]["message"]


async def test_the_caller_s_confirm_is_no_person_s_yes(tmp_path: Path) -> None:
    async with served(tmp_path) as (path, _):
        (found,) = await ask(path, {"method": "intent", "params": DELETE})
    assert "run: capdex grant" in found.pop("message")
    assert found == {
        "success": False,
        "reason": "confirmation_required",
        "tool": "inboxd",
        "command": COMMAND,
    }
    assert len(emails(tmp_path)) == 3


async def test_a_caller_that_speaks_for_its_user_confirms(tmp_path: Path) -> None:
    async with served(tmp_path, caller_agrees=True) as (path, _):
        unconfirmed, done = await ask(
            path,
            {"method": "intent", "params": {**DELETE, "confirm": False}},
            {"method": "intent", "params": DELETE},
        )
    assert (unconfirmed["success"], unconfirmed["reason"]) == (False, "confirmation_required")
    assert done["success"]
    assert emails(tmp_path) == ["ghi789"]
    log = (tmp_path / "router/audit.jsonl").read_text()
    assert "whose caller agrees" in log


async def test_no_negation_and_no_question_deletes(tmp_path: Path) -> None:
    wants = ("do not delete these emails", "should I delete emails?", "e")
    async with served(tmp_path, caller_agrees=True) as (path, _):
        found = await ask(
            path, *({"method": "intent", "params": {**DELETE, "want": want}} for want in wants)
        )
    assert [one["success"] for one in found] == [False, False, False]
    assert len(emails(tmp_path)) == 3


async def test_cap_answers_beside_it_and_notifications_run_nothing(tmp_path: Path) -> None:
    notification = {key: value for key, value in rpc("intent", **DELETE).items() if key != "id"}
    async with served(tmp_path, caller_agrees=True) as (path, _):
        listed, unknown, plain = await ask(
            path,
            notification,
            {"jsonrpc": "2.0", "id": 1, "method": "capability.list"},
            rpc("steal"),
            {"method": "steal"},
        )
    assert len(listed["result"]["capabilities"]) == 5
    assert unknown["error"]["code"] == -32601
    assert plain["error"]["code"] == -32600
    assert len(emails(tmp_path)) == 3


async def test_the_socket_shows_all_that_the_router_has(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "plain"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: plain\ndescription: Write plainly.\n---\nShort.\n")
    servers, folders = {"foreign": SERVER}, [tmp_path / "skills"]
    async with open_runtime(tmp_path / "router", servers=servers, folders=folders) as runtime:
        path = tmp_path / "router.sock"
        cap = Cap(runtime.catalog, runtime.invoker).methods
        async with serving(
            path,
            cap,
            Cmp(runtime.learned.tools, runtime.catalog.latest, runtime.invoker.invoke).answer,
        ):
            listed = {"jsonrpc": "2.0", "method": "capability.list", "params": {}, "id": 1}
            found, domains, manifests = await ask(
                path, listed, {"method": "domains"}, rpc("manifests", domain="mcp")
            )
    ids = {one["capability_id"] for one in found["result"]["capabilities"]}
    assert {"skill:plain", "mcp:foreign#read"} <= ids
    assert set(domains["domains"]) == {"mcp", "skills"}
    assert manifests["result"] == {"manifests": []}
