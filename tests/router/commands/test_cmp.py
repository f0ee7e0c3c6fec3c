"""The five methods: each request and response of the specification, replayed as JSON."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused, Unavailable
from capdex.json import Json
from capdex_router.commands.cmp import Cmp
from capdex_router.commands.intents.manifest import (
    CommandManifest,
    CommandTool,
    Intent,
    parse_capability,
)
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import InvokeResult

DATA = Path(__file__).parent / "data"
# The answer of `capabilities` in the specification has fewer patterns than its capability.json:
# two fixtures.
FULL = parse_capability((DATA / "inboxd.json").read_bytes())
SHORT = parse_capability(
    json.dumps(
        {
            "intents": [
                {"patterns": ["check email", "unread count"], "command": "inbox summary --json"},
                {"patterns": ["delete emails"], "command": "inbox delete", "confirm": True},
                {"patterns": ["restore emails"], "command": "inbox restore"},
            ]
        }
    ).encode()
)
MANIFEST = CommandManifest(
    "email", "inboxd", "Gmail management: triage, delete, restore", "1.0.0", "inbox"
)
OTHERS = tuple(
    CommandTool(CommandManifest(name, name, "", "1.0.0", name), ())
    for name in ("git", "files", "web")
)
DELETED: Json = {"deleted": 2, "ids": ["abc123", "def456"]}
COMMAND = "inbox delete --ids 'abc123,def456' --confirm"
DELETE: Json = {
    "want": "delete these emails",
    "context": {"ids": ["abc123", "def456"]},
    "confirm": True,
}


def ask(
    request: Any,
    intents: tuple[Intent, ...] = FULL,
    outcome: Json | CapdexError = DELETED,
    calls: list[Json] | None = None,
) -> Json:
    async def invoke(
        _id: str, _version: str | None, arguments: Json, _caller: Caller
    ) -> InvokeResult:
        if calls is not None:
            calls.append(arguments)
        if isinstance(outcome, CapdexError):
            return InvokeResult.of_error(outcome, 1)
        return InvokeResult(outcome, None, 1)

    cmp = Cmp(lambda: (CommandTool(MANIFEST, intents), *OTHERS), lambda: (), invoke)
    answer = asyncio.run(cmp.answer(request, Caller()))
    parsed: Json = json.loads(json.dumps(answer))
    return parsed


def rpc(method: str, key: int, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": f"cmp.{method}", "params": params, "id": key}


def test_domains() -> None:
    assert ask({"method": "domains"}) == {"domains": ["email", "git", "files", "web"]}


def test_manifests() -> None:
    assert ask({"method": "manifests", "domain": "email"}) == {
        "tools": [{"name": "inboxd", "summary": "Gmail management: triage, delete, restore"}]
    }


def test_capabilities() -> None:
    assert ask({"method": "capabilities", "tool": "inboxd"}, SHORT) == {
        "intents": [
            {"patterns": ["check email", "unread count"], "confirm": False},
            {"patterns": ["delete emails"], "confirm": True},
            {"patterns": ["restore emails"], "confirm": False},
        ]
    }


def test_intent() -> None:
    calls: list[Json] = []
    assert ask({"method": "intent", "params": DELETE}, calls=calls) == {
        "success": True,
        "result": DELETED,
        "tool": "inboxd",
        "command": COMMAND,
    }
    assert calls == [{"ids": ["abc123", "def456"]}]


def test_domains_of_v01() -> None:
    request = {"jsonrpc": "2.0", "method": "cmp.domains", "id": 1}
    assert ask(request) == {
        "jsonrpc": "2.0",
        "result": {"domains": ["email", "git", "files", "web"]},
        "id": 1,
        "cmp": "0.1.0",
    }


def test_manifests_of_v01() -> None:
    assert ask(rpc("manifests", 2, domain="email"))["result"] == {"manifests": [MANIFEST.to_json()]}


def test_capabilities_of_v01_say_what_destroys() -> None:
    rows = ask(rpc("capabilities", 3, tool="inboxd"))["result"]["intents"]
    assert rows[2] == {
        "patterns": ["delete emails", "trash messages", "remove emails", "clean inbox"],
        "confirm": True,
        "destructive": True,
    }


def test_intent_of_v01() -> None:
    assert ask(rpc("intent", 4, **DELETE))["result"] == {
        "success": True,
        "tool": "inboxd",
        "command": COMMAND,
        "output": DELETED,
    }


def test_intent_without_a_confirmation_runs_nothing() -> None:
    calls: list[Json] = []
    for confirm in (False, None, "true", 1):
        found = ask(rpc("intent", 4, **{**DELETE, "confirm": confirm}), calls=calls)["result"]
        assert found.pop("message")
        assert found == {
            "success": False,
            "reason": "confirmation_required",
            "tool": "inboxd",
            "command": COMMAND,
        }
    assert calls == []


def test_a_person_s_consent_is_asked_for_though_the_agent_confirmed() -> None:
    refused = Refused("a person must agree", Code.CONFIRM_NEEDED)
    found = ask({"method": "intent", "params": DELETE}, outcome=refused)
    assert (found["success"], found["reason"]) == (False, "confirmation_required")


def test_schema_of_v01() -> None:
    assert ask(rpc("schema", 5, tool="inboxd", pattern="delete emails"))["result"] == {
        "patterns": ["delete emails", "trash messages", "remove emails", "clean inbox"],
        "command": "inbox delete --ids {ids} --confirm",
        "params": {
            "ids": {
                "type": "array<string>",
                "required": True,
                "description": "Email IDs to delete",
            }
        },
        "confirm": True,
        "destructive": True,
    }


def test_an_output_that_is_no_object_is_answered_as_it_is() -> None:
    request = {"method": "intent", "params": {"want": "check email"}}
    assert ask(request, outcome={"result": [{"unread": 2}]})["result"] == [{"unread": 2}]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"jsonrpc": "1.0", "method": "cmp.domains"}, -32600),
        (rpc("steal", 1), -32601),
        ({"jsonrpc": "2.0", "method": "domains", "id": 1}, -32601),
        ({"jsonrpc": "2.0", "method": "cmp.domains", "params": [], "id": 1}, -32602),
        (rpc("capabilities", 1), -32602),
        (rpc("intent", 1, want="delete emails", context=7), -32602),
        (rpc("intent", 1, want="delete emails", confirm=True), -32602),
        (rpc("intent", 1, want="delete emails", confirm=True, context={"ids": ["-x"]}), -32602),
        (rpc("intent", 1, tool="nobody"), -32602),
        (rpc("intent", 1, want="sing a song"), -32000),
        (rpc("capabilities", 1, tool="nobody"), -32001),
        (rpc("manifests", 1, domain="nothing"), -32001),
        (rpc("intent", 1, want="do not delete emails"), -32004),
    ],
)
def test_each_error_has_its_code(request_: Any, code: int) -> None:
    assert ask(request_)["error"]["code"] == code


@pytest.mark.parametrize(
    "error",
    [
        ExecutionFailed("broken"),
        Unavailable("late", Code.TIMEOUT),
        InvalidInput("bad", Code.YANKED),
    ],
)
def test_a_failed_run_is_an_error(error: CapdexError) -> None:
    found = ask(rpc("intent", 1, **DELETE), outcome=error)["error"]
    assert found["data"]["reason"] == str(error.code)
    assert found["message"] == error.message


def test_parameters_that_are_no_object_are_told_in_the_shape_of_the_request() -> None:
    found = ask({"method": "domains", "params": []})
    assert (found["success"], found["reason"]) == (False, "invalid_input")


def test_a_wish_that_is_asked_back_names_its_candidates() -> None:
    found = ask({"method": "intent", "params": {"want": "do not delete emails"}})
    assert (found["success"], found["reason"]) == (False, "ambiguous")
    assert {"tool": "inboxd", "domain": "email", "pattern": "delete emails"} in found["candidates"]


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYS = st.sampled_from(["jsonrpc", "method", "params", "id", "want", "tool", "domain", "context"])


@given(
    st.recursive(
        VALUES | st.sampled_from(["2.0", "cmp.intent", "intent", "schema", "inboxd"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    )
)
def test_any_object_is_answered(request: Any) -> None:
    assert isinstance(ask(request if isinstance(request, dict) else {"params": request}), dict)
