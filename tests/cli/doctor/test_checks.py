"""Each check of `capdex doctor`: how it fails, and the fix that it names."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from capdex.ipld.cid import Cid
from capdex_cli.doctor import network, storage
from capdex_cli.doctor.check import EACH_S
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import DeployedContract, deploy
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys import keystore as keys
from capdex_publisher.keys.secret import Secret
from capdex_publisher.keys.signer import LocalSigner

TOKEN = "s3cr3t-t0ken"  # noqa: S105 - what must never be shown
Answer = Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]]


@contextmanager
def simulated(answer: Answer) -> Iterator[str]:
    """A service on loopback: `answer(method, path, body)` gives status, headers and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, said = answer(self.command, self.path, body)
            self.send_response_only(status)
            for key, value in {"Content-Length": str(len(said)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST  # noqa: N815 - http.server's name

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says(status: int, body: Any, **headers: str) -> Answer:
    """A service that always answers the same."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda *_: (status, {k.replace("_", "-"): v for k, v in headers.items()}, said)


def rpc(**results: Any) -> Answer:
    """An endpoint of these results, by method."""

    def answer(_: str, __: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = json.loads(body)
        found = results[asked["method"]]
        return 200, {}, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}).encode()

    return answer


def block(age_s: float = 0) -> dict[str, str]:
    """A newest block that was made `age_s` seconds ago."""
    word = "0x" + "11" * 32
    time_ = hex(int(time.time() - age_s))
    return {"number": "0x10", "hash": word, "parentHash": word, "timestamp": time_}


Found = dict[str, str]


@pytest.fixture
def doctor(capdex: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Found]]:
    """`doctor(rpc_url=…)` gives the checks of that configuration by name."""

    def run(**settings: object) -> dict[str, Found]:
        for key, value in ({"chain_id": 1} | settings).items():
            monkeypatch.setenv(f"CAPDEX_{key.upper()}", str(value))
        result = capdex("doctor", "--json")
        checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
        failed = any(check["status"] == "fail" for check in checks.values())
        assert result.exit_code == failed
        assert TOKEN not in result.output
        return checks

    return run


# this machine -------------------------------------------------------------------------------


def test_python_and_disk_are_ok_here(doctor: Any) -> None:
    found = doctor()
    assert (found["Python"]["status"], found["disk"]["status"]) == ("ok", "ok")
    assert found["Python"]["fix"] == ""


def test_the_proxy_of_the_environment_is_shown_without_its_password(
    doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor()["proxy"]["result"] == "the environment names none"
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example:1080")
    passed_by = "https goes directly, as the variables of the environment say"
    assert doctor()["proxy"]["result"] == passed_by
    monkeypatch.setenv("https_proxy", f"http://me:{TOKEN}@proxy.example:3128")
    assert doctor()["proxy"]["result"] == "https goes through proxy.example:3128"


def test_an_anvil_that_cannot_be_run_is_a_failed_check(doctor: Any, tmp_path: Path) -> None:
    found = doctor(anvil=tmp_path / "none")["Anvil"]
    assert (found["status"], found["fix"]) == ("fail", "correct CAPDEX_ANVIL, or unset it")


def test_an_anvil_that_is_nowhere_is_fetched_or_told_how_to_install(
    doctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_publisher.ethereum.anvil.BESIDE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = doctor()["Anvil"]
    assert (found["status"], "fetches it" in found["result"]) == ("none", True)
    monkeypatch.setattr("capdex_cli.devnet.anvil.find_spec", lambda _: None)
    found = doctor()["Anvil"]
    assert found["status"] == "warn"
    assert found["fix"] == "pip install 'capdex[local]', which fetches it"


def test_a_broken_configuration_is_a_failed_check_with_its_own_fix(
    capdex: Any, folder: Path
) -> None:
    (folder / "capdex.toml").write_text("[networks.a]\nrpc-ulr = 'x'\n")
    result = capdex("doctor", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    found = {check["name"]: check for check in document["checks"]}
    assert document["healthy"] is False
    assert found["settings"]["status"] == "fail"
    assert "rpc-url" in found["settings"]["fix"]
    assert found["registry"]["status"] == "none"


def test_a_variable_that_nothing_reads_is_a_warning(doctor: Any) -> None:
    found = doctor(rcp_url="x")["settings"]
    assert (found["status"], found["fix"]) == ("warn", "unset it, or correct its name")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_can_access_fails(doctor: Any, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "account.json"
    path.touch(mode)
    path.chmod(mode)
    found = doctor(keystore=path)["keys"]
    assert (found["status"], found["fix"]) == ("fail", f"chmod 600 {path}")
    assert f"{mode:04o}" in found["result"]
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert doctor(keystore=path)["keys"]["status"] == "ok"


def test_a_configured_key_file_that_is_missing_fails(doctor: Any, tmp_path: Path) -> None:
    assert doctor()["keys"]["status"] == "none"
    found = doctor(keystore=tmp_path / "none")["keys"]
    assert (found["status"], found["fix"]) == ("fail", "correct keystore, or unset it")


@pytest.mark.parametrize("name", ["private_key", "passphrase"])
def test_a_secret_in_the_environment_is_a_warning_and_not_shown(doctor: Any, name: str) -> None:
    found = doctor(**{name: TOKEN})["keys"]
    assert (found["status"], "--passphrase-file" in found["fix"]) == ("warn", True)


def test_a_directory_that_cannot_be_written_fails(
    doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root
    found = doctor()["disk"]
    assert (found["status"], "CAPDEX_HOME" in found["fix"]) == ("fail", True)


@pytest.mark.parametrize(
    ("free", "status"), [(1 << 20, "fail"), (1 << 29, "warn"), (1 << 31, "ok")]
)
def test_a_full_disk_fails(
    doctor: Any, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    found = doctor()["disk"]
    assert (found["status"], "free some space" in found["fix"]) == (status, status != "ok")


# the chain ----------------------------------------------------------------------------------


CHAIN = ("chain id", "second RPC", "registry", "votes", "account", "clock")


def test_without_an_endpoint_no_check_of_the_chain_applies(doctor: Any) -> None:
    found = doctor(registry="0x" + "11" * 20)
    assert (found["RPC"]["status"], "CAPDEX_RPC_URL" in found["RPC"]["fix"]) == ("warn", True)
    assert {found[name]["status"] for name in CHAIN} == {"none"}


def test_an_endpoint_that_is_down_fails_alone(doctor: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = doctor(rpc_url=f"http://127.0.0.1:{port}/{TOKEN}")
    assert (found["RPC"]["status"], "--rpc-url" in found["RPC"]["fix"]) == ("fail", True)
    assert "connection refused" in found["RPC"]["result"]
    assert {found[name]["status"] for name in CHAIN} == {"none"}


def test_an_endpoint_that_does_not_answer_is_given_up_in_time(doctor: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = doctor(rpc_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert found["RPC"]["result"] == f"no answer within {EACH_S:g} s"
    assert found["RPC"]["fix"].endswith("then try again")


@pytest.mark.parametrize("host", ["capdex.invalid", "a" * 70, "[::g]"])
def test_a_host_that_does_not_exist_is_a_failed_check(doctor: Any, host: str) -> None:
    assert doctor(rpc_url=f"https://me:{TOKEN}@{host}/{TOKEN}")["RPC"]["status"] == "fail"


@pytest.mark.parametrize(
    "answer",
    [
        says(200, b"<html>"),
        says(503, b""),
        says(302, b"", Location="http://elsewhere.invalid/"),
        says(200, []),
        says(200, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no key"}}),
        rpc(eth_chainId="one"),
        rpc(eth_chainId={"a": 1}),
        rpc(eth_chainId="0x1", eth_getBlockByNumber=None),
        rpc(eth_chainId="0x1", eth_getBlockByNumber={"number": "0x1"}),
        says(200, b"[" * 200_000),
    ],
)
def test_an_endpoint_that_does_not_speak_json_rpc_fails(doctor: Any, answer: Answer) -> None:
    with simulated(answer) as url:
        found = doctor(rpc_url=f"{url}/{TOKEN}")["RPC"]
    assert (found["status"], "--rpc-url" in found["fix"]) == ("fail", True)


def test_what_an_endpoint_cannot_do_is_a_warning_with_what_follows(doctor: Any) -> None:
    results = {"eth_chainId": "0x1", "eth_getBlockByNumber": block(), "eth_getLogs": []}

    def answer(_: str, __: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = json.loads(body)
        if isinstance(asked, list) or asked["method"] not in results:
            said: dict[str, Any] = {"error": {"code": -32601, "message": "no"}}
        else:
            said = {"result": results[asked["method"]]}
        id_ = None if isinstance(asked, list) else asked["id"]
        return 200, {}, json.dumps({"jsonrpc": "2.0", "id": id_, **said}).encode()

    with simulated(answer) as url:
        found = doctor(rpc_url=url)["abilities"]
    assert found["status"] == "warn"
    assert "no eth_getProof: answers cannot be proven" in found["result"]
    assert "no logs by block hash" not in found["result"]


def test_what_an_endpoint_does_not_tell_in_time_is_named(doctor: Any) -> None:
    over = Event()
    results = {"eth_chainId": "0x1", "eth_getBlockByNumber": block(), "web3_clientVersion": "Slow"}

    def answer(_: str, __: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = json.loads(body)
        if asked["method"] not in results:
            over.wait(timeout=60)
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"])}
        return 200, {}, json.dumps(reply).encode()

    with simulated(answer) as url:
        found = doctor(rpc_url=url)["abilities"]
        over.set()
    told, _, untold = found["result"].partition("; not told in time: ")
    assert "proofs" in untold.split(", ")
    assert "proofs" not in told
    assert " 0 " not in told


def test_another_chain_fails(doctor: Any) -> None:
    with simulated(rpc(eth_chainId="0x2", eth_getBlockByNumber=block())) as url:
        found = doctor(rpc_url=url)["chain id"]
    assert found["status"] == "fail"
    assert "the endpoint is of chain 2" in found["result"]
    assert "correct the endpoint" in found["fix"]


def test_the_endpoints_of_a_node_are_examined_each(
    doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = rpc(eth_chainId="0x1", eth_getBlockByNumber=block())
    with simulated(good) as url, simulated(rpc(eth_chainId="0x2")) as wrong:
        monkeypatch.setenv("CAPDEX_RPC_URLS", f"{url} {wrong}")
        found = doctor(rpc_url="")
        assert (found["RPC"]["status"], found["chain id"]["status"]) == ("ok", "ok")
        mixed = found["node RPC"]
        assert (mixed["status"], mixed["result"]) == ("warn", f"{wrong} is of chain 2")
        monkeypatch.setenv("CAPDEX_RPC_URLS", f'"{url}"')
        quoted = doctor(rpc_url=url)["node RPC"]
        assert (quoted["status"], "without quotes" in quoted["fix"]) == ("fail", True)


def test_a_second_endpoint_must_be_of_another_host_and_of_the_same_chain(doctor: Any) -> None:
    good = rpc(eth_chainId="0x1", eth_getBlockByNumber=block())
    with simulated(good) as url, simulated(rpc(eth_chainId="0x2")) as wrong:
        assert doctor(rpc_url=url)["second RPC"]["status"] == "none"
        same = doctor(rpc_url=url, trust_rpc_url=url)["second RPC"]
        assert (same["status"], "another operator" in same["fix"]) == ("warn", True)
        foreign = doctor(trust_rpc_url=wrong)["second RPC"]
        assert (foreign["status"], foreign["fix"]) == ("fail", "correct trust-rpc-url")
        apart = doctor(trust_rpc_url=url.replace("127.0.0.1", "localhost"))
        assert apart["second RPC"]["status"] == "ok"


@pytest.mark.parametrize("code", ["0x", "0xfe"])
def test_an_address_without_a_registry_fails(doctor: Any, code: str) -> None:
    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=block(), eth_getCode=code, eth_call="0x")
    with simulated(answers) as url:
        found = doctor(rpc_url=url, registry="0x" + "11" * 20, votes="0x" + "22" * 20)
    assert "there is no capdex registry" in found["registry"]["result"]
    assert "capdex deploy" in found["registry"]["fix"]
    assert found["votes"]["status"] == "fail"
    assert "capdex deploy --votes" in found["votes"]["fix"]


def test_a_public_registry_without_commitments_is_a_warning(doctor: Any) -> None:
    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=block(), eth_call="0x" + "00" * 32)
    with simulated(answers) as url:
        found = doctor(rpc_url=url, registry="0x" + "11" * 20)["registry"]
    assert (found["status"], "a claim can be copied" in found["fix"]) == ("warn", True)


@pytest.mark.parametrize(
    ("age_s", "status", "words"),
    [(0, "ok", ""), (-120, "fail", "in the future"), (1200, "warn", "20 minutes old")],
)
def test_a_wrong_clock_fails(doctor: Any, age_s: int, status: str, words: str) -> None:
    with simulated(rpc(eth_chainId="0x1", eth_getBlockByNumber=block(age_s))) as url:
        found = doctor(rpc_url=url)["clock"]
    assert (found["status"], words in found["result"]) == (status, True)
    if status == "fail":
        assert "NTP" in found["fix"]
    with simulated(rpc(eth_chainId="0x7a69", eth_getBlockByNumber=block(age_s))) as url:
        local = doctor(rpc_url=url, chain_id=31337)["clock"]
    assert local["status"] in ("ok", "warn")  # the blocks of a development chain come on demand


# on a real chain ----------------------------------------------------------------------------


@pytest.fixture
async def deployment(anvil: Any, tmp_path: Path) -> DeployedContract:
    from eth_account import Account

    signer = LocalSigner(Account.create().key)
    async with Chain.connect(anvil.url, 31337, state_dir=tmp_path / "state") as chain:
        await chain.rpc.call("anvil_setBalance", [signer.address, hex(10**20)])
        made, _ = await deploy(chain, signer, tmp_path / "deployments")
        await deploy(chain, signer, tmp_path / "deployments", create2.votes(made.registry))
    return made


def test_a_real_chain_is_ok(doctor: Any, anvil: Any, deployment: DeployedContract) -> None:
    ballots = create2.votes(deployment.registry).address
    found = doctor(rpc_url=anvil.url, chain_id=31337, registry=deployment.registry, votes=ballots)
    wanted = dict.fromkeys(("RPC", "chain id", "abilities", "registry", "votes", "clock"), "ok")
    assert {name: found[name]["status"] for name in wanted} == wanted
    swapped = doctor(registry=ballots, chain_id=31337)
    assert "there is no capdex registry" in swapped["registry"]["result"]


def test_the_width_of_the_probe_itself_is_not_shown_as_what_an_endpoint_can_do(
    doctor: Any, anvil: Any
) -> None:
    able = doctor(rpc_url=anvil.url, chain_id=31337)["abilities"]["result"]
    assert able.endswith("proofs; batches of 8 calls")


def test_the_account_must_hold_something_and_be_nobody_elses(
    capdex: Any, anvil: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "account.json"
    account = keys.create_account(path, Secret("a"), light=True)
    monkeypatch.setenv("CAPDEX_RPC_URL", anvil.url)
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "31337")
    monkeypatch.setenv("CAPDEX_KEYSTORE", str(path))
    result = capdex("doctor", "--json")
    found = {x["name"]: x for x in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 1
    assert found["account"]["status"] == "fail"
    assert f"send some to {account.address}" in found["account"]["fix"]
    assert found["keys"]["result"] == "keystore: only you can access them"


def test_an_account_whose_key_is_public_fails_on_a_public_chain(doctor: Any) -> None:
    key = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=block(), eth_getBalance="0x1")
    with simulated(answers) as url:
        found = doctor(rpc_url=url, private_key=key)["account"]
    assert (found["status"], bool(found["fix"])) == ("fail", True)


# services -----------------------------------------------------------------------------------


def test_a_path_that_the_system_refuses_fails_its_check_alone(doctor: Any, folder: Path) -> None:
    checks = doctor(ipfs=f"dir:{folder / ('a' * 300)}/blocks")
    assert checks["IPFS"]["status"] in ("fail", "ok")  # Python 3.14 finds only that it is not there
    assert checks["node"]["status"] == "none"


def test_a_signer_is_asked_for_nothing_that_needs_a_persons_consent(doctor: Any) -> None:
    methods: list[str] = []

    def answer(_: str, __: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        methods.append(json.loads(body)["method"])
        return 200, {}, b"{}"

    assert doctor()["signer"]["status"] == "none"
    with simulated(answer) as url:
        assert doctor(signer=url)["signer"]["status"] == "ok"
    assert methods == ["web3_clientVersion"]


def test_a_signer_that_refuses_or_is_down_or_not_found_fails(doctor: Any) -> None:
    with simulated(says(401, {})) as url:
        refused = doctor(signer=f"{url}/{TOKEN}")["signer"]
    assert (refused["status"], refused["fix"]) == ("fail", "correct the credentials in signer")
    gone = doctor(signer=f"{url}/{TOKEN}")["signer"]
    assert (gone["status"], gone["fix"]) == ("fail", "see that it runs")
    missing = doctor(signer=f"no-such-program --token {TOKEN}")["signer"]
    assert (missing["status"], missing["fix"]) == ("fail", "correct signer, or install it")
    assert doctor(signer="true --any")["signer"]["status"] == "ok"
    unclosed = doctor(signer="true 'any")["signer"]
    assert unclosed["status"] == "fail"
    assert "No closing quotation" in unclosed["result"]


def test_a_real_kubo_is_ok(doctor: Any, kubo: Any) -> None:
    found = doctor(ipfs=kubo.api)["IPFS"]
    assert (found["status"], found["result"].startswith("Kubo 0.")) == ("ok", True)


def test_a_real_kubo_tells_how_full_its_disk_is(
    doctor: Any, kubo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "EMPTY_BYTES", 1 << 60)
    assert "MiB are left on its disk" in doctor(ipfs=kubo.api)["IPFS"]["result"]


@pytest.mark.parametrize("answer", [says(200, {}), says(404, b"no"), says(200, b"<html>")])
def test_a_service_that_is_not_kubo_fails(doctor: Any, answer: Answer) -> None:
    with simulated(answer) as url:
        found = doctor(ipfs=url)["IPFS"]
    assert (found["status"], "ipfs daemon" in found["fix"]) == ("fail", True)


def test_a_directory_of_blocks_must_be_writable(doctor: Any, tmp_path: Path) -> None:
    assert doctor(ipfs="gateway:http://a.example")["IPFS"]["status"] == "fail"
    assert doctor(ipfs=f"dir:{tmp_path}/new")["IPFS"]["status"] == "ok"
    (tmp_path / "file").touch()
    found = doctor(ipfs=f"dir:{tmp_path}/file")["IPFS"]
    assert (found["status"], "permissions" in found["fix"]) == ("fail", True)


@pytest.mark.parametrize(
    ("free", "status"), [(0, "fail"), (1 << 31, "ok"), ("much", "ok"), (None, "ok")]
)
def test_a_kubo_whose_disk_is_full_fails(doctor: Any, free: object, status: str) -> None:
    """One that does not tell, or tells it in another form, is not accused."""

    def kubo(_: str, path: str, __: bytes) -> tuple[int, dict[str, str], bytes]:
        if path == "/api/v0/version":
            return 200, {}, b'{"Version": "0.39.0"}'
        assert path == "/api/v0/diag/sys"
        told = json.dumps({"diskinfo": {"free_space": free}}).encode()
        return (403, {}, b"no") if free is None else (200, {}, told)

    with simulated(kubo) as url:
        found = doctor(ipfs=url)["IPFS"]
    assert (found["status"], "make room" in found["fix"]) == (status, status == "fail")


def test_a_directory_of_blocks_on_a_full_disk_fails(
    doctor: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    found = doctor(ipfs=f"dir:{tmp_path}/new")["IPFS"]
    assert (found["status"], "make room" in found["fix"]) == ("fail", True)


def test_a_kubo_that_wants_a_token_is_told_as_such(doctor: Any) -> None:
    with simulated(lambda *_: (403, {}, b"Access Denied")) as url:
        found = doctor(ipfs=url)["IPFS"]
    assert (found["status"], "capdex sends none" in found["fix"]) == ("fail", True)


async def test_a_real_gateway_serves_the_empty_block_and_kubos_rpc_is_told_from_it(
    doctor: Any, kubo: Any
) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:  # put it there first: this Kubo has no peers
        form = aiohttp.FormData()
        form.add_field("file", b"", filename="empty")
        url = f"{kubo.api}/api/v0/block/put?cid-codec=raw"
        async with session.post(url, data=form) as response:
            assert (await response.json())["Key"] == str(Cid.of(b""))
    found = (await asyncio.to_thread(doctor, gateway_url=kubo.gateway))["gateway"]
    assert (found["status"], "its hash is right" in found["result"]) == ("ok", True)
    swapped = await asyncio.to_thread(doctor, ipfs=kubo.gateway, gateway_url=kubo.api)
    assert [swapped[x]["status"] for x in ("IPFS", "gateway")] == ["fail", "fail"]
    assert swapped["IPFS"]["result"].endswith("is a gateway, which stores nothing")
    assert swapped["gateway"]["result"].endswith("is Kubo's RPC, which is for its owner alone")


async def test_kubos_gateway_by_the_name_localhost_redirects_and_the_fix_is_its_number(
    doctor: Any, kubo: Any
) -> None:
    named = kubo.gateway.replace("127.0.0.1", "localhost")
    found = (await asyncio.to_thread(doctor, gateway_url=named))["gateway"]
    assert (found["status"], "answered 301" in found["result"]) == ("fail", True)
    assert "127.0.0.1" in found["fix"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (says(200, b"", Content_Type="application/vnd.ipld.raw"), "ok"),
        (says(404, b"no"), "ok"),
        (says(200, b"x", Content_Type="application/vnd.ipld.raw"), "fail"),
        (says(200, b"", Content_Type="text/html"), "fail"),
        (says(301, b"", Location="http://elsewhere.invalid/"), "fail"),
        (says(500, b""), "fail"),
    ],
)
def test_a_gateway_is_trusted_by_hash_alone(doctor: Any, answer: Answer, status: str) -> None:
    with simulated(answer) as url:
        found = doctor(gateway_url=url)["gateway"]
    assert (found["status"], "trustless gateway" in found["fix"]) == (status, status == "fail")


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"lag_seconds": 0.1, "status": "ready"}, "ok", "block 7"),
        ({"lag_seconds": 900, "status": "ready"}, "warn", "900 s behind"),
        (
            {"status": "not ready", "because": [{"code": "BACKFILL"}]},
            "warn",
            "not ready: BACKFILL",
        ),
        ({"status": "not ready", "because": "x"}, "warn", "not ready: None"),
        ({"chain": {"chain_id": 2, "registry": "0xaa"}}, "fail", "serves registry 0xaa on chain 2"),
        ({"chain": 3}, "fail", "not as a capdex node"),
    ],
)
def test_a_node_must_follow_this_registry(
    doctor: Any, said: dict[str, Any], status: str, words: str
) -> None:
    registry = f"0x{'aa' * 20}"
    chain = {"chain_id": 1, "registry": registry.upper(), "block_number": 7}
    with simulated(says(200, {"chain": chain} | said)) as url:
        found = doctor(registry=registry, node_url=url)["node"]
    assert (found["status"], words in found["result"]) == (status, True), found
    assert bool(found["fix"]) is (status != "ok")


def test_a_node_that_is_down_fails(doctor: Any) -> None:
    assert doctor()["node"]["status"] == "none"
    found = doctor(node_url=f"http://me:{TOKEN}@127.0.0.1:1/{TOKEN}")["node"]
    assert (found["status"], "capdex node" in found["fix"]) == ("fail", True)


def test_every_check_of_the_network_has_a_fix() -> None:
    assert all(row.fix for row in network.CHECKS)


# the whole ----------------------------------------------------------------------------------


def test_warnings_do_not_fail_and_the_answer_says_what_to_paste(capdex: Any) -> None:
    result = capdex("doctor", "--format", "human")
    assert result.exit_code == 0
    table, _, report = result.stdout.partition("For a bug report")
    assert "→ run `capdex up` here" in table
    assert "warn RPC: no network is chosen" in report
    assert str(Path.home()) not in report
    document = capdex.json("doctor")
    assert document["schema"] == "capdex.doctor/1"
    assert document["healthy"] is True
    assert document["about"]["capdex"]
    assert capdex("doctor", "--plain").stdout.startswith("Python=ok\n")


def test_nothing_secret_is_shown_whatever_is_wrong(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"http://me:{TOKEN}@127.0.0.1:1/{TOKEN}?key={TOKEN}"
    for key in ("RPC_URL", "TRUST_RPC_URL", "NODE_URL", "GATEWAY_URL", "SIGNER", "IPFS"):
        monkeypatch.setenv(f"CAPDEX_{key}", address)
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "1")
    monkeypatch.setenv("CAPDEX_PRIVATE_KEY", TOKEN)
    monkeypatch.setenv("CAPDEX_PASSPHRASE", TOKEN)
    for form in ("human", "json", "plain"):
        result = capdex("doctor", "--format", form, "-vv")
        assert result.exit_code == 1
        assert TOKEN not in result.output
        assert TOKEN not in result.stderr


def test_a_process_ends_in_five_seconds_although_nothing_answers(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        names = ("RPC_URL", "NODE_URL", "GATEWAY_URL", "IPFS", "SIGNER", "TRUST_RPC_URL")
        given = {f"CAPDEX_{name}": url for name in names} | {"CAPDEX_CHAIN_ID": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "capdex", "doctor", "--plain"],
            env={**os.environ, **given},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1, done.stderr
    down = {"RPC=fail", "second RPC=fail", "signer=fail", "IPFS=fail", "gateway=fail", "node=fail"}
    assert down <= set(done.stdout.splitlines())
