"""Each check of the doctor: how it fails, and what it then says to do."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from capdex.errors import Code, UsageError
from capdex.ipld.cid import Cid
from cli.config.settings import Network
from cli.doctor import chain as chain_checks
from cli.doctor import machine, services
from cli.doctor.check import EACH_S, Check, bounded
from cli.doctor.probe import Probe, Reply
from publisher.deploy import create2
from publisher.deploy.deploy import Deployment, deploy
from publisher.ethereum.client import Chain
from publisher.keys import keystore as keys
from publisher.keys.secret import Secret
from publisher.keys.signer import LocalSigner

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


HEAD = {"number": "0x10", "timestamp": hex(int(time.time()))}


async def seen(url: str, **changed: Any) -> dict[str, Check]:
    """The checks of a chain whose endpoint is `url`, by name."""
    given: dict[str, Any] = {"name": "mine", "chain_id": 1, "rpc_url": url} | changed
    network = Network(**given)
    async with Probe() as probe:
        return {check.name: check for check in await chain_checks.checks(probe, network, None)}


@pytest.fixture
async def probe() -> Any:
    async with Probe() as open_probe:
        yield open_probe


# this machine -------------------------------------------------------------------------------


def test_python_and_anvil_are_well_here() -> None:
    assert machine.python().status == "ok"
    assert machine.disk(Path.cwd() / "not" / "there" / "yet").status == "ok"


def test_without_node_js_only_up_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = machine.node_js(str(tmp_path))
    assert found.status == "warn"
    assert "install Node.js 20" in found.fix
    program = tmp_path / "node"
    program.touch(0o755)
    assert machine.node_js(str(tmp_path)).status == "ok"


def test_an_anvil_that_cannot_be_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_ANVIL", str(tmp_path / "none"))
    found = machine.anvil()
    assert (found.status, found.fix) == ("fail", "correct CAPDEX_ANVIL, or unset it")


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


def test_a_variable_that_nothing_reads_is_a_warning() -> None:
    found = machine.configuration(None, [], ["nothing reads CAPDEX_RPC"])
    assert (found.status, found.fix) == ("warn", "unset it, or correct its name")
    assert machine.configuration(UsageError("bad", Code.CONFIG), [], []).fix


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_can_touch_fails(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "account.json"
    path.touch(mode)
    path.chmod(mode)
    found = machine.key_files({"keystore": (path, False)}, {}, "")
    assert (found.status, found.fix) == ("fail", f"chmod 600 {path}")
    assert f"{mode:04o}" in found.result
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert machine.key_files({"keystore": (path, False)}, {}, "").status == "ok"


def test_a_key_file_that_was_named_and_is_missing_fails(tmp_path: Path) -> None:
    named = {"keystore": (tmp_path / "none", True)}
    found = machine.key_files(named, {}, "")
    assert (found.status, found.fix) == ("fail", "correct keystore, or unset it")
    usual = {"keystore": (tmp_path / "none", False)}
    assert machine.key_files(usual, {}, "").status == "none"
    assert "signer" in machine.key_files(usual, {}, "http://signer").result


@pytest.mark.parametrize("name", ["CAPDEX_PRIVATE_KEY", "CAPDEX_PASSPHRASE"])
def test_a_secret_in_the_environment_is_a_warning_and_not_shown(name: str) -> None:
    found = machine.key_files({}, {name: TOKEN}, "")
    assert found.status == "warn"
    assert "--passphrase-file" in found.fix
    assert TOKEN not in str(found)


def test_a_directory_that_cannot_be_written_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root
    found = machine.disk(Path("/"))
    assert found.status == "fail"
    assert "CAPDEX_HOME" in found.fix


@pytest.mark.parametrize(
    ("free", "status"), [(1 << 20, "fail"), (1 << 29, "warn"), (1 << 31, "ok")]
)
def test_a_full_disk_fails(monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    class Usage:
        pass

    usage = Usage()
    usage.free = free  # type: ignore[attr-defined]
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    found = machine.disk(Path.cwd())
    assert found.status == status
    assert ("free some space" in found.fix) is (status != "ok")


# the chain ----------------------------------------------------------------------------------


async def test_without_an_endpoint_nothing_of_the_chain_applies() -> None:
    found = await seen("")
    assert found["RPC"].status == "warn"
    assert found["RPC"].fix == "set CAPDEX_RPC_URL, or rpc-url in [networks.mine]"
    assert {x.status for x in found.values() if x.name != "RPC"} == {"none"}


async def test_an_endpoint_that_is_down_fails_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = await seen(f"http://127.0.0.1:{port}/{TOKEN}")
    assert found["RPC"].status == "fail"
    assert "--rpc-url" in found["RPC"].fix
    assert "connect" in found["RPC"].result
    assert TOKEN not in str(found)
    assert {x.status for x in found.values() if x.name != "RPC"} == {"none"}


async def test_an_endpoint_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = await seen(f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert found["RPC"].result == f"no answer within {EACH_S:g} s"


@pytest.mark.parametrize("host", ["capdex.invalid", "[", "a" * 70, "[::g]", ""])
async def test_a_host_that_does_not_exist_is_told_without_the_url(host: str) -> None:
    found = await seen(f"https://me:{TOKEN}@{host}/{TOKEN}")
    assert found["RPC"].status == "fail"
    assert TOKEN not in str(found)


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
        says(200, b'"' + b"x" * (2 << 20) + b'"'),
    ],
)
async def test_an_endpoint_that_speaks_something_else_fails(answer: Answer) -> None:
    with simulated(answer) as url:
        found = await seen(f"{url}/{TOKEN}")
    assert found["RPC"].status == "fail"
    assert "--rpc-url" in found["RPC"].fix
    assert TOKEN not in str(found)


async def test_another_chain_fails() -> None:
    with simulated(rpc(eth_chainId="0x2", eth_getBlockByNumber=HEAD)) as url:
        found = await seen(url)
        assert found["chain id"].status == "fail"
        assert "speaks for chain 2, mine is 1" in found["chain id"].result
        assert "correct the endpoint" in found["chain id"].fix
        unpinned = (await seen(url, chain_id=None))["chain id"]
        assert (unpinned.status, "chain-id = 2" in unpinned.fix) == ("warn", True)


async def test_a_second_endpoint_must_be_anothers_and_of_the_same_chain() -> None:
    good, other = rpc(eth_chainId="0x1", eth_getBlockByNumber=HEAD), rpc(eth_chainId="0x2")
    with simulated(good) as url, simulated(other) as wrong:
        same = (await seen(url, trust_rpc_url=url))["second RPC"]
        assert (same.status, "another operator" in same.fix) == ("warn", True)
        foreign = (await seen(url, trust_rpc_url=wrong))["second RPC"]
        assert (foreign.status, foreign.fix) == ("fail", "correct trust-rpc-url")
        apart = await seen(url, trust_rpc_url=url.replace("127.0.0.1", "localhost"))
        assert apart["second RPC"].status == "ok"
        assert (await seen(url))["second RPC"].status == "none"


async def test_nothing_at_the_registrys_address_fails() -> None:
    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=HEAD, eth_getCode="0x")
    with simulated(answers) as url:
        found = await seen(url, registry="0x" + "11" * 20, votes="0x" + "22" * 20)
    assert found["registry"].status == "fail"
    assert "capdex deploy" in found["registry"].fix
    assert found["votes"].status == "warn"
    assert "capdex deploy --votes" in found["votes"].fix


async def test_a_contract_that_is_no_registry_fails() -> None:
    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=HEAD, eth_getCode="0xfe", eth_call="0x")
    with simulated(answers) as url:
        found = await seen(url, registry="0x" + "11" * 20, votes="0x" + "22" * 20)
    assert "is no capdex registry" in found["registry"].result
    assert found["registry"].fix == "correct the registry of mine"
    assert (found["votes"].status, "is not about this" in found["votes"].result) == ("fail", True)


async def test_a_public_registry_without_commitments_is_a_warning() -> None:
    answers = rpc(
        eth_chainId="0x1", eth_getBlockByNumber=HEAD, eth_getCode="0xfe", eth_call="0x" + "00" * 32
    )
    with simulated(answers) as url:
        found = (await seen(url, registry="0x" + "11" * 20))["registry"]
    assert found.status == "warn"
    assert "copy a claim" in found.fix


@pytest.mark.parametrize(
    ("date_s", "block_s", "status", "words"),
    [
        (0, 0, "ok", ""),
        (90, 0, "fail", "90 s behind the endpoint's"),
        (-90, 0, "fail", "90 s ahead of the endpoint's"),
        (0, 120, "fail", "in the future"),
        (0, -1200, "warn", "20 minutes old"),
        (None, 0, "ok", ""),
    ],
)
def test_a_wrong_clock_fails(date_s: int | None, block_s: int, status: str, words: str) -> None:
    now = 1_800_000_000
    headers = {} if date_s is None else {"Date": formatdate(now + date_s, usegmt=True)}
    reply = Reply(200, headers, b"")
    found = chain_checks.clock(chain_checks.Head(1, 7, now + block_s, 0.1, reply), now)
    assert (found.status, words in found.result) == (status, True)
    if status == "fail":
        assert "NTP" in found.fix
    local = chain_checks.Head(31337, 7, now + block_s, 0.1, Reply(200, {}, b""))
    assert chain_checks.clock(local, now).status in ("ok", "warn")  # its blocks come when asked


# on a real chain ----------------------------------------------------------------------------


@pytest.fixture
async def deployment(anvil: Any, tmp_path: Path) -> Deployment:
    from eth_account import Account

    signer = LocalSigner(Account.create())
    async with Chain.connect(anvil.url, 31337, state_dir=tmp_path / "state") as chain:
        await chain.endpoint.make_request(
            "anvil_setBalance",  # type: ignore[arg-type]
            [signer.address, hex(10**20)],
        )
        made, _ = await deploy(chain, signer, tmp_path / "deployments")
        await deploy(chain, signer, tmp_path / "deployments", create2.votes(made.registry))
    return made


async def test_a_real_chain_is_well(anvil: Any, deployment: Deployment) -> None:
    found = await seen(
        anvil.url,
        chain_id=31337,
        registry=deployment.registry,
        votes=create2.votes(deployment.registry).address,
    )
    wanted = dict.fromkeys(("RPC", "chain id", "registry", "votes", "clock"), "ok")
    assert {name: found[name].status for name in wanted} == wanted
    swapped = await seen(
        anvil.url, chain_id=31337, registry=create2.votes(deployment.registry).address
    )
    assert "is no capdex registry" in swapped["registry"].result


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
    assert found["keys"]["result"] == "keystore: for you alone"


async def test_an_account_whose_key_is_public_fails_on_a_public_chain() -> None:
    async def address() -> str:
        return "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

    answers = rpc(eth_chainId="0x1", eth_getBlockByNumber=HEAD, eth_getBalance="0x1")
    with simulated(answers) as url:
        async with Probe() as probe:
            network = Network("mine", 1, url)
            found = {x.name: x for x in await chain_checks.checks(probe, network, address)}
    assert found["account"].status == "fail"
    assert found["account"].fix


# services -----------------------------------------------------------------------------------


async def check(name: str, work: Any) -> Check:
    return await bounded(name, work, fix="see that it runs")


async def test_a_signer_is_asked_for_nothing_a_person_must_agree_to(probe: Probe) -> None:
    asked: list[str] = []

    def answer(_: str, __: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked.append(json.loads(body)["method"])
        return 200, {}, b"{}"

    with simulated(answer) as url:
        assert (await services.signer(probe, url)).status == "ok"
    assert asked == ["web3_clientVersion"]
    assert (await services.signer(probe, "")).status == "none"


async def test_a_signer_that_refuses_or_is_down_or_not_found_fails(probe: Probe) -> None:
    with simulated(says(401, {})) as url:
        refused = await services.signer(probe, f"{url}/{TOKEN}")
    assert (refused.status, refused.fix) == ("fail", "mend the credentials in signer")
    gone = await check("signer", services.signer(probe, f"{url}/{TOKEN}"))
    assert (gone.status, gone.fix) == ("fail", "see that it runs")
    missing = await services.signer(probe, f"no-such-program --token {TOKEN}")
    assert (missing.status, missing.fix) == ("fail", "correct signer, or install it")
    assert TOKEN not in f"{refused}{gone}{missing}"
    assert (await services.signer(probe, "true --any")).status == "ok"


async def test_a_real_kubo_is_well(probe: Probe, kubo: Any) -> None:
    found = await services.ipfs(probe, kubo.api)
    assert found.status == "ok"
    assert found.result.startswith("Kubo 0.")


async def test_what_is_no_kubo_fails(probe: Probe) -> None:
    for answer in (says(200, {}), says(404, b"no"), says(200, b"<html>")):
        with simulated(answer) as url:
            found = await check("IPFS", services.ipfs(probe, url))
        assert (found.status, found.fix) == ("fail", "see that it runs")
    assert (await check("IPFS", services.ipfs(probe, "gateway:http://a.example"))).status == "fail"
    assert (await services.ipfs(probe, "")).status == "none"


async def test_a_directory_of_blocks_must_be_writable(probe: Probe, tmp_path: Path) -> None:
    assert (await services.ipfs(probe, f"dir:{tmp_path}/new")).status == "ok"
    (tmp_path / "file").touch()
    found = await services.ipfs(probe, f"dir:{tmp_path}/file")
    assert found.status == "fail"
    assert "permissions" in found.fix


async def test_a_real_gateway_gives_the_empty_block(probe: Probe, kubo: Any) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:  # put it there first: this Kubo has no peers
        form = aiohttp.FormData()
        form.add_field("file", b"", filename="empty")
        url = f"{kubo.api}/api/v0/block/put?cid-codec=raw"
        async with session.post(url, data=form) as response:
            assert (await response.json())["Key"] == str(Cid.of(b""))
    found = await services.gateway(probe, kubo.gateway)
    assert found.status == "ok"
    assert "its hash is right" in found.result


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
async def test_a_gateway_is_trusted_by_hash_alone(
    probe: Probe, answer: Answer, status: str
) -> None:
    with simulated(answer) as url:
        found = await services.gateway(probe, url)
    assert found.status == status
    assert ("trustless gateway" in found.fix) is (status == "fail")


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
async def test_a_node_must_follow_this_registry(
    probe: Probe, said: dict[str, Any], status: str, words: str
) -> None:
    chain = {"chain_id": 1, "registry": "0xAA", "block_number": 7}
    with simulated(says(200, {"chain": chain} | said)) as url:
        network = Network("mine", 1, registry="0xaa", node_url=url)
        found = await check("node", services.node(probe, network))
    assert (found.status, words in found.result) == (status, True), found
    assert bool(found.fix) is (status != "ok")


async def test_a_node_that_is_down_fails(probe: Probe) -> None:
    network = Network("mine", 1, node_url="http://127.0.0.1:1")
    found = await check("node", services.node(probe, network))
    assert (found.status, found.fix) == ("fail", "see that it runs")
    assert (await services.node(probe, Network("mine"))).status == "none"


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
