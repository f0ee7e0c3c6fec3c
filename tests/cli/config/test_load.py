"""Where a setting comes from, and what a cloned repository may not set."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, UsageError
from capdex_cli.config.load import CARRIED, load, variables
from capdex_cli.config.settings import REGISTRY, TEMPLATES, TYPED, VOTES, Network
from capdex_cli.config.sources import NOT_FROM_A_PROJECT
from capdex_publisher.deploy import create2

SEPOLIA = 'default-network = "sepolia"\n[networks.sepolia]\nchain-id = 11155111\n'


@pytest.fixture
def user_file(folder: Path) -> Path:
    path = folder / "home" / "config" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def project(folder: Path) -> Path:
    inner = folder / "project" / "inner"
    inner.mkdir(parents=True)
    return inner


def up_json(folder: Path, **changed: Any) -> Path:
    stack = {
        "rpc_url": "http://127.0.0.1:8545",
        "chain_id": 31337,
        "registry": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        "http_url": "http://127.0.0.1:8765",
        "mcp_url": "http://127.0.0.1:8765/mcp",
        "gateway_url": "http://127.0.0.1:8765",
        "ipfs": "dir:/blocks",
        "db_url": "sqlite:////index.db",
        "account": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "pid": os.getpid(),
        **changed,
    }
    path = folder / ".capdex" / "up.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(stack), encoding="utf-8")
    return path


def test_nothing_configured_means_no_network() -> None:
    settings = load()
    assert settings.network is None
    with pytest.raises(UsageError, match="no network"):
        settings.need_network("rpc_url")


def test_each_value_comes_from_the_strongest_place_that_has_it(
    folder: Path, user_file: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file.write_text(
        SEPOLIA
        + 'rpc-url = "http://user"\nregistry = "0x0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"\n',
        "utf-8",
    )
    (project.parent / "capdex.toml").write_text(
        '[networks.sepolia]\nrpc-url = "http://project"\nnode-url = "http://project/"\n', "utf-8"
    )
    monkeypatch.setenv("CAPDEX_NODE_URL", "http://environment")
    settings = load(overrides=["mcp-url=http://flag/mcp"], cwd=project)
    assert settings.network == Network(
        "sepolia",
        chain_id=11155111,
        rpc_url="http://project",
        registry="0x0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
        node_url="http://environment",
        mcp_url="http://flag/mcp",
        gateway_url="http://environment",
        confirmations=3,
    )
    assert settings.origins == {
        "network": str(user_file),
        "chain-id": str(user_file),
        "rpc-url": str(project.parent / "capdex.toml"),
        "registry": str(user_file),
        "node-url": "environment",
        "mcp-url": "an option",
        "gateway-url": "environment",
        "confirmations": "built-in",
    }


def test_a_variable_counts_without_the_spaces_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"CHAIN_ID": " 42 ", "REGISTRY": f"{REGISTRY}\n", "RPC_URL": " "}.items():
        monkeypatch.setenv(f"CAPDEX_{name}", text)
    network = load().need_network()
    assert (network.chain_id, network.registry, network.rpc_url) == (42, REGISTRY, "")


def test_a_value_of_a_file_or_an_option_counts_without_the_spaces_around_it(
    user_file: Path,
) -> None:
    text = "[networks.a]\nrpc-url = 'http://a '\nnode-url = '  '\n"
    user_file.write_text(text, encoding="utf-8")
    network = load(network="a", overrides=["chain-id= 42 "]).need_network()
    assert (network.chain_id, network.rpc_url) == (42, "http://a")
    assert (network.node_url, network.mcp_url) == ("", "")


def test_the_network_is_chosen_by_option_then_environment_then_file(
    user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file.write_text(SEPOLIA + "[networks.a]\n[networks.b]\n", encoding="utf-8")
    assert load().need_network().name == "sepolia"
    monkeypatch.setenv("CAPDEX_NETWORK", "a")
    assert load().need_network().name == "a"
    assert load(network="b").need_network().name == "b"


def test_a_projects_file_is_not_looked_for_above_its_repository(
    folder: Path, project: Path
) -> None:
    (folder / "capdex.toml").write_text(SEPOLIA, encoding="utf-8")
    assert load(cwd=project).network is not None
    (project.parent / ".git").mkdir()
    assert load(cwd=project).network is None


@pytest.mark.parametrize("key", NOT_FROM_A_PROJECT)
@pytest.mark.parametrize("table", ["", "[networks.sepolia]\n"])
def test_a_projects_file_may_choose_neither_keys_nor_money(
    project: Path, key: str, table: str
) -> None:
    (project / "capdex.toml").write_text(f'{table}{key} = "x"\n', encoding="utf-8")
    with pytest.raises(UsageError, match=f"may not set {key}") as caught:
        load(cwd=project)
    assert caught.value.code is Code.CONFIG


def test_the_users_own_file_may_and_paths_are_relative_to_it(user_file: Path) -> None:
    user_file.write_text('keystore = "k.json"\nfee-cap = "0.5"\n', encoding="utf-8")
    settings = load()
    assert settings.keystore == user_file.parent / "k.json"
    assert settings.fee_cap_wei == 5 * 10**17


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[networks.sepolia]\nrpc-ulr = 'x'\n", "rpc-url"),
        ("default-netwrok = 'x'\n", "default-network"),
        ("default-network = 'sepola'\n[networks.sepolia]\n", "sepolia"),
        ("networks = 3\ndefault-network = 'x'", ""),
        ("[networks]\na = 3\n", ""),
        ("[networks.a]\nchain-id = 'many'\n", "digits"),
        ("fee-cap = 'much'\n", "CAPDEX_FEE_CAP"),
        ("fee-cap = '-1'\n", ""),
        ("fee-cap = 'nan'\n", ""),
        ("= broken", ""),
        ("keystore = true", ""),
        ("keystore = '~nobody-of-that-name/key'", "no user"),
        ("fee-cap = '1e999999'\n", ""),
        ("fee-cap = '1e40'\n", ""),
        (f"[networks.a]\nchain-id = '{'9' * 5000}'\n", ""),
        (f"[networks.a]\nchain-id = {'9' * 5000}\n", ""),
        (f"a = {'[' * 5000}", ""),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_a_suggestion(
    user_file: Path, text: str, hint: str
) -> None:
    user_file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(network="a" if "networks.a" in text else None)
    assert caught.value.code is Code.CONFIG
    assert hint in caught.value.fix


@pytest.mark.parametrize(
    "text",
    [
        *("node-url=foo", "mcp-url=127.0.0.1:8765/mcp", "nodes=http://a ftp://b", "node-url=//a"),
        *("node-url=me:4fe1c0de@node.example.org", "gateway-url=127.0.0.1:8080"),
    ],
)
def test_an_address_of_a_node_that_is_no_url_is_told_before_anything_is_asked(text: str) -> None:
    with pytest.raises(UsageError, match="is not an http") as caught:
        load(overrides=[text])
    assert (caught.value.code, caught.value.why) == (Code.CONFIG, "set by an option")
    assert "http://127.0.0.1:8765" in caught.value.fix
    assert "4fe1c0de" not in str(caught.value.to_json())


@pytest.mark.parametrize("name", ["CAPDEX_REGISTRY", "CAPDEX_VOTES", "CAPDEX_SIGNER_ADDRESS"])
def test_a_setting_that_is_no_address_is_named_with_what_set_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "nan")
    key = name.removeprefix("CAPDEX_").lower().replace("_", "-")
    with pytest.raises(UsageError, match=f"^{key} is not an address") as caught:
        load()
    assert caught.value.why == "set by environment"


def test_a_network_that_is_unknown_is_told_those_that_there_are_and_local_only_while_it_runs(
    folder: Path,
) -> None:
    with pytest.raises(UsageError, match="no `capdex up` runs here") as none:
        load(network="local")
    assert "run it here" in none.value.fix
    with pytest.raises(UsageError, match="no network is called 'x'") as without:
        load(network="x")
    assert "local" not in without.value.fix
    up_json(folder)
    with pytest.raises(UsageError) as beside:
        load(network="x")
    assert "local" in beside.value.fix


def test_a_number_that_is_none_is_told_with_what_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPDEX_CONFIRMATIONS", "1.5")
    with pytest.raises(UsageError, match="confirmations is not a whole number") as caught:
        load()
    assert caught.value.why == "set by environment"


def test_a_key_of_a_network_outside_of_its_table_is_told_where_it_belongs(user_file: Path) -> None:
    user_file.write_text("rpc-url = 'http://a'", encoding="utf-8")
    with pytest.raises(UsageError, match=r"'rpc-url' outside of \[networks.NAME\]"):
        load()


def test_a_number_without_quotes_that_is_not_whole_is_told_to_be_quoted(user_file: Path) -> None:
    user_file.write_text("fee-cap = 0.02", encoding="utf-8")
    with pytest.raises(UsageError, match="fee-cap must be text, in quotes, or a whole number"):
        load()


def test_what_an_error_says_to_set_for_the_network_of_the_variables_is_read_from_a_file(
    user_file: Path,
) -> None:
    given = ["chain-id=5", "rpc-url=http://a"]
    with pytest.raises(UsageError, match="has no mcp-url") as caught:
        load(overrides=given).need_network("mcp_url")
    assert "mcp-url in [networks.custom]" in caught.value.fix
    user_file.write_text("[networks.custom]\nmcp-url = 'http://b/mcp'\n", encoding="utf-8")
    network = load(overrides=given).need_network("mcp_url")
    assert (network.mcp_url, network.rpc_url) == ("http://b/mcp", "http://a")
    assert load().network is None  # nothing chose it


def test_an_unknown_override_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        load(overrides=["rpcurl=x"])
    assert "rpc-url" in caught.value.fix


def test_a_named_file_replaces_both_files(folder: Path, user_file: Path) -> None:
    user_file.write_text(SEPOLIA, encoding="utf-8")
    own = folder / "own.toml"
    own.write_text('default-network = "mine"\n[networks.mine]\n', encoding="utf-8")
    assert load(overrides=[str(own)]).need_network().name == "mine"


def test_a_file_that_is_a_link_to_nothing_is_refused(folder: Path, user_file: Path) -> None:
    user_file.symlink_to(folder / "gone.toml")
    for overrides in ([], [str(user_file)]):
        with pytest.raises(UsageError, match=r"cannot read .*config\.toml"):
            load(overrides=overrides)


def test_what_is_said_of_a_network_goes_before_what_is_said_of_all(user_file: Path) -> None:
    user_file.write_text('keystore = "all"\n[networks.base]\nkeystore = "base"\n', "utf-8")
    assert load(network="base").keystore == user_file.parent / "base"
    assert load(network="sepolia").keystore == user_file.parent / "all"


# public chains ------------------------------------------------------------------------------


def test_a_public_chain_is_known_by_name_without_any_file() -> None:
    settings = load(network="base-sepolia", environ={"CAPDEX_RPC_URL": "https://rpc.example"})
    assert settings.network == Network(
        *("base-sepolia", 84532, "https://rpc.example"),
        registry=REGISTRY,
        votes=VOTES,
        confirmations=15,
    )
    assert settings.origins["chain-id"] == settings.origins["registry"] == "built-in"


def test_no_name_has_an_endpoint_of_a_third_party_built_in() -> None:
    for name, template in TEMPLATES.items():
        assert not any("url" in key for key in template.values()), name
    assert len({template.chain_id for template in TEMPLATES.values()}) == len(TEMPLATES)


def test_the_addresses_built_in_are_those_that_deploying_gives() -> None:
    # After a change of the contracts: write what `capdex deploy --address` (and `--votes`) prints.
    registry = create2.registry(1).address
    assert registry == REGISTRY
    assert create2.votes(registry).address == VOTES


def test_the_documentation_has_every_public_chain_and_both_addresses() -> None:
    text = (Path(__file__).parents[3] / "docs" / "networks.md").read_text("utf-8")
    for name, x in TEMPLATES.items():
        row = f"| `{name}` | {x.chain_id} | {x.currency} | {x.explorer_url} | {x.confirmations} |"
        assert row in text
    assert len(re.findall(r"^\| `[\w-]+` \| \d+ \|", text, re.M)) == len(TEMPLATES)
    assert f"    {REGISTRY}\n" in text
    assert f"    {VOTES}\n" in text


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_public_chains_name_never_means_another_chain(project: Path, name: str) -> None:
    (project / "capdex.toml").write_text(f"[networks.{name}]\nchain-id = 31337\n", "utf-8")
    with pytest.raises(UsageError, match=f"{name} is chain {TEMPLATES[name].chain_id}") as caught:
        load(network=name, cwd=project)
    assert caught.value.code is Code.CONFIG
    assert "capdex.toml" in caught.value.why
    with pytest.raises(UsageError, match="not '31337'"):
        load(network=name, environ={"CAPDEX_CHAIN_ID": "31337"})


@pytest.mark.parametrize("key", ["registry", "votes", "chain-id"])
@pytest.mark.parametrize("name", ["base", "own"])
def test_a_projects_file_does_not_change_what_a_known_network_is(
    user_file: Path, project: Path, name: str, key: str
) -> None:
    """Else the endpoint that a person trusts would prove what stands in a stranger's contract."""
    known = TEMPLATES["base"].values()
    if name == "own":
        lines = [f'{key} = "{value}"' for key, value in known.items()]
        user_file.write_text("\n".join(["[networks.own]", *lines]), "utf-8")
    file = project / "capdex.toml"
    other = "31337" if key == "chain-id" else f"0x{'22' * 20}"
    file.write_text(f'[networks.{name}]\n{key} = "{other}"\n', "utf-8")
    with pytest.raises(UsageError, match=f"{name} .*{key}|{name} is chain") as caught:
        load(network=name, cwd=project)
    assert caught.value.code is Code.CONFIG
    assert str(file) in caught.value.why
    assert "another name" in caught.value.fix
    typed = known[key]  # goes before it
    assert load(network=name, overrides=[f"{key}={typed}"], cwd=project).origins[key] == TYPED
    file.write_text(f'[networks.{name}]\n{key} = "{known[key].lower()}"\n', "utf-8")
    assert load(network=name, cwd=project).origins[key] == str(file)


