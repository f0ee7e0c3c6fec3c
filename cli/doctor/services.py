"""Checks of what is around the chain: signer, IPFS, gateway, node."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.ipld.cid import Cid
from capdex.net.rpc.client import redact
from cli.config.settings import Network
from cli.doctor.check import Check, fail, none, ok, warn
from cli.doctor.probe import Probe, Trouble

LAG_S: Final = 60  # a node that follows is some seconds behind
RAW_TYPE: Final = "application/vnd.ipld.raw"
EMPTY: Final = Cid.of(b"")  # the one block whose bytes everybody knows


async def signer(probe: Probe, named: str) -> Check:
    """The external signer: an http(s) URL that answers, or a command that is there.

    It is asked for nothing that a person would have to agree to.
    """
    if not named:
        return none("signer", "keys are files here")
    if not named.startswith(("http://", "https://")):
        words = shlex.split(named)
        program = shutil.which(words[0]) if words else None
        if program is None:
            return fail("signer", "its command is not found", "correct signer, or install it")
        return ok("signer", program)
    host = urlsplit(named).hostname or ""
    request = {"jsonrpc": "2.0", "id": 1, "method": "web3_clientVersion", "params": []}
    reply = await probe.ask("POST", named, json=request)
    if reply.status in (401, 403):
        return fail(
            "signer", f"{redact(named)} answered {reply.status}", "mend the credentials in signer"
        )
    if named.startswith("http://") and host not in ("127.0.0.1", "localhost", "::1"):
        return warn(
            "signer",
            f"{redact(named)} is asked without encryption",
            "use https, or a tunnel: whoever listens can have anything signed",
        )
    return ok("signer", redact(named))


async def ipfs(probe: Probe, spec: str) -> Check:
    """Where packages are published to."""
    from capdex.net.ipfs.kubo import Kubo
    from capdex.net.ipfs.open import open_storage

    if not spec:
        return none("IPFS", "ipfs is not set; publishing needs it")
    storage = open_storage(spec)
    try:
        if not isinstance(storage, Kubo):
            return _directory(spec.removeprefix("dir:"))
        url = storage.base_url
    finally:
        await storage.close()
    reply = await probe.ask("POST", f"{url}/api/v0/version")
    found: Any = reply.json() if reply.status == 200 else None
    if not isinstance(found, dict) or "Version" not in found:
        raise Trouble(f"{redact(url)} answered {reply.status}, and not as Kubo's RPC")
    return ok("IPFS", f"Kubo {str(found['Version'])[:40]} at {redact(url)}")


def _directory(text: str) -> Check:
    path = Path(text).expanduser()
    place = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return fail("IPFS", f"{place} cannot be written", "mend its permissions, or name another")
    return ok("IPFS", f"{path}{'' if path.exists() else ', made when first used'}")


async def gateway(probe: Probe, url: str) -> Check:
    """Whether the gateway gives raw blocks, by the one that everybody can check: the empty one."""
    name, fix = "gateway", "name a trustless gateway: gateway-url"
    if not url:
        return none(name, "gateway-url is not set")
    shown = redact(url)
    reply = await probe.ask("GET", f"{url}/ipfs/{EMPTY}?format=raw", headers={"Accept": RAW_TYPE})
    kind = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if reply.status == 200 and kind == RAW_TYPE and EMPTY.matches(reply.body):
        return ok(name, f"{shown} gave a block, and its hash is right")
    if reply.status == 200:
        return fail(name, f"{shown} answered with something that is not the block", fix)
    if reply.status in (404, 410, 412, 504):
        return ok(name, f"{shown} answers, and does not hold the block that was asked for")
    return fail(name, f"{shown} answered {reply.status}", fix)


async def node(probe: Probe, network: Network | None) -> Check:
    """The node that is asked: whether it follows this registry, and how far behind it is."""
    if network is None or not network.node_url:
        return none("node", "node-url is not set")
    shown = redact(network.node_url)
    reply = await probe.ask("GET", f"{network.node_url}/status")
    said = reply.json()
    chain: Any = said.get("chain") if isinstance(said, dict) else None
    if reply.status != 200 or not isinstance(chain, dict):
        raise Trouble(f"{shown} answered {reply.status}, and not as a capdex node")
    theirs = (chain.get("chain_id"), str(chain.get("registry", "")).lower())
    ours = (network.chain_id, network.registry.lower())
    if None not in ours and all(ours) and theirs != ours:
        return fail(
            "node",
            f"{shown} serves registry {str(chain.get('registry'))[:42]} on chain {theirs[0]}",
            "name a node of this network with node-url and mcp-url",
        )
    lag_s = said.get("lag_seconds")
    if said.get("status") != "ready":
        because = said.get("because")
        first = because[0] if isinstance(because, list) and because else {}
        code = first.get("code") if isinstance(first, dict) else None
        return warn("node", f"{shown} is not ready: {str(code)[:40]}", "see its /status, or wait")
    if isinstance(lag_s, int | float) and lag_s > LAG_S:
        return warn("node", f"{shown} is {lag_s:.0f} s behind", "wait, or see its log")
    return ok("node", f"{shown} is at block {str(chain.get('block_number'))[:20]}")
