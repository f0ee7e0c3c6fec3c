"""The commands that change what stands on chain, and those that show it, on a real chain."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from filelock import FileLock

from capdex.ipld.cid import Cid

CHANGE = {"schema", "action", "name", "semver", "target", "account", "already", "dry_run"}
SENT = {"tx_hash", "block_number", "gas_used", "fee_wei", "served_after_s"}
STRANGER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
COMMANDS = [
    ("yank", "weather@1.0.0"),
    ("unyank", "weather@1.0.0"),
    ("deprecate", "weather@1.0.0", "--message", "x"),
    ("deprecate", "weather", "--message", "x"),
    ("undeprecate", "weather@1.0.0"),
    ("undeprecate", "weather"),
    ("transfer", "offer", "weather", STRANGER),
    ("transfer", "cancel", "weather"),
    ("maintainer", "add", "weather", STRANGER),
    ("maintainer", "remove", "weather", STRANGER),
    ("renounce", "weather"),
]


def call(url: str, method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - the chain of this test
        return json.load(reply)["result"]


class Chain:
    """The registry, the account that owns `weather` in it, and a second account."""

    def __init__(self, capdex: Any, url: str, folder: Path) -> None:
        self.capdex, self.url, self.folder = capdex, url, folder
        self.owner = self._account(folder / "home" / "owner.json")
        self.other = self._account(folder / "home" / "other.json")
        self.registry = ""

    def _account(self, path: Path) -> str:
        address: str = self.capdex.json("account", "new", "--light", "--out", str(path))["address"]
        call(self.url, "anvil_setBalance", address, hex(10**18))
        return address

    def publish(self, name: str, *versions: str) -> None:
        """Put releases on chain; their bytes are nowhere."""
        asyncio.run(self._publish(name, versions))

    async def _publish(self, name: str, versions: tuple[str, ...]) -> None:
        from capdex_publisher.keys.keystore import load_account
        from capdex_publisher.keys.secret import Secret
        from capdex_publisher.registry.registry import Registry
        from capdex_publisher.tx.confirm import confirm
        from capdex_publisher.tx.submit import submit

        account = load_account(self.folder / "home" / "owner.json", Secret("correct horse"))
        state = self.folder / "home" / "state"
        async with Registry.connect(self.url, self.registry, 31337, state_dir=state) as registry:
            for version in versions:
                cid = Cid.of(version.encode())
                priced = await registry.price(
                    account.address, "publish", name, version, str(cid), cid.digest
                )
                await confirm(registry.chain, await submit(registry.chain, account, priced))


@pytest.fixture
def chain(capdex: Any, anvil: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """Two releases of `weather` on chain, and its owner's key as the one in use."""
    secret = folder / "pass"
    secret.write_text("correct horse", encoding="utf-8")
    secret.chmod(0o600)
    for name, value in {
        "PASSPHRASE_FILE": str(secret),
        "RPC_URL": anvil.url,
        "CHAIN_ID": "31337",
        "KEYSTORE": str(folder / "home" / "owner.json"),
    }.items():
        monkeypatch.setenv(f"CAPDEX_{name}", value)
    made = Chain(capdex, anvil.url, folder)
    made.registry = capdex.json("deploy", "--yes")["registry"]
    monkeypatch.setenv("CAPDEX_REGISTRY", made.registry)
    made.publish("weather", "1.0.0", "1.1.0")
    return made


def nonce(chain: Chain) -> int:
    return int(call(chain.url, "eth_getTransactionCount", chain.owner, "latest"), 16)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_change_is_planned_agreed_to_and_made_once(
    capdex: Any, chain: Chain, words: tuple[str, ...]
) -> None:
    before = nonce(chain)
    dry = capdex.json(*words, "--dry-run")
    assert set(dry) == CHANGE | {"transaction"}
    assert (dry["dry_run"], dry["name"], dry["account"]) == (True, "weather", chain.owner)
    if dry["already"]:  # nothing to take back
        assert dry["transaction"] is None
        assert set(capdex.json(*words)) == CHANGE | {"transaction"}
        return
    assert dry["transaction"]["to"] == chain.registry
    refused = capdex(*words)
    assert refused.exit_code == 4
    assert "error[NO_CONSENT]" in refused.stderr
    assert nonce(chain) == before
    done = capdex.json(*words, "--yes")
    assert set(done) == CHANGE | {"transaction"} | SENT
    assert done["action"] == " ".join(x for x in words[:2] if x.islower() and "weather" not in x)
    assert nonce(chain) == before + 1
    again = capdex.json(*words, "--yes")
    assert (again["already"], again["transaction"]) == (True, None)
    assert nonce(chain) == before + 1