def test_a_projects_file_may_add_a_network_and_a_person_another_registry(project: Path) -> None:
    text = f'[networks.ours]\nchain-id = 8453\nregistry = "0x{"22" * 20}"\n'
    (project / "capdex.toml").write_text(text, "utf-8")
    assert load(network="ours", cwd=project).need_network().registry == f"0x{'22' * 20}"
    typed = load(network="base", overrides=[f"registry=0x{'33' * 20}"], cwd=project)
    assert typed.need_network().registry == f"0x{'33' * 20}"


def test_built_in_votes_are_not_those_of_another_registry() -> None:
    settings = load(
        network="base", overrides=["registry=0x5FbDB2315678afecb367f032d93F642f64180aa3"]
    )
    assert settings.need_network().votes == ""
    assert "votes" not in settings.origins


# a local stack ------------------------------------------------------------------------------


def test_a_live_stack_upward_is_the_network_and_brings_its_keys(
    folder: Path, project: Path
) -> None:
    path = up_json(folder)
    settings = load(cwd=project)
    assert settings.up == path
    assert settings.network == Network(
        "local",
        chain_id=31337,
        rpc_url="http://127.0.0.1:8545",
        registry="0x5FbDB2315678afecb367f032d93F642f64180aa3",
        node_url="http://127.0.0.1:8765",
        mcp_url="http://127.0.0.1:8765/mcp",
        gateway_url="http://127.0.0.1:8765",
        ipfs="dir:/blocks",
    )
    keys = path.parent / "keys"
    assert (settings.keystore, settings.author_key, settings.passphrase_file) == (
        keys / "account.json",
        keys / "author.json",
        keys / "passphrase",
    )


