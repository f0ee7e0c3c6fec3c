"""Builders for the store's tests: an editable chain of registry events, and signed packages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_abi import encode
from eth_hash.auto import keccak

from capdex import did, package, signing
from capdex.encoding.abi import checksum_address
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.registry import events
from capdex.registry.logs import BlockRef, LogHead, LogPosition, RawLog
from capdex.uri import PREFIX
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import Deployment, Job, Store

CHAIN_ID = 31337
REGISTRY = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
PUBLISHER = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
OTHER = bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")
DEPLOYMENT = Deployment(CHAIN_ID, checksum_address(REGISTRY), 0, b"\x11" * 32)

BEGINNING = LogHead()

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
AUTHOR = did.did_url(did.did_key(KEY.public_key().public_bytes_raw()))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)


@cache
def _signed(document: str, key: Ed25519PrivateKey, publisher: str | None) -> bytes:
    author = did.did_url(did.did_key(key.public_key().public_bytes_raw()))
    data = signing.prepare(document.encode(), author=author, publisher=publisher)
    uri = yaml.safe_load(document)["metadata"]["id"]
    message = signing.signing_input(data, uri)
    return signing.attach(data, signing.sign_ed25519(key, message))


def package_bytes(
    name: str = "note",
    version: str = "1.0.0",
    *,
    publisher: bytes | None = PUBLISHER,
    tools: Iterable[dict[str, Any]] = (),
    schema_uri: str | None = None,
    bindings: Mapping[str, dict[str, Any]] | None = None,
    unbound: Collection[str] = (),
    prompt: str | None = "Do it.",
    chain_id: int | None = None,
    files: Mapping[str, bytes] | None = None,
    key: Ed25519PrivateKey = KEY,
    **metadata: Any,
) -> bytes:
    """A signed package bound to `publisher` (None: not bound); metadata fields by keyword.

    Tools that neither `bindings` nor `unbound` names are bound to a web address.
    """
    schema_uri = schema_uri or f"did:nuwa:state:{name}#v1"
    document: dict[str, Any] = {
        "metadata": {
            "id": f"{PREFIX}{name}@{version}",
            "name": metadata.pop("title", name.title()),
            "description": f"What {name} does.",
            **metadata,
        },
        "schema": json.dumps({"$id": schema_uri, "type": "object"}),
        "prompt": prompt,
        "tools": [{"type": "function", "function": tool} for tool in tools],
        "tool_bindings": {
            tool["name"]: {"type": "http_get", "url": "https://tools.example.org/do"}
            for tool in tools
            if tool["name"] not in unbound
        }
        | dict(bindings or {}),
    }
    if prompt is None:
        del document["prompt"]
    if files:
        document["resources"] = [file_row(path, data) for path, data in files.items()]
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    return signed(text, publisher, chain_id, key)


def file_row(path: str, data: bytes) -> dict[str, Any]:
    """A file of a package as its section `resources` names it."""
    cid = divide(data)[0][0]
    digest = hashlib.sha256(data).hexdigest()
    row = {"path": path, "cid": str(cid), "sha256": digest, "size": len(data)}
    return row | {"media_type": "text/plain", "executable": data.startswith(b"#!")}


def signed(
    document: str,
    publisher: bytes | None = PUBLISHER,
    chain_id: int | None = None,
    key: Ed25519PrivateKey = KEY,
) -> bytes:
    """A package, signed by an author of the tests and bound to `publisher` (None: not bound)."""
    account = did.caip10(chain_id or CHAIN_ID, checksum_address(publisher)) if publisher else None
    return _signed(document, key, account)


def tool(name: str, description: str = "It does something.", **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": x} for key, x in parameters.items()}
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "parameters": schema}


@dataclass
class Block:
    ref: BlockRef
    logs: tuple[RawLog, ...] = ()


@dataclass
class Chain:
    """A chain of blocks with the registry's logs; `packages` are the bytes by their sha256."""

    blocks: list[Block] = field(default_factory=list)
    packages: dict[bytes, bytes] = field(default_factory=dict)
    salt: int = 0

    def __post_init__(self) -> None:
        self.mine()

    @property
    def head(self) -> BlockRef:
        return self.blocks[-1].ref

    @property
    def logs(self) -> list[RawLog]:
        return [log for block in self.blocks for log in block.logs]

    def mine(self, *bodies: tuple[bytes, bytes, bytes, Any]) -> BlockRef:
        """Add a block with these events (as `published` and `yanked` make them)."""
        number = len(self.blocks)
        self.salt += 1
        block_hash = keccak(b"block %d %d" % (number, self.salt))
        parent = self.blocks[-1].ref.hash if self.blocks else bytes(32)
        count = len(self.logs)
        logs = []
        for i, (topic, name_id, account, body) in enumerate(bodies):
            data = body if isinstance(body, bytes) else encode(body[0], (count + i + 1, *body[1]))
            topics = (topic, name_id, account.rjust(32, b"\0"))
            where = LogPosition(number, block_hash, keccak(block_hash + bytes([i % 256])), i)
            logs.append(RawLog(REGISTRY, topics, data, where))
        ref = BlockRef(number, block_hash, parent, 1_700_000_000 + number)
        self.blocks.append(Block(ref, tuple(logs)))
        return ref

    def publish(self, name: str = "note", version: str = "1.0.0", **options: Any) -> BlockRef:
        """Mine one block in which a signed package is announced; options of `package_bytes`."""
        return self.mine(self.release(name, version, **options))

    def release(
        self,
        name: str = "note",
        version: str = "1.0.0",
        *,
        data: bytes | None = None,
        publisher: bytes = PUBLISHER,
        bound: bool = True,
        cid: Callable[[bytes], str] | None = None,
        **options: Any,
    ) -> tuple[bytes, bytes, bytes, Any]:
        """The announcement of a signed package, whose bytes are kept in `packages`."""
        if data is None:
            account = publisher if bound else None
            data = package_bytes(name, version, publisher=account, **options)
        digest = hashlib.sha256(data).digest()
        self.packages[digest] = data
        named = None if cid is None else cid(data)
        return published(name, version, digest=digest, publisher=publisher, cid=named)

    def fork(self, depth: int) -> BlockRef:
        """Drop the newest blocks; the block that is the head then."""
        del self.blocks[len(self.blocks) - depth :]
        return self.head

    def step(self, after: BlockRef | None = None, upto: BlockRef | None = None) -> BlockRange:
        """What a reader hands over, following the cursor at `after`."""
        first = after.number + 1 if after else 0
        last = upto.number if upto else self.head.number
        some = self.blocks[first : last + 1]
        log_rows = LogRows.of(log for block in some for log in block.logs)
        times = {block.ref.number: block.ref.timestamp for block in some}
        refs = tuple(block.ref for block in some)
        return BlockRange(log_rows, times, refs, some[-1].ref, self.head.number, max(0, last - 2))


