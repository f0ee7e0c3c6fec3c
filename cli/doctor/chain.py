"""Checks of the chain: its endpoints, the contracts, the account, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from capdex.net.rpc.client import redact
from cli.config.settings import Network
from cli.doctor.check import Check, bounded, fail, none, ok, warn
from cli.doctor.probe import Probe, Reply, number

DEV_CHAIN_ID: Final = 31337
SKEW_S: Final = 60  # what a commitment's age may be misjudged by without harm
QUIET_S: Final = 600  # no public chain rests that long
RPC_FIX: Final = "see that it runs and is reachable, or name another with --rpc-url"


@dataclass(frozen=True, slots=True)
class Head:
    """What the endpoint said of itself: chain id, newest block, and the reply's own date."""

    chain_id: int
    number: int
    timestamp: int
    took_s: float
    reply: Reply


async def checks(
    probe: Probe, network: Network | None, account: Callable[[], Awaitable[str]] | None
) -> list[Check]:
    """All checks of the chain; those that need an endpoint apply only when it answers."""
    names = ("RPC", "chain id", "second RPC", "registry", "votes", "account", "clock")
    if network is None or not network.rpc_url:
        first = (
            warn("RPC", "no network is chosen", "run `capdex up` here, or choose one: --network")
            if network is None
            else warn(
                "RPC",
                f"{network.name} has no rpc-url",
                f"set CAPDEX_RPC_URL, or rpc-url in [networks.{network.name}]",
            )
        )
        return [first, *(none(name, "needs an RPC endpoint") for name in names[1:])]
    heads: list[Head] = []
    second = asyncio.create_task(
        bounded("second RPC", second_endpoint(probe, network), fix="correct trust-rpc-url")
    )
    first = await bounded("RPC", endpoint(probe, network, heads), fix=RPC_FIX)
    if not heads:
        rest = [none(name, "needs the RPC endpoint") for name in names[3:]]
        return [first, none("chain id", "needs the RPC endpoint"), await second, *rest]
    head = heads[0]
    return [
        first,
        chain_id(network, head),
        *await asyncio.gather(
            second,
            bounded("registry", registry(probe, network), fix=RPC_FIX),
            bounded("votes", votes(probe, network), fix=RPC_FIX),
            bounded("account", balance(probe, network, head, account), fix=RPC_FIX),
        ),
        clock(head, time.time()),
    ]


async def endpoint(probe: Probe, network: Network, heads: list[Head]) -> Check:
    """Whether the endpoint answers; what it says goes into `heads`."""
    began = time.monotonic()
    found, reply = await probe.rpc(network.rpc_url, "eth_chainId")
    took_s = time.monotonic() - began
    block, _ = await probe.rpc(network.rpc_url, "eth_getBlockByNumber", "latest", False)
    if not isinstance(block, dict):
        return fail("RPC", f"{redact(network.rpc_url)} knows no newest block", RPC_FIX)
    head = Head(
        number(found), number(block.get("number")), number(block.get("timestamp")), took_s, reply
    )
    heads.append(head)
    return ok("RPC", f"{redact(network.rpc_url)} is at block {head.number}, {took_s * 1000:.0f} ms")


def chain_id(network: Network, head: Head) -> Check:
    """Whether the endpoint speaks for the chain that is meant."""
    if network.chain_id is None:
        return warn(
            "chain id",
            f"{head.chain_id}, and none is configured to compare it with",
            f"set chain-id = {head.chain_id} in [networks.{network.name}] if that is the one",
        )
    if head.chain_id != network.chain_id:
        return fail(
            "chain id",
            f"the endpoint speaks for chain {head.chain_id}, {network.name} is {network.chain_id}",
            "correct the endpoint or the chain id of this network",
        )
    return ok("chain id", f"{head.chain_id}")


async def second_endpoint(probe: Probe, network: Network) -> Check:
    """The endpoint that proofs are checked against."""
    name = "second RPC"
    if not network.trust_rpc_url:
        return none(name, "trust-rpc-url is not set; proofs need it")
    found, _ = await probe.rpc(network.trust_rpc_url, "eth_chainId")
    shown = redact(network.trust_rpc_url)
    if network.chain_id not in (None, number(found)):
        return fail(name, f"{shown} speaks for chain {number(found)}", "correct trust-rpc-url")
    if urlsplit(network.trust_rpc_url).hostname == urlsplit(network.rpc_url).hostname:
        return warn(
            name,
            f"{shown} is the host that rpc-url names",
            "take another operator's endpoint: one alone can agree with itself",
        )
    return ok(name, shown)


