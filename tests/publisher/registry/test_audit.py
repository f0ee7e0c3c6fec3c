"""A name by the chain, joined with what a node says of its releases."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_publisher.registry.audit import NameAudit


def on_chain(semver: str, **status: bool) -> dict[str, Any]:
    return {
        "cap_uri": f"did:nuwa:cap:weather@{semver}",
        "semver": semver,
        "ipfs_cid": f"cid of {semver}",
        "sha256": "00",
        "chain": {"publisher": "the chain's", "sequence": 1},
        "status": {"yanked": False} | status,
    }


def told(semver: str, **more: Any) -> dict[str, Any]:
    """What a node says of a release that is on chain, with its lies."""
    verified = {"verdict": "verified", "signer": "its author"}
    return {"semver": semver, "sha256": "00", "verification": verified, "latest": False} | more


def joined(*releases: dict[str, Any]) -> list[dict[str, Any]]:
    chain = {
        "name": "weather",
        "complete": True,
        "releases": [on_chain("1.2.0", yanked=True), on_chain("1.1.0"), on_chain("1.0.0")],
    }
    return NameAudit("weather", chain, {"releases": list(releases), "as_of": {}}, ()).releases


@pytest.mark.parametrize("semver", [None, 1, ["1.0.0"], {"1.0.0": 1}], ids=repr)
def test_a_release_of_a_node_without_a_version_in_words_is_passed_over(semver: object) -> None:
    releases = joined({"semver": semver}, told("1.0.0", of="node"))
    assert [x.get("of") for x in releases] == [None, None, "node"]


def test_what_the_chain_has_of_a_release_is_the_chains() -> None:
    lies = {"cap_uri": "did:nuwa:cap:storm@7.0.0", "ipfs_cid": "another"}
    lies["chain"] = {"publisher": "another", "tx_hash": "0x1"}  # type: ignore[assignment]
    release = joined(told("1.1.0", **lies))[1]
    assert release["cap_uri"] == "did:nuwa:cap:weather@1.1.0"
    assert release["ipfs_cid"] == "cid of 1.1.0"
    assert release["chain"] == {"publisher": "the chain's", "sequence": 1, "tx_hash": "0x1"}
    assert release["verification"]["signer"] == "its author"


@pytest.mark.parametrize("marked", ["1.2.0", "1.0.0", "9.9.9", "every one", "none"])
def test_a_node_does_not_choose_which_release_is_the_latest(marked: str) -> None:
    releases = joined(
        *(
            told(semver, latest=marked in (semver, "every one"))
            for semver in ("1.2.0", "1.1.0", "1.0.0", "9.9.9")
        )
    )
    assert [x["semver"] for x in releases if x["latest"]] == ["1.1.0"]


def test_what_a_node_serves_may_have_another_verdict() -> None:
    signed = {"verification": {"verdict": "signed"}}
    invalid = {"verification": {"verdict": "invalid"}}
    releases = joined(told("1.1.0", **invalid), told("1.0.0", latest=True, **signed))
    assert [x["semver"] for x in releases if x["latest"]] == ["1.0.0"]


def test_a_release_that_is_not_on_chain_has_no_verdict() -> None:
    release = joined(told("9.9.9", latest=True))[-1]
    assert (release["semver"], release["availability"]) == ("9.9.9", "not on chain")
    assert release["warnings"] == ["the node has this release, and the chain has not"]
    assert "verification" not in release