def test_a_name_may_be_written_as_its_uri(capdex: Any, chain: Chain) -> None:
    assert capdex.json("maintainer", "list", "did:nuwa:cap:weather")["owner"] == chain.owner
    assert capdex.json("claim", "did:nuwa:cap:kettle", "--dry-run")["name"] == "kettle"
    versioned = capdex("transfer", "cancel", "did:nuwa:cap:weather@1.0.0", "--yes")
    assert (versioned.exit_code, "fix: write weather\n" in versioned.stderr) == (1, True)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_account_is_told_the_owner_before_anybody_is_asked(
    capdex: Any, chain: Chain, words: tuple[str, ...]
) -> None:
    result = capdex(*words, "--keystore", str(chain.folder / "home" / "other.json"), "--yes")
    assert result.exit_code == 4
    assert "error[NOT_OWNER]" in result.stderr
    assert chain.owner in result.stderr
    assert "cost" not in result.stderr


def test_the_plan_says_what_follows_and_that_it_is_public(capdex: Any, chain: Chain) -> None:
    first = capdex("yank", "weather@1.0.0", "--yes", "--format", "human")
    assert first.stdout == "did:nuwa:cap:weather@1.0.0\n"
    for words in ("yank did:nuwa:cap:weather@1.0.0   on", "effect", "cost", "cannot be deleted"):
        assert words in first.stderr
    second = capdex("transfer", "offer", "weather", STRANGER, "--yes", "--plain")
    assert second.stdout == "weather\n"
    assert f"{STRANGER} may accept" in second.stderr


def test_what_is_not_understood_is_refused_before_the_chain_is_asked(
    capdex: Any, chain: Chain
) -> None:
    for words, code in (
        (("yank", "weather"), 1),
        (("yank", "weather@^1"), 1),
        (("deprecate", "weather@1.0.0", "--message", "x", "--replaced-by", "memo"), 2),
        (("deprecate", "weather"), 2),
        (("transfer", "offer", "weather", "0x12"), 2),
        (("transfer", "offer", "Weather", STRANGER), 1),
        (("vote", "weather", "sideways"), 2),
        (("list", "--mine", "--owner", STRANGER), 2),
    ):
        assert capdex(*words, "--config", "rpc-url=http://127.0.0.1:1").exit_code == code, words


@pytest.mark.parametrize("group", ["transfer", "maintainer"])
def test_a_group_alone_prints_its_help_and_fails(capdex: Any, group: str) -> None:
    result = capdex(group)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Examples:" in result.stderr


def test_where_no_votes_are_configured_nobody_votes(capdex: Any, chain: Chain) -> None:
    result = capdex("vote", "weather", "up", "--yes")
    assert result.exit_code == 2
    assert "has no votes" in result.stderr
    assert "CAPDEX_VOTES" in result.stderr


def test_a_change_is_awaited_until_the_node_knows_its_block(
    capdex: Any, chain: Chain, node: Any
) -> None:
    node.block = 10**6
    done = capdex("yank", "weather@1.0.0", "--yes", "--format", "human")
    assert done.exit_code == 0, done.stderr
    assert "✓ served" in done.stderr


def test_a_name_that_nobody_has_is_warned_of_as_a_replacement(capdex: Any, chain: Chain) -> None:
    words = ("deprecate", "weather", "--message", "gone", "--dry-run", "--replaced-by")
    assert "there is no capability nothing-here" in capdex(*words, "nothing-here").stderr
    capdex.json("claim", "forecast", "--yes")
    assert "there is no capability" not in capdex(*words, "forecast").stderr


# ----------------------------------------------------------------------------------- what is shown