def published(
    name: str = "note",
    version: str = "1.0.0",
    *,
    digest: bytes = b"\x22" * 32,
    publisher: bytes = PUBLISHER,
    cap_uri: str | None = None,
    cid: str | None = None,
    name_id: bytes | None = None,
) -> tuple[bytes, bytes, bytes, Any]:
    """A `Published` event; any part of it may be a lie."""
    values = (
        f"{PREFIX}{name}@{version}" if cap_uri is None else cap_uri,
        version,
        str(Cid.raw(digest)) if cid is None else cid,
        digest,
    )
    body = (("uint64", "string", "string", "string", "bytes32"), values)
    return events.PUBLISHED, name_id or keccak(name.encode()), publisher, body


def yanked(
    name: str = "note", version: str = "1.0.0", reason: str = "broken"
) -> tuple[bytes, bytes, bytes, Any]:
    body = (("uint64", "string", "string", "string"), (name, version, reason))
    return events.TOPICS["Yanked"], keccak(name.encode()), PUBLISHER, body


def unyanked(name: str = "note", version: str = "1.0.0") -> tuple[bytes, bytes, bytes, Any]:
    body = (("uint64", "string", "string"), (name, version))
    return events.TOPICS["Unyanked"], keccak(name.encode()), PUBLISHER, body


