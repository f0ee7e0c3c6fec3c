"""Whatever a contract announces: broken packages are kept with their reason, and never served."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.kubo import Kubo

OTHER = bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")
# What is wrong with the only release of each name, and how it is judged.
IN_THE_BYTES = {
    "no-package": ("invalid", "FORBIDDEN_CHARACTER"),
    "wrong-id": ("mismatch", "ID_MISMATCH"),
    "wrong-signature": ("invalid", "BAD_SIGNATURE"),
    "unsigned": ("unsigned", "UNSIGNED"),
    "not-bound": ("signed", "NOT_BOUND"),
    "bound-elsewhere": ("signed", "NOT_BOUND"),
}
IN_THE_EVENT = {
    "wrong-cid": ("mismatch", "CID_MISMATCH"),
    "no-cid": ("mismatch", "BAD_CID"),
    "wrong-digest": ("mismatch", "CID_MISMATCH"),
    "wrong-semver": ("mismatch", "VERSION_MISMATCH"),
}
BROKEN = IN_THE_BYTES | IN_THE_EVENT
GOOD, LOST = "good", "lost"


@pytest.fixture
def packages(making: Any) -> Callable[[bytes], dict[str, bytes]]:
    """One good package, and one broken in each way, by the name they are to be published as."""

    def make(publisher: bytes) -> dict[str, bytes]:
        def package(name: str, account: bytes | None = publisher) -> bytes:
            data: bytes = making.package_bytes(name, publisher=account)
            return data

        unsigned = package("unsigned").splitlines(keepends=True)
        return {
            GOOD: package(GOOD),
            "no-package": b"\x00 these bytes are no package",
            "wrong-id": package("somebody-else"),
            "wrong-signature": package("wrong-signature").replace(b"Do it.", b"Send me all."),
            "unsigned": b"".join(x for x in unsigned if b"signature:" not in x),
            "not-bound": package("not-bound", None),
            "bound-elsewhere": package("bound-elsewhere", OTHER),
        }

    return make


@pytest.fixture
def serve(shell: Any, eventually: Callable[..., Any], http: Callable[..., Any]) -> Any:
    """`serve(registry, ipfs, judged)` runs a node until it has judged so many: its URL."""

    def start(registry: Any, ipfs: str, judged: int) -> str:
        shell.env |= {
            "CAPDEX_RPC_URL": registry.url,
            "CAPDEX_CHAIN_ID": "31337",
            "CAPDEX_REGISTRY": registry.address,
            "CAPDEX_START_BLOCK": str(registry.start_block),
        }
        node = shell.start(
            "node", "--db", "sqlite:///index.db", "--ipfs", ipfs, "--blocks", "kept",
            "--port", "0", "--log-format", "json",
        )  # fmt: skip
        url: str = node.url()
        shell.env |= {"CAPDEX_NODE_URL": url, "CAPDEX_MCP_URL": f"{url}/mcp"}
        node.wait_for(
            lambda: sum(status(http, url)["releases"]["by_verdict"].values()) == judged, "verdicts"
        )
        return url

    return start


def status(http: Callable[..., Any], url: str) -> Any:
    return json.loads(http(f"{url}/status")[1])


async def test_broken_announcements_are_kept_with_their_reason_and_never_served(
    shell: Any, chains: Any, anvil: Any, packages: Any, serve: Any, http: Callable[..., Any]
) -> None:
    registry = chains.Registry.deploy(anvil.url, chains.LAX)
    blocks, made = BlockDirectory(shell / "blocks"), packages(registry.publisher)
    data = made[GOOD]
    for name, package in made.items():
        blocks.write(package)
        registry.announce(name, "1.0.0", package)
    registry.announce("wrong-cid", "1.0.0", data, cid=Cid.of(b"other bytes").text)
    registry.announce("no-cid", "1.0.0", data, cid="bafkreinonsense")
    registry.announce("wrong-digest", "1.0.0", data, sha256=bytes(31) + b"\x01")
    registry.announce("wrong-semver", "1.0.0", data, semver="2.0.0")
    # Its bytes were overwritten where they lay: absence, which is never final, and no verdict.
    lost = blocks.write(b"what the publisher meant")
    (stored,) = (shell / "blocks").rglob(lost.text)
    stored.write_bytes(b"what somebody made of it")
    registry.announce(LOST, "1.0.0", b"what the publisher meant")
    url = serve(registry, f"dir:{shell / 'blocks'}", 1 + len(BROKEN))

    said = status(http, url)
    counted = Counter(verdict for verdict, _ in BROKEN.values())
    assert said["releases"]["by_verdict"] == {"verified": 1, **counted}
    assert said["releases"]["by_availability"]["pending"] == 1
    assert (said["releases"]["total"], said["releases"]["listed"]) == (2 + len(BROKEN), 1)
    reasons = Counter(reason for _, reason in BROKEN.values())
    assert said["releases"]["rejected_by_reason"] == reasons
    listed = {x["cap_uri"].split(":")[-1]: x for x in said["rejections"]}
    assert {x.partition("@")[0]: (y["verdict"], y["reason"]) for x, y in listed.items()} == BROKEN
    assert all(x["message"] for x in said["rejections"])

    async with Client(f"{url}/mcp") as client:
        for query in ("", "what do it", *BROKEN, LOST):
            page = await client.call_tool("search_capabilities", {"query_string": query})
            assert isinstance(page.structured_content, dict)
            hits = page.structured_content["list_of_results"]
            names = {x["acp_metadata"]["id"] for x in hits}
            assert names <= {f"did:nuwa:cap:{GOOD}@1.0.0"}
        for name in (*BROKEN, LOST):
            for wanted in ("", "@1.0.0", "@>=0.0.1"):
                uri = f"did:nuwa:cap:{name}{wanted}"
                result = await client.call_tool("resolve_capability", {"cap_uri": uri})
                content = result.structured_content
                assert isinstance(content, dict)
                assert result.is_error, uri
                assert content["code"] == ("PENDING" if name == LOST else "UNVERIFIED"), uri
                if name in BROKEN:
                    told = content["details"]
                    assert (told["verdict"], told["reason"]) == BROKEN[name], uri

    for name, (verdict, reason) in BROKEN.items():
        page = json.loads(http(f"{url}/c/{name}.json")[1])
        (release,) = page["releases"]
        assert (release["verification"]["verdict"], release["reason"]) == (verdict, reason)
        assert release["latest"] is False
    for name in IN_THE_BYTES:  # this node is not a gateway for what it refused
        cid = Cid.of(made[name]).text
        assert http(f"{url}/ipfs/{cid}?format=raw")[0] == 404


async def test_get_writes_no_broken_package_whoever_hands_it_out_and_show_says_why(
    shell: Any,
    chains: Any,
    anvil: Any,
    kubo: Any,
    packages: Any,
    serve: Any,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    made = packages(registry.publisher)
    ipfs = Kubo(kubo.api)
    for data in made.values():
        await ipfs.put(data)
    await ipfs.close()
    registry.publish([(name, "1.0.0", data) for name, data in made.items()])
    serve(registry, f"gateway:{kubo.gateway}", len(made))

    # A gateway that gives the very bytes announced, of which a person asks for the exact version.
    shell.env["CAPDEX_GATEWAY_URL"] = kubo.gateway
    for name, (verdict, reason) in IN_THE_BYTES.items():
        told = shell.error("get", f"{name}@1.0.0", "--output", "got.yaml", code=1)
        assert told["code"] == "UNVERIFIED"
        assert not (shell / "got.yaml").exists()
        (shown,) = shell.json("show", name)["results"]
        assert (shown["verification"]["verdict"], shown["reason"]) == (verdict, reason)
    shell("get", f"{GOOD}@1.0.0", "--output", "got.yaml")
    assert (shell / "got.yaml").read_bytes() == made[GOOD]

    seen = shell("show", "wrong-signature", "--format", "human").stdout
    assert "BAD_SIGNATURE" in seen
    assert shell.error("resolve", "wrong-signature", code=1)["code"] == "UNVERIFIED"
    assert shell.error("get", "wrong-signature", code=1)["code"] == "UNVERIFIED"
