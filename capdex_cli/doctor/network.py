"""Checks of the network: RPC endpoints, contracts, account, clock, signer, node."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import orjson

from capdex.encoding.abi import parse_address, raw_address
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Unavailable
from capdex.json import list_of, object_of
from capdex.manifest.urls import is_loopback
from capdex.net import node_client
from capdex.net.http import redact
from capdex.net.rpc.abilities import PROBED
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError
from capdex.net.rpc.types import quantity
from capdex_cli.doctor.check import NO_RPC, CheckRow, DoctorCheck, Subject, fail, none, ok, warn
from capdex_cli.doctor.storage import MAX_BYTES, gateway, ipfs
from capdex_cli.publish.account import account_address, has_account
from capdex_publisher.ethereum.transaction import ether
from capdex_publisher.keys.external_signer import ExternalSigner
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID, check_account

SKEW_S: Final = 60  # an error in a commitment's age that does no harm
QUIET_S: Final = 600  # every public chain has a newer block than this
LAG_S: Final = 60  # a node that follows the chain is some seconds behind
PROBE_S: Final = 1.5  # less than a check may take


async def rpc(subject: Subject) -> DoctorCheck:
    """Read chain id and newest block from the endpoint, for the other checks too."""
    network = subject.network
    if subject.settings.network is None:
        return warn("no network is chosen", "run `capdex up` here, or choose one: --network")
    if not network.rpc_url:
        fix = f"set CAPDEX_RPC_URL, or rpc-url in [networks.{network.name}]"
        return warn(f"{network.name} has no rpc-url", fix)
    began = time.monotonic()
    async with Rpc([network.rpc_url], max_attempts=1) as client:
        chain_id = await client.chain_id()
        took_s = time.monotonic() - began
        head = await client.block("latest")
    if head is None:
        return fail(f"{redact(network.rpc_url)} has no newest block")
    subject.chain_id, subject.block_time = chain_id, head.timestamp
    return ok(f"{redact(network.rpc_url)} is at block {head.number}, {took_s * 1000:.0f} ms")


def chain_id(subject: Subject) -> DoctorCheck:
    """Compare the endpoint's chain id with the network's."""
    actual, network = subject.chain_id, subject.network
    if network.chain_id is None:
        return warn(
            f"{actual}; none is configured to compare it with",
            f"set chain-id = {actual} in [networks.{network.name}] if that is the right chain",
        )
    if actual != network.chain_id:
        return fail(f"the endpoint is of chain {actual}, {network.name} is {network.chain_id}")
    return ok(f"{actual}")


async def abilities(subject: Subject) -> DoctorCheck:
    """Probe what the endpoint can do, and say what follows from what it cannot."""
    async with Rpc([subject.network.rpc_url], max_attempts=1) as client:
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_S):
                await client.look()
        able = client.abilities
    shown = [", ".join(name for name, has in able.known().items() if has)]
    if able.batch:
        shown.append(f"batches of {able.batch} calls")
    if untold := ", ".join(name for name in PROBED if name not in able.known()):
        shown.append(f"not told in time: {untold}")
    if missing := able.missing():
        return warn("; ".join(missing), "or use another endpoint: --rpc-url")
    return ok(f"{able.client or 'an unnamed client'}: {'; '.join(filter(None, shown))}")


async def node_rpcs(subject: Subject) -> DoctorCheck:
    """Compare the chain of each endpoint with the network's."""
    urls = os.environ.get("CAPDEX_RPC_URLS", "").split()
    if not urls:
        return none("CAPDEX_RPC_URLS is not set; a node takes rpc-url then")
    wrong = [x for x in await asyncio.gather(*(_endpoint_fault(subject, url) for url in urls)) if x]
    if wrong:
        return (warn if len(wrong) < len(urls) else fail)("; ".join(wrong))
    return ok(f"{len(urls)} of {len(urls)} answer")