def deprecated(
    name: str = "note", version: str = "1.0.0", message: str = "old"
) -> tuple[bytes, bytes, bytes, Any]:
    body = (("uint64", "string", "string", "string"), (name, version, message))
    return events.TOPICS["Deprecated"], keccak(name.encode()), PUBLISHER, body


def undeprecated(name: str = "note", version: str = "1.0.0") -> tuple[bytes, bytes, bytes, Any]:
    body = (("uint64", "string", "string"), (name, version))
    return events.TOPICS["Undeprecated"], keccak(name.encode()), PUBLISHER, body


def name_deprecated(
    name: str = "note", message: str = "unmaintained", replaced_by: str = ""
) -> tuple[bytes, bytes, bytes, Any]:
    body = (("uint64", "string", "string", "string"), (name, message, replaced_by))
    return events.TOPICS["NameDeprecated"], keccak(name.encode()), PUBLISHER, body


def of_name(kind: str, name: str = "note", **fields: Any) -> tuple[bytes, bytes, bytes, Any]:
    """An event that says a name and, by ABI type, one thing more or nothing."""
    body = (("uint64", "string", *fields), (name, *fields.values()))
    return events.TOPICS[kind], keccak(name.encode()), PUBLISHER, body


def committed(commitment: bytes = b"\x77" * 32) -> tuple[bytes, bytes, bytes, Any]:
    return events.TOPICS["Committed"], commitment, PUBLISHER, (("uint64", "uint64"), (1,))


def heads(step: BlockRange, log: LogHead = BEGINNING) -> list[LogHead]:
    """The log slot after each log of a step that follows the slot `log`, whatever it claims."""
    found = []
    for one in step.log_rows.logs:
        log = log.fold(one)
        found.append(log)
    return found


def append(store: Store, chain: Chain, upto: BlockRef | None = None) -> None:
    """Apply what the chain has beyond the store's cursor."""
    cursor = store.cursor()
    step = chain.step(cursor.block if cursor else None, upto)
    store.append(step, heads(step, cursor.log_head if cursor else BEGINNING))


def judge(chain: Chain, job: Job) -> Judgement:
    return Judgement.of(package.judge(job.announcement, chain.packages[job.announcement.sha256]))


def fetch(store: Store, chain: Chain, limit: int = 1000) -> None:
    """Judge and record everything that is due and whose bytes there are."""
    for job in store.due(1e12, limit):
        if job.announcement.sha256 in chain.packages:
            store.record_many([(job.release_id, judge(chain, job))])


def follow(store: Store, chain: Chain) -> None:
    """Append everything, then fetch everything."""
    append(store, chain)
    fetch(store, chain)


def fill(url: str, chain: Chain, blocks: Path) -> None:
    """Index a chain, and keep its packages in a directory of blocks."""
    store = Store.open(url, DEPLOYMENT)
    try:
        follow(store, chain)
    finally:
        store.close()
    directory = BlockDirectory(blocks)
    for data in chain.packages.values():
        directory.write(data)


def lasting(chain: Chain, name: str) -> Judgement:
    """What is found of a package that is verified once, for any number of versions."""
    data = package_bytes(name, "1.0.0")
    digest = hashlib.sha256(data).digest()
    chain.packages[digest] = data
    announcement = events.Announcement(
        CHAIN_ID,
        checksum_address(PUBLISHER),
        f"{PREFIX}{name}@1.0.0",
        "1.0.0",
        str(Cid.raw(digest)),
        digest,
    )
    return Judgement.of(package.judge(announcement, data))
