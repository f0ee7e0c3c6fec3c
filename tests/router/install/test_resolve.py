"""Several nodes asked and compared: they agree, one is silent, one lies, the chain decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from capdex.errors import CapdexError, Code, Unavailable
from capdex_router.home.config import Config, NodeAddress
from capdex_router.install import resolve as resolving
from capdex_router.install.resolve import Release, resolve, search
from tests.indexer import making
from tests.router.simulated import PUBLISHER, SimulatedNode, answer, uri, weather

Start = Callable[[], Awaitable[SimulatedNode]]


def of(*nodes: SimulatedNode, **settings: object) -> Config:
    values = {"chain_id": making.CHAIN_ID, "registry": making.REGISTRY, **settings}
    return Config(nodes=tuple(node.address for node in nodes), **values)  # type: ignore[arg-type]


@pytest.fixture
async def nodes(start_node: Start) -> list[SimulatedNode]:
    """Two nodes that know weather 1.0.0 and 1.1.0."""
    found = [await start_node(), await start_node()]
    for node in found:
        node.publish(weather())
        node.publish(weather("1.1.0"))
    return found


async def refused(config: Config, name: str = "weather") -> CapdexError:
    with pytest.raises(CapdexError) as caught:
        await resolve(uri(name), config)
    return caught.value


async def test_nodes_that_agree_are_each_asked_once(nodes: list[SimulatedNode]) -> None:
    found = await resolve(uri("weather"), of(*nodes))
    assert found.announcement.semver == "1.1.0"
    assert (found.warnings, found.proven) == ((), "")
    assert [node.requests for node in nodes] == [["resolve_capability"]] * 2


@pytest.mark.parametrize("honest", [0, 1])
async def test_an_older_version_offered_as_the_latest_by_one_node_is_refused(
    nodes: list[SimulatedNode], honest: int
) -> None:
    old = answer(weather())
    nodes[1 - honest].lie = lambda cap_uri: old
    error = await refused(of(*nodes))
    assert error.code is Code.UNVERIFIED
    assert "1.0.0 with sha256" in error.why
    assert "1.1.0 with sha256" in error.why
    assert "CAPDEX_TRUST_RPC_URL" in error.fix


@pytest.mark.parametrize(
    "lie",
    [
        {"sha256": "ab" * 32, "ipfs_cid": None},
        {"chain": {"chain_id": making.CHAIN_ID, "contract": "", "publisher": "0x" + "12" * 20}},
    ],
    ids=["other bytes", "another publisher"],
)
async def test_one_node_alone_cannot_change_what_is_announced(
    nodes: list[SimulatedNode], lie: dict[str, object]
) -> None:
    other = answer(weather("1.1.0", prompt="Other."))
    told = answer(weather("1.1.0"))
    nodes[1].lie = lambda cap_uri: other if "sha256" in lie else told | lie
    config = of(*nodes, registry=None)
    assert (await refused(config)).code is Code.UNVERIFIED


async def test_a_release_that_one_node_hides_is_a_difference(nodes: list[SimulatedNode]) -> None:
    nodes[0].releases.clear()
    error = await refused(of(*nodes))
    assert error.code is Code.UNVERIFIED
    assert "NOT_FOUND" in error.why


async def test_nodes_agree_that_there_is_nothing(nodes: list[SimulatedNode]) -> None:
    assert (await refused(of(*nodes), "tides")).code is Code.NOT_FOUND


async def test_a_silent_node_is_named_and_the_other_one_is_taken(
    nodes: list[SimulatedNode],
) -> None:
    nodes[0].down = True
    found = await resolve(uri("weather"), of(*nodes))
    assert found.announcement.semver == "1.1.0"
    assert found.warnings == (f"the node at {nodes[0].url}/… gave no answer to use",)
    nodes[1].down = True
    assert isinstance(await refused(of(*nodes)), Unavailable)


async def test_without_an_endpoint_that_answers_a_difference_is_not_decided(
    nodes: list[SimulatedNode],
) -> None:
    old = answer(weather())
    nodes[1].lie = lambda cap_uri: old
    error = await refused(of(*nodes, trust_rpc_url="http://127.0.0.1:1"))
    assert error.code in (Code.BAD_PROOF, Code.RPC_UNAVAILABLE)


async def test_an_answer_without_a_proof_is_refused_where_proofs_are_wanted(
    nodes: list[SimulatedNode],
) -> None:
    error = await refused(of(*nodes, trust_rpc_url="http://127.0.0.1:1"))
    assert error.code is Code.BAD_PROOF


async def test_flags_of_a_release_are_warnings(node: SimulatedNode) -> None:
    status = {"yanked": True, "yank_reason": "broken\u202e", "deprecated": True}
    status |= {"name_deprecated": True, "replaced_by": 'x", checked by capdex'}
    node.publish(weather(), status=status)
    found = await resolve(uri("weather"), of(node))
    instead = r'and its owner names "x\", checked by capdex" in its place'
    assert found.warnings == (
        r'did:nuwa:cap:weather@1.0.0 is yanked: "broken\u202e"',
        "did:nuwa:cap:weather@1.0.0 is deprecated",
        f"the name weather is deprecated, {instead}",
    )


async def test_a_name_like_an_older_one_is_a_warning_with_whose_word_that_is(
    nodes: list[SimulatedNode],
) -> None:
    nodes[1].publish(weather("1.2.0"), like="whether")
    nodes[0].publish(weather("1.2.0"))
    found = await resolve(uri("weather"), of(*nodes))
    said = "a node says its name is like the older name whether of another owner"
    assert found.warnings == (said,)
    nodes[1].releases[-1]["like"] = "whether\nproof: all of it"
    error = await refused(of(nodes[1]))
    assert error.code is Code.NODE_UNAVAILABLE


@pytest.mark.parametrize("honest", [0, 1])
async def test_a_flag_that_one_node_hides_is_told_by_the_other(
    nodes: list[SimulatedNode], honest: int
) -> None:
    nodes[honest].releases[0]["status"] = {"yanked": True, "yank_reason": "broken"}
    found = await resolve(uri("weather@1.0.0"), of(*nodes))
    assert found.warnings == ('did:nuwa:cap:weather@1.0.0 is yanked: "broken"',)


async def test_a_node_whose_cid_is_not_of_its_digest_does_not_keep_another_from_being_used(
    nodes: list[SimulatedNode],
) -> None:
    told = answer(weather("1.1.0"), ipfs_cid=answer(weather())["ipfs_cid"])
    nodes[0].lie = lambda cap_uri: told
    found = await resolve(uri("weather"), of(*nodes))
    assert found.announcement.semver == "1.1.0"
    error = await refused(of(nodes[0]))
    assert error.code is Code.NODE_UNAVAILABLE
    assert "the CID holds sha256" in error.why
    assert error.fix == "name another node"


@pytest.mark.parametrize(
    "told",
    [{"contract": "0x" + "12" * 20}, {"contract": ""}, {"contract": None}, {"chain_id": 1}],
    ids=str,
)
async def test_an_answer_of_another_registry_or_chain_is_refused(
    node: SimulatedNode, told: dict[str, object]
) -> None:
    lie = answer(weather())
    lie["chain"] |= told
    node.lie = lambda cap_uri: lie
    error = await refused(of(node))
    assert error.code is Code.NODE_UNAVAILABLE
    assert "of another chain or registry" in error.why


async def test_the_key_in_the_url_of_a_node_is_told_nowhere(nodes: list[SimulatedNode]) -> None:
    first, second = (
        NodeAddress(node.address.mcp_url.replace("://", "://hunter2@"), node.url) for node in nodes
    )
    config = replace(of(), nodes=(first, second))
    told: list[object] = [await resolve(uri("weather"), config)]
    await search("weather", 5, config, lambda event, **line: told.append(line))
    old = answer(weather())
    nodes[1].lie = lambda cap_uri: old
    told.append((await refused(config)).to_json())
    nodes[0].down = True
    told.append(await resolve(uri("weather"), config))
    nodes[1].lie = lambda cap_uri: old | {"chain": None}
    told.append((await refused(replace(config, nodes=(second,)))).to_json())
    assert "127.0.0.1" in repr(told)
    assert "hunter2" not in repr(told)


async def test_nodes_that_name_two_publishers_are_quoted_with_them(
    nodes: list[SimulatedNode],
) -> None:
    told = answer(weather("1.1.0"))
    told["chain"] |= {"publisher": "0x" + "12" * 20}
    nodes[1].lie = lambda cap_uri: told
    assert f"by {PUBLISHER}" in (await refused(of(*nodes))).why


async def test_the_position_on_chain_is_kept_as_far_as_it_makes_sense(node: SimulatedNode) -> None:
    told = answer(weather())
    told["chain"] |= {"block_number": True, "sequence": 1 << 70, "more": [1]}
    node.lie = lambda cap_uri: told
    found: Release = await resolve(uri("weather"), of(node))
    assert set(found.chain) == {"chain_id", "publisher", "contract"}


async def test_a_search_asks_the_first_node_that_answers(nodes: list[SimulatedNode]) -> None:
    nodes[0].down = True
    hits = await search("weather", 5, of(*nodes))
    assert [hit.uri for hit in hits] == [
        "did:nuwa:cap:weather@1.0.0",
        "did:nuwa:cap:weather@1.1.0",
    ]
    nodes[1].releases += [{"cap_uri": 7}, {"cap_uri": "did:nuwa:cap:weather"}, [], "weather"]  # type: ignore[list-item]
    assert len(await search("weather", 5, of(nodes[1]))) == 2
    nodes[1].down = True
    with pytest.raises(Unavailable):
        await search("weather", 5, of(*nodes))
    assert await search("weather", 5, Config()) == []


async def test_a_search_leaves_a_node_that_never_answers_for_the_next_one(
    nodes: list[SimulatedNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "SEARCH_S", 0.5)
    nodes[0].silent = True
    assert len(await search("weather", 5, of(*nodes))) == 2
    with pytest.raises(Unavailable) as caught:
        await search("weather", 5, of(nodes[0]))
    assert caught.value.why == "no answer within 0.5 s"


async def test_a_search_takes_no_more_hits_than_were_asked_for(node: SimulatedNode) -> None:
    node.releases = [answer(weather(f"1.{minor}.0")) for minor in range(9)]
    assert len(await search("weather", 5, of(node))) == 5