async def registry(probe: Probe, network: Network) -> Check:
    """Whether the registry stands where it is said to, and how names are claimed there."""
    address, name = network.registry, "registry"
    if not address:
        return none(name, "no registry is configured")
    if not await _has_code(probe, network, address):
        return fail(
            name,
            f"nothing stands at {address}",
            f"correct the registry of {network.name}, or put one there: capdex deploy",
        )
    low, high = await asyncio.gather(
        *(
            probe.view(network.rpc_url, address, f"{which}_COMMITMENT_AGE")
            for which in ("MIN", "MAX")
        )
    )
    if low is None or high is None:
        return fail(
            name,
            f"what stands at {address} is no capdex registry",
            f"correct the registry of {network.name}",
        )
    if low == 0 and network.chain_id != DEV_CHAIN_ID:
        return warn(
            name,
            f"{address} takes claims without a commitment",
            "anybody can copy a claim before it is mined: use the usual registry",
        )
    how = f"commitments of {low} to {high} s" if low else "claims without commitments"
    return ok(name, f"{address}, {how}")


async def votes(probe: Probe, network: Network) -> Check:
    """Whether the votes are those on this registry's names."""
    if not network.votes:
        return none("votes", "none are configured")
    fix = f"correct the votes of {network.name}, or put them there: capdex deploy --votes"
    if not await _has_code(probe, network, network.votes):
        return warn("votes", f"nothing stands at {network.votes}", fix)
    about = await probe.view(network.rpc_url, network.votes, "REGISTRY")
    try:
        wanted = int(network.registry, 16)
    except ValueError:
        wanted = None
    if about is None or about != wanted:
        return fail("votes", f"{network.votes} is not about this registry", fix)
    return ok("votes", network.votes)


async def balance(
    probe: Probe, network: Network, head: Head, account: Callable[[], Awaitable[str]] | None
) -> Check:
    """What the publishing account can spend."""
    if account is None:
        return none("account", "there is none; capdex account new makes one")
    from publisher.keys.keystore import check_account

    address = await account()
    check_account(address, head.chain_id)
    found, _ = await probe.rpc(network.rpc_url, "eth_getBalance", address, "latest")
    wei = number(found)
    if wei == 0:
        return fail(
            "account",
            f"{address} holds nothing on {network.name}",
            f"send some to {address}: it pays the fees",
        )
    return ok("account", f"{address} holds {wei / 10**18:.4g} ether")


def clock(head: Head, now: float) -> Check:
    """This machine's clock against the endpoint's and the chain's."""
    fix = "set the clock, and keep it by NTP (timedatectl set-ntp true)"
    skew_s = _date_of(head.reply) - now if _date_of(head.reply) else 0.0
    if abs(skew_s) > SKEW_S:
        words = "behind" if skew_s > 0 else "ahead of"
        return fail("clock", f"{abs(skew_s):.0f} s {words} the endpoint's", fix)
    ahead_s = head.timestamp - now
    public = head.chain_id != DEV_CHAIN_ID
    if ahead_s > SKEW_S:
        words = f"the newest block is {ahead_s:.0f} s in the future"
        return fail("clock", words, fix) if public else warn("clock", words, fix)
    if public and -ahead_s > QUIET_S:
        return warn(
            "clock",
            f"the newest block is {-ahead_s / 60:.0f} minutes old",
            "the endpoint is behind, or this clock is ahead: compare with another endpoint",
        )
    return ok("clock", f"the newest block is {max(0.0, -ahead_s):.0f} s old")


async def _has_code(probe: Probe, network: Network, address: str) -> bool:
    code, _ = await probe.rpc(network.rpc_url, "eth_getCode", address, "latest")
    return isinstance(code, str) and len(code) > 2


def _date_of(reply: Reply) -> float:
    """The epoch seconds of a reply's Date header; 0 without one."""
    try:
        return parsedate_to_datetime(reply.headers.get("Date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
