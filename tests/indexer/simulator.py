"""An EVM chain with one registry, simulated at the RPC seam: editable, and able to misbehave.

`sim.publish(3)` mines a block with three events, `sim.reorg(2)` replaces the last two blocks,
`sim.once("eth_getLogs", fault)` bends one answer. It serves JSON-RPC over loopback HTTP.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from eth_abi import encode
from eth_hash.auto import keccak

from capdex.ipld.cid import Cid
from capdex.registry.events import PUBLISHED
from capdex.registry.logs import LogHead, LogPosition, RawLog

REGISTRY = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
PUBLISHER = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


def made_at(number: int) -> int:
    """When a block was made."""
    return 1_700_000_000 + number


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}


@dataclass(frozen=True)
class SimBlock:
    number: int
    hash: bytes
    parent: bytes
    logs: tuple[RawLog, ...]
    log_head: LogHead

    @property
    def bloom(self) -> bytes:
        bits = 0
        for item in (x for log in self.logs for x in (log.address, *log.topics)):
            digest = keccak(item)
            for i in (0, 2, 4):
                bits |= 1 << (int.from_bytes(digest[i : i + 2], "big") & 2047)
        return bits.to_bytes(256, "big")

    def to_json(self) -> dict[str, Any]:
        return {
            "number": hex(self.number),
            "hash": "0x" + self.hash.hex(),
            "parentHash": "0x" + self.parent.hex(),
            "timestamp": hex(made_at(self.number)),
            "logsBloom": "0x" + self.bloom.hex(),
        }


Bend = Callable[[Any], Any]


@dataclass
class SimulatedChain:
    chain_id: int = 1
    registry: bytes = REGISTRY
    finalized: int | None = None  # without a number the chain has no such tag
    visible: int | None = None  # a lagging endpoint shows blocks up to here only
    serves_state: bool = True
    keeps_states: int | None = None  # of that many newest blocks alone
    logs_by_hash: bool = True
    null_logs: bool = False  # where there are none
    pending_log: bool = False  # one more in each list, of no block
    deployed: int = 0  # the first block with the registry's code
    full_blooms: bool = False
    max_logs: int | None = None
    max_blocks: int | None = None
    too_wide: tuple[int, str] | None = None  # code and words for more blocks than `max_blocks`
    wide_reply: tuple[int, bytes] | None = None  # HTTP status and body for them instead
    cuts_at: int | None = None  # logs of one reply; the rest is left out without a word
    refused_tags: int = 0  # how often the tag is refused though the chain has it
    no_tag: tuple[int, str] = (-32000, "'finalized' tag not supported on pre-merge network")
    missing: frozenset[str] = frozenset()  # abilities, as `Abilities` names them
    client: str = "Simulated/1"
    syncing: Any = False
    log_time: Callable[[int], Any] | None = None  # what logs say of when their block was made
    package: Callable[[str], bytes] | None = None  # of a name; without it nobody has any bytes
    blocks: list[SimBlock] = field(default_factory=list)
    tagged: list[SimBlock] | None = None  # blocks of another node, which gives the tag
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._salt, self._name = itertools.count(), itertools.count()
        self._bends: dict[str, list[Bend]] = defaultdict(list)
        self._responses: list[Callable[[], web.Response]] = []
        self._refused: dict[int, Refusal] = {}
        self.mine()

    # ------------------------------------------------------------------------------- editing

    @property
    def head(self) -> SimBlock:
        return self.blocks[-1]

    @property
    def logs(self) -> list[RawLog]:
        return [log for block in self.blocks for log in block.logs]

    def mine(self, blocks: int = 1) -> None:
        for _ in range(blocks):
            self._append(0)

    def publish(self, events: int = 1) -> None:
        self._append(events)

    def reorg(self, depth: int, events: int = 1) -> None:
        """Replace the last `depth` blocks; the first new one holds `events` events."""
        del self.blocks[-depth:]
        self.publish(events)
        self.mine(depth - 1)

    def _append(self, events: int) -> None:
        number = len(self.blocks)
        parent = self.head.hash if self.blocks else bytes(32)
        slot = self.head.log_head if self.blocks else LogHead()
        salt = next(self._salt).to_bytes(8, "big")
        hash_ = keccak(parent + salt + events.to_bytes(4, "big"))
        logs = []
        for index in range(events):
            name = f"pkg-{next(self._name)}"
            cid = Cid.of(self.package(name)) if self.package else Cid.raw(keccak(name.encode()))
            values = (slot.count + 1, f"did:nuwa:cap:{name}@1.0.0", "1.0.0")
            data = encode(
                ["uint64", "string", "string", "string", "bytes32"],
                [*values, cid.text, cid.digest],
            )
            topics = (PUBLISHED, keccak(name.encode()), bytes(12) + PUBLISHER)
            at = LogPosition(number, hash_, keccak(hash_ + bytes([index % 256])), index)
            log = RawLog(self.registry, topics, data, at)
            logs.append(log)
            slot = slot.fold(log)
        self.blocks.append(SimBlock(number, hash_, parent, tuple(logs), slot))

    # --------------------------------------------------------------------------- misbehaving

    def once(self, method: str, bend: Bend, times: int = 1) -> None:
        """Pass the next results of `method` (not empty lists) through `bend`."""
        self._bends[method] += [bend] * times

    def refuse_once(self, method: str, code: int, message: str) -> None:
        """Answer the next call of `method` with this JSON-RPC error."""

        def bend(result: Any) -> Any:
            raise Refusal(code, message)

        self.once(method, bend)

    def refuse_block(self, number: int, code: int, message: str) -> None:
        """Answer no call for logs of this block, ever."""
        self._refused[number] = Refusal(code, message)

    def respond_once(self, response: Callable[[], web.Response], times: int = 1) -> None:
        """Answer the next requests with this HTTP response."""
        self._responses += [response] * times

    # -------------------------------------------------------------------------------- serving

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/", self._serve)
        return app

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self._responses:
            return self._responses.pop(0)()
        status, reply = self.answer(body)
        return web.Response(status=status, body=reply, content_type="application/json")

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """The HTTP status and the body of the reply to a request."""
        asked = orjson.loads(body)
        calls = asked if isinstance(asked, list) else [asked]
        if self.wide_reply is not None and any(map(self.is_wide, calls)):
            return self.wide_reply
        replies = [self._reply(call) for call in calls]
        return 200, orjson.dumps(replies if isinstance(asked, list) else replies[0])

    def _reply(self, call: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(call["method"])
        reply = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            method = getattr(self, "_" + call["method"], None)
            if method is None or self._lacks(call):
                raise Refusal(-32601, "the method does not exist")
            result = method(*call["params"])
            if self._bends[call["method"]] and result != []:
                result = self._bends[call["method"]].pop(0)(result)
            reply["result"] = result
        except Refusal as refusal:
            reply["error"] = refusal.error
        return reply

    def is_wide(self, call: dict[str, Any]) -> bool:
        """Whether a call is for the logs of more blocks than `max_blocks`."""
        query = call["params"][0] if call["method"] == "eth_getLogs" else {}
        if "fromBlock" not in query or self.max_blocks is None:
            return False
        return int(query["toBlock"], 16) - int(query["fromBlock"], 16) >= self.max_blocks

    def _lacks(self, call: dict[str, Any]) -> bool:
        """Whether the call needs an ability that is in `missing`."""
        method, params = call["method"], call["params"]
        newest = hex(len(self._shown) - 1)
        needs = {
            "genesis": method == "eth_getBlockByNumber" and params[0] == "0x0",
            "block_1": method == "eth_getBlockByNumber" and params[0] == "0x1",
            "finalized": method == "eth_getBlockByNumber" and params[0] == "finalized",
            "newest_logs": method == "eth_getLogs" and params[0].get("toBlock") == newest,
            "logs_by_hash": method == "eth_getLogs" and "blockHash" in params[0],
            "calls_by_hash": method == "eth_call" and isinstance(params[1], dict),
            "cancun": method == "eth_call" and params[0].get("data") == "0x5f5f5f5e00",
            "proofs": method == "eth_getProof",
        }
        return any(needs[name] for name in self.missing)

    def _web3_clientVersion(self) -> str:  # noqa: N802
        return self.client

    def _eth_syncing(self) -> Any:
        return self.syncing

    def _eth_getProof(self, address: str, keys: list[str], block: str) -> Any:  # noqa: N802
        return {"accountProof": [], "storageProof": []}

    @property
    def _shown(self) -> list[SimBlock]:
        return self.blocks if self.visible is None else self.blocks[: self.visible + 1]

    def _eth_chainId(self) -> str:  # noqa: N802
        return hex(self.chain_id)

    def _eth_getCode(self, address: str, block: str) -> str:  # noqa: N802
        stands = block == "latest" or int(block, 16) >= self.deployed
        return "0x6001" if stands and address == "0x" + self.registry.hex() else "0x"

    def _eth_getBlockByNumber(self, tag: str, full: bool) -> dict[str, Any] | None:  # noqa: N802
        refused = tag == "finalized" and self.refused_tags > 0
        self.refused_tags -= refused
        if refused or (tag == "finalized" and self.finalized is None):
            raise Refusal(*self.no_tag)
        named = {"latest": len(self._shown) - 1, "finalized": self.finalized or 0}
        number = named[tag] if tag in named else int(tag, 16)
        # of another node, as vendors' are
        shown = (self.tagged or self.blocks) if tag == "finalized" else self._shown
        if number >= len(shown):
            return None
        bloom = {"logsBloom": "0x" + "ff" * 256} if self.full_blooms else {}
        return shown[number].to_json() | bloom

    def _eth_getBlockByHash(self, hash_: str, full: bool) -> dict[str, Any] | None:  # noqa: N802
        shown = (block.to_json() for block in self._shown)
        return next((block for block in shown if block["hash"] == hash_), None)

    def _eth_blockNumber(self) -> str:  # noqa: N802
        return hex(len(self._shown) - 1)

    def _block(self, hash_: str) -> SimBlock:
        for block in self._shown:
            if "0x" + block.hash.hex() == hash_:
                return block
        raise Refusal(-32000, "unknown block")

    def _eth_getLogs(self, query: dict[str, str]) -> list[dict[str, Any]]:  # noqa: N802
        if "blockHash" in query:
            if not self.logs_by_hash:
                raise Refusal(-32602, "invalid argument 0: blockHash is not supported")
            blocks = [self._block(query["blockHash"])]
        else:
            first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
            if last >= len(self._shown):
                raise Refusal(-32602, f"BlockOutOfRangeError: block height is {len(self._shown)}")
            if self.max_blocks is not None and last - first + 1 > self.max_blocks:
                words = f"eth_getLogs is limited to a {self.max_blocks:,} range"
                raise Refusal(*(self.too_wide or (-32614, words)))
            blocks = self._shown[first : last + 1]
        for block in blocks:
            if block.number in self._refused:
                raise self._refused[block.number]
        logs = [log for block in blocks for log in block.logs]
        if self.max_logs is not None and len(logs) > self.max_logs:
            raise Refusal(-32005, f"query returned more than {self.max_logs} results")
        shown = [self._log_json(log) for log in logs[: self.cuts_at]]
        if self.pending_log:
            of_none = dict.fromkeys(("blockNumber", "blockHash", "transactionHash", "logIndex"))
            shown.append({"address": query["address"], "topics": [], "data": "0x", **of_none})
        return shown or (None if self.null_logs else [])  # type: ignore[return-value]

    def _eth_call(self, call: dict[str, str], at: Any) -> str:
        if not self.serves_state:
            raise Refusal(-32000, "missing trie node")
        if call.get("to") != "0x" + self.registry.hex():
            return "0x"
        block = self._block(at["blockHash"]) if isinstance(at, dict) else self._shown[int(at, 16)]
        if self.keeps_states and block.number <= self._shown[-1].number - self.keeps_states:
            raise Refusal(-32602, f"BlockOutOfRangeError: requested was {block.number}")
        slot = block.log_head
        return "0x" + (slot.head + bytes(8) + bytes(24) + slot.count.to_bytes(8, "big")).hex()

    def _log_json(self, log: RawLog) -> dict[str, Any]:
        time = self.log_time and self.log_time(log.position.block_number)
        return _log_json(log) | ({} if time is None else {"blockTimestamp": time})


def _log_json(log: RawLog) -> dict[str, Any]:
    return {
        "address": "0x" + log.address.hex(),
        "topics": ["0x" + topic.hex() for topic in log.topics],
        "data": "0x" + log.data.hex(),
        "blockNumber": hex(log.position.block_number),
        "blockHash": "0x" + log.position.block_hash.hex(),
        "transactionHash": "0x" + log.position.tx_hash.hex(),
        "logIndex": hex(log.position.log_index),
        "removed": False,
    }