def test_a_node_that_is_named_beside_a_stack_is_asked_in_all_its_roles(
    folder: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up_json(folder)
    monkeypatch.setenv("CAPDEX_NODE_URL", "http://own")
    network = load(cwd=project).network
    assert network is not None
    assert {"mcp_url": network.mcp_url, "gateway_url": network.gateway_url} == OF_OWN


def test_a_real_account_is_not_used_on_a_local_stack_unless_named(
    folder: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file.write_text('keystore = "real.json"\n', encoding="utf-8")
    path = up_json(folder)
    assert load().keystore == path.parent / "keys" / "account.json"
    monkeypatch.setenv("CAPDEX_KEYSTORE", "/named.json")
    assert load().keystore == Path("/named.json")


def test_another_network_that_was_chosen_is_not_mixed_with_a_stack(
    folder: Path, user_file: Path
) -> None:
    up_json(folder)
    user_file.write_text(SEPOLIA, encoding="utf-8")
    settings = load()
    assert settings.network == Network(
        "sepolia", 11155111, registry=REGISTRY, votes=VOTES, confirmations=3
    )
    assert (settings.up, settings.keystore) == (None, None)
    assert load(network="local").up is not None


def test_a_file_adds_to_the_network_of_a_stack(folder: Path, user_file: Path) -> None:
    path = up_json(folder)
    user_file.write_text("[networks.local]\nconfirmations = 3\n", encoding="utf-8")
    settings = load()
    network = settings.need_network()
    assert (network.confirmations, network.rpc_url) == (3, "http://127.0.0.1:8545")
    assert (settings.up, settings.origins["confirmations"]) == (path, str(user_file))
    assert settings.keystore == path.parent / "keys" / "account.json"


OF_OWN: dict[str, Any] = {"mcp_url": "http://own/mcp", "gateway_url": "http://own"}


def test_variables_name_the_proxy_and_its_authority_but_no_password(project: Path) -> None:
    open_, closed = "http://proxy.example:3128", "http://me:secret@proxy.example:3128"
    named = {"https_proxy": open_, "HTTP_PROXY": closed, "no_proxy": ".corp", "ftp_proxy": open_}
    way = {"CAPDEX_PROXY_TOOLS": "1", "SSL_CERT_FILE": "/etc/corp.pem"}
    carried = variables(load(cwd=project), named | way)
    proxies = {name: x for name, x in carried.items() if "proxy" in name.lower() or name in way}
    assert proxies == {"https_proxy": open_, "no_proxy": ".corp", **way}
    assert set(carried) <= set(CARRIED)


def test_variables_give_a_program_elsewhere_the_network_of_a_stack(
    folder: Path, user_file: Path, project: Path
) -> None:
    up_json(folder)
    settings = load(cwd=project)
    assert settings.network is not None
    carried = variables(settings)
    assert set(carried) <= set(CARRIED)
    user_file.write_text(SEPOLIA, encoding="utf-8")
    elsewhere = load(cwd=Path("/"), environ=carried)
    assert elsewhere.network == replace(settings.network, name="custom")
    assert (elsewhere.up, elsewhere.keystore) == (None, None)


def test_variables_give_a_program_elsewhere_what_a_project_an_option_and_a_file_say(
    folder: Path, user_file: Path, project: Path
) -> None:
    (project.parent / "capdex.toml").write_text(
        'default-network = "team"\n[networks.team]\nnode-url = "http://project"\n', "utf-8"
    )
    settings = load(cwd=project, overrides=["mcp-url=http://option/mcp"])
    assert load(cwd=Path("/"), environ=variables(settings)).network == Network(
        "custom",
        node_url="http://project",
        mcp_url="http://option/mcp",
        gateway_url="http://project",
    )
    user_file.write_text('[networks.own]\nnode-url = "http://own"\n', "utf-8")
    carried = variables(load(cwd=project, network="own"))
    assert {name for name in carried if name != "CAPDEX_HOME"} == {"CAPDEX_NETWORK"}
    assert load(cwd=Path("/"), environ=carried).network == Network(
        "own", node_url="http://own", **OF_OWN
    )
    carried = variables(load(cwd=project, network="base"))
    assert load(cwd=Path("/"), environ=carried).network == load(network="base").network


def test_the_address_of_a_node_alone_says_where_its_mcp_endpoint_and_its_gateway_are(
    folder: Path, user_file: Path
) -> None:
    user_file.write_text('[networks.own]\nnode-url = "http://own/"\n', encoding="utf-8")
    network = load(network="own").network
    assert network == Network("own", node_url="http://own", **OF_OWN)
    other = load(network="own", overrides=["mcp-url=http://other/mcp"]).network
    assert other is not None
    assert (other.mcp_url, other.gateway_url) == ("http://other/mcp", "http://own")


def test_a_stack_whose_process_ended_is_not_used(folder: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    up_json(folder, pid=ended.pid)
    assert load().network is None


@pytest.mark.parametrize(
    "changed",
    [
        {"pid": 0},
        {"pid": -1},
        {"pid": "many"},
        {"pid": None},
        {"pid": 10**30},
        {"rpc_url": "https://rpc.example"},
        {"mcp_url": "http://127.0.0.1.example/mcp"},
        {"ipfs": "https://ipfs.example"},
        {"ipfs": "gateway:https://ipfs.example"},
    ],
)
def test_a_planted_stack_is_not_believed(folder: Path, changed: dict[str, Any]) -> None:
    up_json(folder, **changed)
    assert load().network is None


def test_a_planted_stack_names_no_nodes_to_compare_with(folder: Path) -> None:
    up_json(folder, nodes="https://node.example")
    assert load().need_network().nodes == ""


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "."])
def test_a_planted_link_is_no_stack(folder: Path, target: str) -> None:
    path = up_json(folder)
    path.unlink()
    os.mkfifo(folder / ".capdex" / "pipe")
    path.symlink_to(target)
    assert load().network is None


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"pid": {}}', "[" * 9999, " " * 100_000])
def test_a_broken_stack_file_is_no_stack(folder: Path, text: str) -> None:
    up_json(folder).write_text(text, encoding="utf-8")
    assert load().network is None