async def _endpoint_fault(subject: Subject, url: str) -> str:
    """Return what is wrong with an endpoint, or an empty text."""
    try:
        async with Rpc([url], max_attempts=1) as client:
            actual = await client.chain_id()
    except CapdexError as error:
        return f"{redact(url)}: {error.why or error.message}"
    wanted = subject.network.chain_id
    return f"{redact(url)} is of chain {actual}" if wanted not in (None, actual) else ""


async def second_rpc(subject: Subject) -> DoctorCheck:
    """Examine the endpoint that proofs are checked against."""
    network = subject.network
    if not network.rpc_url:
        return NO_RPC
    if not network.trust_rpc_url:
        return none("trust-rpc-url is not set; proofs need it")
    async with Rpc([network.trust_rpc_url], max_attempts=1) as client:
        actual = await client.chain_id()
    shown = redact(network.trust_rpc_url)
    if network.chain_id not in (None, actual):
        return fail(f"{shown} is of chain {actual}")
    if urlsplit(network.trust_rpc_url).hostname == urlsplit(network.rpc_url).hostname:
        return warn(
            f"{shown} is the host of rpc-url, too",
            "use another operator's endpoint: a single operator always agrees with itself",
        )
    return ok(shown)


async def registry(subject: Subject) -> DoctorCheck:
    """Look for the registry contract, and read how old a commitment has to be there."""
    network = subject.network
    if not network.registry:
        return none("no registry is configured")
    low = await _view(network.rpc_url, network.registry, "MIN_COMMITMENT_AGE")
    high = await _view(network.rpc_url, network.registry, "MAX_COMMITMENT_AGE")
    if low is None or high is None:
        return fail(f"there is no capdex registry at {network.registry}")
    if low == 0 and network.chain_id != DEV_CHAIN_ID:
        return warn(
            f"{network.registry} takes claims without a commitment",
            "use the usual registry: here a claim can be copied before it is mined",
        )
    ages = f"commitments of {low} to {high} s" if low else "claims without commitments"
    return ok(f"{network.registry}, {ages}")


async def votes(subject: Subject) -> DoctorCheck:
    """Compare the registry that the votes contract names with the configured one."""
    network = subject.network
    if not network.votes:
        return none("none are configured")
    about = await _view(network.rpc_url, network.votes, "REGISTRY")
    if about is None or about != int(parse_address(network.registry), 16):
        return fail(f"the contract at {network.votes} has no votes on this registry")
    return ok(network.votes)


async def account(subject: Subject) -> DoctorCheck:
    """Read what the publishing account can spend."""
    network = subject.network
    if subject.config_error is not None or not has_account(subject.app):
        return none("there is none; capdex account new makes one")
    address = await account_address(subject.app)
    check_account(address, subject.chain_id)
    async with Rpc([network.rpc_url], max_attempts=1) as client:
        wei = await client.call("eth_getBalance", [address, "latest"], quantity)
    if wei == 0:
        result = f"{address} holds nothing on {network.name}"
        return fail(result, f"send some to {address}: it pays the fees")
    return ok(f"{address} holds {ether(wei)}")


def clock(subject: Subject) -> DoctorCheck:
    """Compare this machine's clock with the newest block's time."""
    age_s, public = time.time() - subject.block_time, subject.chain_id != DEV_CHAIN_ID
    if -age_s > SKEW_S:
        result = f"the newest block is {-age_s:.0f} s in the future"
        return fail(result) if public else warn(result)
    if public and age_s > QUIET_S:
        return warn(
            f"the newest block is {age_s / 60:.0f} minutes old",
            "the endpoint is behind, or this clock is ahead: compare with another endpoint",
        )
    return ok(f"the newest block is {max(0.0, age_s):.0f} s old")