def test_show_tells_owner_maintainers_offer_and_flags_from_the_chain_alone(
    capdex: Any, chain: Chain
) -> None:
    capdex.json("yank", "weather@1.0.0", "--reason", "wrong unit", "--yes")
    capdex.json("deprecate", "weather@1.1.0", "--message", "wait for 2", "--yes")
    capdex.json("deprecate", "weather", "--message", "gone", "--replaced-by", "forecast", "--yes")
    capdex.json("maintainer", "add", "weather", chain.other, "--yes")
    capdex.json("transfer", "offer", "weather", STRANGER, "--yes")
    shown = capdex.json("show", "weather")
    standing = shown["standing"]
    assert {key: standing[key] for key in ("owner", "maintainers", "pending_owner")} == {
        "owner": chain.owner,
        "maintainers": [chain.other],
        "pending_owner": STRANGER,
    }
    assert (standing["message"], standing["replaced_by"]) == ("gone", "forecast")
    assert [(x["semver"], x["status"]) for x in shown["results"]] == [
        (
            "1.1.0",
            {
                "yanked": False,
                "yank_reason": None,
                "deprecated": True,
                "deprecation_message": "wait for 2",
            },
        ),
        (
            "1.0.0",
            {
                "yanked": True,
                "yank_reason": "wrong unit",
                "deprecated": False,
                "deprecation_message": None,
            },
        ),
    ]
    lines = capdex("show", "weather", "--format", "human").stdout.splitlines()
    assert lines == [
        f"owner        {chain.owner}",
        f"maintainer   {chain.other}",
        f"on offer to  {STRANGER}",
        'deprecated   by its owner, who names forecast in its place: "gone"',
        "",
        '1.1.0  minor    · on chain, deprecated      "wait for 2"',
        '1.0.0           · on chain, yanked          "wrong unit"',
    ]
    exact = capdex("show", "weather@1.0.0", "--format", "human").stdout
    assert 'yanked     "wrong unit"' in exact
    assert capdex("maintainer", "list", "weather", "--plain").stdout == chain.other + "\n"


def test_show_joins_what_the_chain_keeps_with_what_the_node_makes_of_it(
    capdex: Any, chain: Chain, node: Any, release: dict[str, Any]
) -> None:
    sha256 = Cid.of(b"1.1.0").digest.hex()
    good = release | {"semver": "1.1.0", "sha256": sha256, "availability": "available"}
    lie = release | {"semver": "1.0.0", "availability": "available"}
    stray = release | {"semver": "7.0.0", "availability": "available"}
    node.page("weather", {"releases": [stray, good, lie, 3], "as_of": release["as_of"]})
    capdex.json("deprecate", "weather@1.1.0", "--message", "x", "--yes", "--config", "node-url=")
    found = {x["semver"]: x for x in capdex.json("show", "weather")["results"]}
    assert list(found) == ["1.1.0", "1.0.0", "7.0.0"]
    assert found["1.1.0"]["verification"]["verdict"] == "verified"
    assert found["1.1.0"]["status"]["deprecated"] is True
    assert found["1.0.0"]["sha256"] == Cid.of(b"1.0.0").digest.hex()
    assert found["1.0.0"]["warnings"] == [
        "the node has other bytes for this version than the chain"
    ]
    assert found["7.0.0"]["warnings"] == ["the node has this release, and the chain has not"]


def test_show_says_what_older_name_of_another_owner_a_name_is_like(
    capdex: Any, chain: Chain, node: Any, release: dict[str, Any]
) -> None:
    node.page("weather", {"releases": [release], "like": "whether", "as_of": release["as_of"]})
    for name in ("weather", f"weather@{release['semver']}"):
        shown = capdex("show", name, "--format", "human").stdout
        assert "like the older name whether of another owner" in shown
    assert capdex.json("show", "weather")["results"][0]["like"] == "whether"


def test_show_goes_on_with_one_source_when_the_other_is_down(
    capdex: Any, chain: Chain, node: Any, release: dict[str, Any]
) -> None:
    node.page("weather", {"releases": [release], "as_of": release["as_of"]})
    alone = capdex("show", "weather", "--json", "--config", "node-url=http://127.0.0.1:1")
    assert json.loads(alone.stdout)["standing"]["owner"] == chain.owner
    assert "does not answer" in alone.stderr
    alone = capdex("show", "weather", "--json", "--rpc-url", "http://127.0.0.1:1")
    assert json.loads(alone.stdout)["standing"] is None
    assert [x["semver"] for x in json.loads(alone.stdout)["results"]] == ["1.2.0"]
    assert capdex("show", "nobodys").exit_code == 1


def test_show_does_not_believe_a_node_in_a_name_that_the_chain_has_not(
    capdex: Any, chain: Chain, node: Any, release: dict[str, Any]
) -> None:
    ghost = release | {"semver": "1.0.0", "availability": "available", "latest": True}
    node.page("ghostly", {"releases": [ghost], "as_of": release["as_of"]})
    result = capdex("show", "ghostly", "--format", "human")
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'the name "ghostly" is not claimed' in result.stderr


@pytest.mark.parametrize("code", ["UNVERIFIED", "NO_CONSENT", "CONFIG", "INTERNAL"])
def test_show_tells_what_the_chain_has_whatever_error_the_node_answers(
    capdex: Any, chain: Chain, node: Any, code: str
) -> None:
    node.page("weather", {"code": code, "message": "no"}, status=422)
    result = capdex("show", "weather", "--format", "human")
    assert result.exit_code == 0
    assert "warning: the node" in result.stderr
    assert chain.owner in result.stdout