def test_a_live_stack_is_named_once_on_stderr(capdex: Any, folder: Path) -> None:
    path = up_json(folder)
    result = capdex("config", "--plain")
    assert result.stderr == f"using the local network of {path}\n"
    assert "network=local" in result.stdout.splitlines()


# the command --------------------------------------------------------------------------------


def test_config_shows_each_value_with_its_origin_and_no_password_of_a_url(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_RPC_URL", "https://me:hunter2@rpc.example/v3/0123456789abcdef0123")
    document = capdex.json("config")
    found = {row["key"]: (row["value"], row["origin"]) for row in document["results"]}
    assert found["rpc-url"] == ("https://…@rpc.example/v3/0123…", "environment")
    assert found["fee-cap"] == ("0.01", "built-in")
    assert found["registry"] == (None, "unset")


def test_config_shows_each_digit_of_the_fee_cap(capdex: Any) -> None:
    for cap in ("0.0000005", "123456789.123456789012345678", "0", "100"):
        lines = capdex("config", "--config", f"fee-cap={cap}", "--plain").stdout.splitlines()
        assert f"fee-cap={cap}" in lines


def test_a_variable_that_nothing_reads_is_warned_about(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_RPCURL", "x")
    monkeypatch.setenv("CAPDEX_FOO", "x")
    result = capdex("config")
    assert "nothing reads CAPDEX_RPCURL; did you mean CAPDEX_RPC_URL?" in result.stderr
    assert "nothing reads CAPDEX_FOO\n" in result.stderr