async def signer(subject: Subject) -> DoctorCheck:
    """Look for the external signer's command, or call a method that needs no person's consent."""
    named = subject.settings.signer
    if not named:
        return none("keys are files here")
    if not named.startswith(("http://", "https://")):
        program, fix = shutil.which(ExternalSigner(named).shown), "correct signer, or install it"
        return ok(program) if program else fail("its command is not found", fix)
    request = {"jsonrpc": "2.0", "id": 1, "method": "web3_clientVersion", "params": []}
    headers = {"Content-Type": "application/json"}
    reply = await subject.http.request(
        "POST", named, body=orjson.dumps(request), headers=headers, max_bytes=MAX_BYTES
    )
    if reply.status in (401, 403):
        result = f"{redact(named)} answered {reply.status}"
        return fail(result, "correct the credentials in signer")
    url = urlsplit(named)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        return warn(
            f"{redact(named)} is used without encryption",
            "use https, or a tunnel: else others on the way can have anything signed",
        )
    return ok(redact(named))


async def node(subject: Subject) -> DoctorCheck:
    """Compare the node's registry with ours, and read how far behind the chain it is."""
    network = subject.network
    if not network.node_url:
        return none("node-url is not set")
    shown = redact(network.node_url)
    try:
        status = await node_client.status(network.node_url)
    except Unavailable as error:  # its message has the URL, which may contain a key
        return fail(f"{shown}: {error.why}")
    chain = status["chain"]
    theirs = (chain.get("chain_id"), str(chain.get("registry", "")).lower())
    ours = (network.chain_id, network.registry.lower())
    if all(ours) and theirs != ours:
        return fail(
            f"{shown} serves registry {str(chain.get('registry'))[:42]} on chain {theirs[0]}",
            "name a node of this network with node-url and mcp-url",
        )
    if status.get("status") != "ready":
        first = (list_of(status.get("because")) or [None])[0]
        code = object_of(first).get("code")
        return warn(f"{shown} is not ready: {str(code)[:40]}", "see its /status, or wait")
    lag_s = status.get("lag_seconds")
    if isinstance(lag_s, int | float) and lag_s > LAG_S:
        return warn(f"{shown} is {lag_s:.0f} s behind", "wait, or see its log")
    return ok(f"{shown} is at block {str(chain.get('block_number'))[:20]}")


async def _view(url: str, address: str, name: str) -> int | None:
    """Return what a contract's view without arguments returns as a number, or None."""
    selector = keccak(f"{name}()".encode("ascii"))[:4]
    try:
        async with Rpc([url], max_attempts=1) as client:
            word = await client.view(raw_address(address), selector)
    except RpcError as error:
        if not error.answered:
            raise
        return None
    return int.from_bytes(word, "big") if len(word) == 32 else None


_URLS_FIX: Final = (
    "see that it runs and is reachable, or correct CAPDEX_RPC_URLS: URLs with spaces between them, "
    "without quotes"
)
_RPC_FIX: Final = "see that it runs and is reachable, or name another with --rpc-url"
_CONTRACT_FIX: Final = "correct its address in this network, or deploy it: capdex deploy"
_of_chain: Final = partial(CheckRow, needs_rpc=True)
CHECKS: Final = (  # the first one is run before the others, which use what it found
    CheckRow("RPC", rpc, _RPC_FIX),
    _of_chain("chain id", chain_id, "correct the endpoint or the chain id of this network"),
    _of_chain("abilities", abilities, _RPC_FIX),
    CheckRow("node RPC", node_rpcs, _URLS_FIX),
    CheckRow("second RPC", second_rpc, "correct trust-rpc-url"),
    _of_chain("registry", registry, _CONTRACT_FIX),
    _of_chain("votes", votes, f"{_CONTRACT_FIX} --votes"),
    _of_chain("account", account, _RPC_FIX),
    _of_chain("clock", clock, "set the clock, and keep it by NTP (timedatectl set-ntp true)"),
    CheckRow("signer", signer, "see that it runs"),
    CheckRow("IPFS", ipfs, "start it (ipfs daemon), or use a directory: --ipfs dir:PATH"),
    CheckRow("gateway", gateway, "name a trustless gateway (Kubo's as 127.0.0.1): gateway-url"),
    CheckRow("node", node, "start one (capdex node, capdex up), or name another with node-url"),
)