def test_show_says_what_it_cannot_know_without_the_whole_history(capdex: Any, chain: Chain) -> None:
    capdex.json("yank", "weather@1.0.0", "--reason", "wrong unit", "--yes")
    capdex.json("deprecate", "weather", "--message", "gone", "--yes")
    head = int(call(chain.url, "eth_blockNumber"), 16)
    deaf = ("--config", f"start-block={head}")
    result = capdex("show", "weather", "--json", *deaf)
    assert "does not give the whole history" in result.stderr
    standing = json.loads(result.stdout)["standing"]
    assert (standing["owner"], standing["complete"]) == (chain.owner, False)
    assert (standing["maintainers"], standing["deprecated"]) == (None, True)
    assert [(x["semver"], x["status"]["yanked"]) for x in json.loads(result.stdout)["results"]] == [
        ("1.1.0", False),
        ("1.0.0", True),
    ]
    human = capdex("show", "weather", "--format", "human", *deaf).stdout
    assert "maintainers  not known" in human
    assert "by" not in capdex("show", "weather@1.1.0", "--format", "human", *deaf).stdout
    assert capdex("maintainer", "list", "weather", *deaf).exit_code == 3


def test_list_tells_the_names_of_an_account(capdex: Any, chain: Chain) -> None:
    chain.publish("memo", "2.0.0", "3.0.0-rc.1")
    capdex.json("yank", "weather@1.1.0", "--yes")
    capdex.json("transfer", "offer", "memo", chain.other, "--yes")
    mine = capdex.json("list", "--mine")
    assert (mine["account"], mine["source"]) == (chain.owner, "chain")
    assert [(x["name"], x["role"], x["latest"], x["release_count"]) for x in mine["results"]] == [
        ("memo", "owner", "2.0.0", 2),
        ("weather", "owner", "1.0.0", 2),
    ]
    assert mine["results"][1]["flags"] == ["1 yanked"]
    assert capdex("list", "--owner", chain.other, "--plain").stdout == "memo\n"
    human = capdex("list", "--owner", chain.other, "--format", "human")
    assert human.stdout == f"memo  offered  2 releases  2.0.0  on offer to {chain.other}\n"
    assert "1 name of" in human.stderr


def test_list_asks_the_node_where_no_endpoint_is_set(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    node.answer("search_capabilities", {"list_of_results": [release, 3], "next_cursor": None})
    listed = capdex.json("list", "--owner", STRANGER)
    assert (listed["source"], listed["block_number"]) == ("node", None)
    assert [(x["name"], x["role"]) for x in listed["results"]] == [("weather", "publisher")]
    assert node.calls[-1][1]["filters"] == {"publisher": STRANGER}


# ----------------------------------------------------------------------------------- on a terminal


def test_no_passphrase_is_asked_for_while_another_process_waits_to_send(
    capdex: Any, chain: Chain, folder: Path
) -> None:
    (folder / "pass").write_text("another one", encoding="utf-8")
    locks = folder / "home" / "state" / "locks"
    with FileLock(locks / f"31337-{chain.owner.lower()}.lock"):
        done = capdex("yank", "weather@1.0.0", "--yes", "--json")
    assert json.loads(done.stderr.splitlines()[-1])["code"] == "WRONG_PASSPHRASE"


@pytest.fixture
def type_at(chain: Chain, warm: Any) -> Callable[..., tuple[str, int | None]]:
    """Run a command on a terminal and type one line at its question."""

    def run(line: str, *words: str) -> tuple[str, int | None]:
        kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
        process = pexpect.spawn(
            warm.capdex,
            list(words),
            env={**kept, "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            encoding="utf-8",
            timeout=60,
            dimensions=(40, 160),
        )
        process.expect("to agree|y/N")
        process.sendline(line)
        process.expect(pexpect.EOF)
        process.close()
        return process.before or "", process.exitstatus

    return run


def test_a_name_is_given_away_only_by_typing_it(
    capdex: Any, chain: Chain, type_at: Callable[..., tuple[str, int | None]]
) -> None:
    for line in ("y", "", "weathe"):
        said, code = type_at(line, "renounce", "weather")
        assert code == 4
        assert "nothing was sent" in said
    said, code = type_at("weather", "transfer", "offer", "weather", chain.other)
    assert code == 0, said
    assert capdex.json("show", "weather")["standing"]["pending_owner"] == chain.other
    said, code = type_at("y", "transfer", "cancel", "weather")
    assert code == 0, said
    said, code = type_at("weather", "renounce", "weather")
    assert code == 0, said
    assert capdex.json("show", "weather")["standing"]["renounced"] is True
