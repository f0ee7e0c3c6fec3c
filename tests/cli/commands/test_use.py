"""`capdex router` and `grant`: an agent's host over stdio, and a yes that a person gives here."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex.errors import Refused
from capdex_cli.commands.use.router import router_command
from capdex_cli.views.calls import addresses
from capdex_router.home.audit_log import AuditLog, verify
from capdex_router.policy.secrets import SecretFile, Secrets
from tests.e2e.forks import Warm

ROOT = Path(__file__).parents[3]
FOREIGN = ROOT / "tests/router/catalog/foreign.py"
HOSTILE = ROOT / "tests/router/catalog/hostile.py"
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"
WIPE = {"uri": "mcp:foreign#wipe", "input": {"a": 1}}
DIGEST = "ab" * 32


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without a keyring, as on a server."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def router(warm: Warm, home: Path, *options: str) -> Client:
    skills = home / "skills" / "plain"
    skills.mkdir(parents=True, exist_ok=True)
    (skills / "SKILL.md").write_text(SKILL)
    server = StdioServerParameters(
        command=warm.capdex,
        args=["router", "--skills", str(skills.parent), *options],
        cwd=ROOT,
        env={"CAPDEX_HOME": os.environ["CAPDEX_HOME"]},
    )
    return Client(server)


async def called(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    found = await client.call_tool("call", arguments)
    assert found.structured_content is not None
    return dict(found.structured_content)


async def test_a_refused_call_runs_after_the_command_that_it_names(
    tmp_path: Path, capdex: Any, warm: Warm
) -> None:
    async with router(
        warm, tmp_path, "--mcp", f"foreign={shlex.join([sys.executable, str(FOREIGN)])}"
    ) as client:
        answer = await client.call_tool("find", {"want": "wipes"})
        assert answer.content[0].text.startswith("mcp:foreign#wipe wipes")
        skill = await called(client, {"uri": "plain", "input": {}})
        assert skill["output"]["prompt"] == "Use short words."
        error = (await called(client, WIPE))["error"]
        assert error["reason"] == "CONFIRM_NEEDED"
        words = (
            error["details"]["fix"]
            .removeprefix("a person can run: capdex ")
            .replace("'", "")
            .split()
        )
        assert capdex(*words, "--yes").exit_code == 0
        assert (await called(client, WIPE))["ok"]
        assert capdex("grant", "mcp:foreign#wipe", "--revoke").exit_code == 0
        assert (await called(client, WIPE))["error"]["reason"] == "CONFIRM_NEEDED"
    log = Path(os.environ["CAPDEX_HOME"]) / "data" / "router" / "audit.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (mount,) = [line for line in lines if line["event"] == "mount"]
    assert mount["touches"][0].startswith('run "')
    assert (mount["capability_id"], len(mount["digest"])) == ("mcp:foreign", 64)
    events = [line["event"] for line in lines]
    assert events == ["mount", "call", "call", "grant", "call", "revoke", "call"]
    assert verify(log).broken is None


def test_a_changed_audit_log_is_told_with_the_place_at_which_it_may_be(capdex: Any) -> None:
    path = Path(os.environ["CAPDEX_HOME"]) / "data" / "router" / "audit.jsonl"
    path.parent.mkdir(parents=True)
    with AuditLog(path) as log:
        for number in (1, 2, 3):
            log.write("call", number=number)
    path.write_text(path.read_text("utf-8").replace('"number":2', '"number":7'), "utf-8")
    result = capdex("audit")
    assert result.exit_code == 1
    assert "the audit log was changed at line 3, or just before it" in result.stderr


@pytest.mark.parametrize("end", ["stdin closes", "SIGTERM"])
@pytest.mark.parametrize("mode", ["silent", "stubborn", "pattern"])
async def test_the_router_and_its_servers_end_with_their_host_also_in_a_call(
    mode: str, end: str, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    hasty = "import capdex.net.stdio as x; x.LAST_ANSWERS_S = 0.5; import capdex_cli.main as m"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{hasty}; m.main()", "router"),
        *("--mcp", f"hostile={shlex.join([sys.executable, str(HOSTILE), mode, str(file)])}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    said, told, logged = process.stdin, process.stdout, process.stderr
    assert said is not None
    assert told is not None
    assert logged is not None

    def say(**message: Any) -> None:
        said.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "a", "version": "1.0.0"}}
    capabilities: dict[str, Any] = {"elicitation": {}}
    say(id=1, method="initialize", params={**hello, "capabilities": capabilities})
    await told.readline()
    say(method="notifications/initialized")
    call = {"name": "call", "arguments": {"uri": "mcp:hostile#t", "input": {}}}
    say(id=2, method="tools/call", params=call)
    question = json.loads(await told.readline())
    say(id=question["id"], result={"action": "accept"})
    while (line := await logged.readline()) != b"called\n":
        assert line
    if end == "SIGTERM":
        process.terminate()
    said.close()
    await process.communicate()
    assert process.returncode == (143 if end == "SIGTERM" else 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


KEPT = "s3cret-of-no-service"


@pytest.mark.usefixtures("no_keyring")
def test_a_secret_is_stored_from_stdin_and_never_shown(capdex: Any) -> None:
    words = ("secret", "did:nuwa:cap:weather@^1", "API.example.org", "WEATHER_KEY")
    stored = capdex(*words, stdin=f"{KEPT}\n")
    assert stored.exit_code == 0, stored.stderr
    home = Path(os.environ["CAPDEX_HOME"]) / "data" / "router"
    secrets = Secrets(SecretFile(home / "secrets.json"))
    assert secrets.get("weather", "api.example.org", "WEATHER_KEY") == KEPT
    log = (home / "audit.jsonl").read_text()
    assert KEPT not in stored.stdout + stored.stderr + log
    assert json.loads(log.splitlines()[-1])["event"] == "secret"
    mistyped = capdex("secret", "weather", "api.exmaple.org", "WEATHER_KEY", "--remove")
    assert mistyped.exit_code == 1
    assert (home / "audit.jsonl").read_text() == log
    assert capdex(*words, "--remove").exit_code == 0
    with pytest.raises(Refused, match="needs the secret"):
        Secrets(SecretFile(home / "secrets.json")).get("weather", "api.example.org", "WEATHER_KEY")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("weather", "h.org", "ghp_16C7e42F292c6912E7710c83"), KEPT),
        (("weather", "h.org", "KEY"), "short"),
        (("weather", "h.org", "KEY"), ""),
        (("weather", "h.org", "KEY"), "x" * 9000),
        (("weather", "h org", "KEY"), KEPT),
        (("weather", "https://h.org", "KEY"), KEPT),
        (("weather", "h.org/v1", "KEY"), KEPT),
        (("weather", "h.org:8443", "KEY"), KEPT),
        (("weather", "http://[bad", "KEY"), KEPT),
        (("No Name", "h.org", "KEY"), KEPT),
    ],
)
@pytest.mark.usefixtures("no_keyring")
def test_what_is_no_secret_or_names_none_is_refused(
    words: tuple[str, ...], value: str, capdex: Any
) -> None:
    refused = capdex("secret", *words, stdin=value)
    assert refused.exit_code in (1, 2)
    assert KEPT not in refused.stdout + refused.stderr
    assert words[2] == "KEY" or words[2] not in refused.stdout + refused.stderr


def test_a_call_of_what_is_not_installed_names_the_commands_that_help(capdex: Any) -> None:
    refused = capdex("call", "weather#now")
    assert refused.exit_code == 1
    assert "capdex install NAME" in refused.stderr


def test_grants_are_listed_and_taken_back(capdex: Any) -> None:
    assert "nothing is granted" in capdex("grant", "--format", "human").stdout
    given = ("grant", "did:nuwa:cap:a@1.0.0", "host:h", "effects", "--digest", DIGEST)
    assert capdex(*given, "--yes").exit_code == 0
    rows = [json.loads(line) for line in capdex("grant").stdout.splitlines()]
    assert [(x["capability"], x["target"]) for x in rows] == [
        ("did:nuwa:cap:a", "effects"),
        ("did:nuwa:cap:a", "host:h"),
    ]
    one = json.loads(capdex("grant", "did:nuwa:cap:a", "host:h", "--revoke").stdout)
    assert one["revoked"] == 1
    assert len(capdex("grant").stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("owner", "name"),
    [("did:nuwa:cap:a", "did:nuwa:cap:a"), ("did:nuwa:cap:a", "a"), ("mcp:files", "mcp:files")],
)
def test_what_is_taken_back_from_a_capability_is_taken_back_from_its_tools(
    capdex: Any, owner: str, name: str
) -> None:
    given = ("grant", f"{owner}#t", "effects", "--digest", DIGEST, "--yes")
    assert capdex(*given).exit_code == 0
    assert json.loads(capdex("grant", name, "--revoke").stdout)["revoked"] == 1
    assert capdex("grant").stdout == ""
    again = capdex("grant", name, "--revoke", "--format", "human")
    assert f"nothing was granted to {owner}: capdex grant lists what is" in again.stdout


@pytest.mark.parametrize(
    "words",
    [["did:nuwa:cap:a"], ["did:nuwa:cap:a", "host:h"],
     ["did:nuwa:cap:a", "host:h", "--digest", "short"]],
)  # fmt: skip
def test_a_grant_needs_targets_and_a_digest(capdex: Any, words: list[str]) -> None:
    assert capdex("grant", *words, "--yes").exit_code == 2


def test_nothing_is_granted_without_a_yes(capdex: Any) -> None:
    given = capdex("grant", "did:nuwa:cap:a", "host:h", "--digest", DIGEST)
    assert given.exit_code == 4
    assert capdex("grant").stdout == ""


@pytest.mark.parametrize("value", ["files", "=x", "a/b=x", "a=", "a='x"])
def test_a_server_has_a_name_and_a_command(capdex: Any, value: str) -> None:
    assert capdex("router", "--mcp", value).exit_code == 2


@pytest.mark.parametrize("option", ["--skills", "--work"])
def test_a_folder_that_is_not_there_is_named_at_the_start(
    capdex: Any, option: str, tmp_path: Path
) -> None:
    result = capdex("router", option, str(tmp_path / "nothing"))
    assert result.exit_code == 2
    assert f"'{tmp_path / 'nothing'}' does not exist" in result.stderr


def test_an_address_of_the_router_is_one_of_an_origin_however_it_is_written() -> None:
    context, option = click.Context(router_command), click.Option(["--at"])
    found = addresses(context, option, ("https://API.example.org:443/=http://127.0.0.1:9/x",))
    assert found == {"https://api.example.org": "http://127.0.0.1:9/x"}
    for wrong in (
        "https://api.example.org/v1=http://127.0.0.1:9",
        "did:a:b=http://127.0.0.1:99999",
    ):
        with pytest.raises(click.BadParameter):
            addresses(context, option, (wrong,))


def test_a_call_takes_the_url_of_an_agent(capdex: Any) -> None:
    found = capdex("call", "nobody", "--at", "did:key:z6Mk=http://127.0.0.1:9/a2a")
    assert "NOT_FOUND" in found.stderr
