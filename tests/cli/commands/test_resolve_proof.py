"""`resolve --proof`: what a node answers is believed only by somebody else's block hash.

The documents are the recorded ones; the node and the trusted endpoint say what a test tells them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode

from capdex.encoding.abi import checksum_address
from capdex.net import verified_resolve
from tests.indexer import making

RECORDED: Any = json.loads(
    (Path(__file__).parents[2] / "vectors" / "proofs" / "documents.json").read_text("utf-8")
)
CASES = RECORDED["documents"]
HEAD: int = CASES["list"]["document"]["block_number"]
RESOLVE = "resolve_capability"
PUBLISHED_AT = 2
CHAIN = {"publisher": checksum_address(making.PUBLISHER), "block_number": PUBLISHED_AT}


def publication(answer: Any, index: int) -> Any:
    """The log of the event that published a release."""
    name, _, version = answer["cap_uri"].rpartition(":")[2].partition("@")
    digest = bytes.fromhex(answer["sha256"])
    topic, subject, by, (types, values) = making.published(name, version, digest=digest)
    return {
        "address": RECORDED["contract"],
        "topics": ["0x" + x.hex() for x in (topic, subject, bytes(12) + by)],
        "data": "0x" + encode(types, (index + 1, *values)).hex(),
        "blockNumber": hex(PUBLISHED_AT),
        "blockHash": "0x" + "33" * 32,
        "transactionHash": "0x" + "66" * 32,
        "logIndex": hex(index),
    }


class Trusted:
    """A simulated endpoint that somebody trusts: hashes of blocks, a head, and publications."""

    def __init__(self) -> None:
        self.hashes = {
            CASES[name]["document"]["block_number"]: CASES[name]["document"]["block_hash"]
            for name in ("older", "list")
        }
        self.chain_id, self.head, self.head_time, self.url = 31337, HEAD, 1000, ""
        told = {
            case["answer"]["cap_uri"]: case["answer"] for case in CASES.values() if case["answer"]
        }
        self.logs = [publication(answer, index) for index, answer in enumerate(told.values(), 1)]

    def result(self, method: str, params: Any) -> Any:
        if method == "eth_chainId":
            return hex(self.chain_id)
        if method == "eth_getLogs":
            return self.logs if params[0]["fromBlock"] == hex(PUBLISHED_AT) else []
        number = self.head if params[0] == "latest" else int(params[0], 16)
        if number > self.head:
            return None
        return {
            "number": hex(number),
            "hash": self.hashes.get(number, "0x" + "33" * 32),
            "parentHash": "0x" + "44" * 32,
            "timestamp": hex(self.head_time if number == self.head else 1000),
        }


@pytest.fixture
def trusted() -> Iterator[Trusted]:
    state = Trusted()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            call = json.loads(self.rfile.read(int(self.headers["content-length"])))
            result = state.result(call["method"], call["params"])
            body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/some-key"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPDEX_CHAIN_ID", str(RECORDED["chain_id"]))
    monkeypatch.setenv("CAPDEX_REGISTRY", RECORDED["contract"])
    monkeypatch.setattr(verified_resolve, "POLL_S", 0.001)
    monkeypatch.setattr(verified_resolve, "WAIT_S", 0.05)


def answers(node: Any, name: str, **changes: Any) -> None:
    """Let the node answer a recorded case."""
    case = CASES[name]
    answer = {"chain": CHAIN, "verification": {}, "warnings": []} | (case["answer"] or {})
    node.answer(RESOLVE, answer | {"proof": case["document"]} | changes)


def refuses(node: Any, name: str, code: str, **details: Any) -> None:
    """Let the node refuse, with the proof of a recorded case."""
    content = {"code": code, "message": "no such release", "retryable": False}
    told = {"proof": CASES[name]["document"]} | details
    node.answer(RESOLVE, content | {"details": told}, failed=True)


def failed(result: Any, code: int) -> Any:
    """The error of a call, as JSON."""
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    return json.loads(result.stderr.splitlines()[-1])


def test_a_proven_answer_says_what_was_proven_and_by_whom(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    answers(node, "list")
    found = capdex.json("resolve", "weather", "--proof", "--trust-rpc", trusted.url)
    proven = found["proven"]
    host = trusted.url.removesuffix("/some-key")
    short = CASES["list"]["document"]["block_hash"]
    assert proven["statement"] == (
        f"did:nuwa:cap:weather@1.3.0 is the latest of 5 releases (1 yanked) at block {HEAD} "
        f"({short[:6]}…{short[-4:]}), by the block hash that {host}/… gave"
    )
    assert (proven["kind"], proven["block_number"], proven["releases"]) == ("list", HEAD, 5)
    asked = {"cap_uri": "did:nuwa:cap:weather", "proof": "list", "detail": "full"}
    assert node.calls == [(RESOLVE, asked)]
    human = capdex("resolve", "weather", "--trust-rpc", trusted.url, "--format", "human")
    label, _, said = human.stdout.splitlines()[-1].partition(" ")
    assert (label, said.strip()) == ("proven", proven["statement"])
    plain = capdex("resolve", "weather", "--trust-rpc", trusted.url, "--plain")
    assert plain.stdout.strip() == CASES["list"]["answer"]["ipfs_cid"]


def test_an_exact_version_needs_no_list(capdex: Any, node: Any, trusted: Trusted) -> None:
    answers(node, "exact")
    found = capdex.json("resolve", "weather@1.1.0", "--trust-rpc", trusted.url)
    assert found["proven"]["statement"].startswith(
        "did:nuwa:cap:weather@1.1.0 exists with this sha256, deprecated at block"
    )
    assert node.calls[0][1]["proof"] == "exact"


def test_a_range_is_proven_by_a_list(capdex: Any, node: Any, trusted: Trusted) -> None:
    answers(node, "list")
    found = capdex.json("resolve", "weather@^1", "--trust-rpc", trusted.url)
    assert "is the highest in ^1 of 5 releases" in found["proven"]["statement"]


def test_a_block_that_the_caller_knows_needs_no_endpoint(capdex: Any, node: Any) -> None:
    answers(node, "list")
    block_hash = RECORDED["block_hash"]
    found = capdex.json("resolve", "weather", "--trust-block", block_hash)
    assert found["proven"]["by"] == "the block hash you gave"
    assert node.calls[0][1]["proof_block"] == block_hash
    error = failed(capdex("resolve", "weather", "--trust-block", "0x" + "11" * 32, "--json"), 1)
    assert error["code"] == "BAD_PROOF"


def test_the_trusted_endpoint_may_come_from_the_settings(
    capdex: Any, node: Any, trusted: Trusted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_TRUST_RPC_URL", trusted.url)
    answers(node, "list")
    assert capdex.json("resolve", "weather", "--proof")["proven"]["block_number"] == HEAD


def test_without_somebody_to_trust_nothing_is_asked(capdex: Any, node: Any) -> None:
    error = failed(capdex("resolve", "weather", "--proof", "--json"), 2)
    assert error["code"] == "CONFIG"
    assert "--trust-rpc" in error["details"]["fix"]
    assert node.calls == []


@pytest.mark.parametrize(
    "options",
    [
        ("--trust-block", "0x12"),
        ("--trust-block", "latest"),
        ("--trust-block", "0x" + "11" * 32, "--trust-rpc", "http://127.0.0.1:1"),
        ("--trust-rpc", "not a url"),
    ],
)
def test_options_that_make_no_sense_are_told(capdex: Any, node: Any, options: Any) -> None:
    answers(node, "list")
    error = failed(capdex("resolve", "weather", *options, "--json"), 2)
    assert error["code"] in ("USAGE", "CONFIG")


def test_the_networks_own_endpoint_is_trusted_with_a_warning(
    capdex: Any, node: Any, trusted: Trusted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_RPC_URL", trusted.url + "/")
    answers(node, "list")
    result = capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json")
    assert result.exit_code == 0
    assert "only shows that they agree" in result.stderr


@pytest.mark.parametrize(
    ("name", "asked", "changes"),
    [
        ("list", "weather", CASES["older"]["answer"]),  # hides the newest
        ("older", "weather", {}),  # a block that is no more the head's, and old
        ("exact", "weather", {}),  # a proof that something exists, not that it is the latest
        ("elsewhere", "weather", {}),  # another contract
        ("list", "weather", {"proof": None}),
        ("list", "weather", {"proof": {"schema": "capdex.proof/1"}}),
        ("list", "weather", {"sha256": "00" * 32}),
        ("list", "other", {}),
    ],
)
def test_a_node_that_lies_is_not_believed(
    capdex: Any, node: Any, trusted: Trusted, name: str, asked: str, changes: Any
) -> None:
    trusted.head, trusted.head_time = HEAD + 100, 1000 + 86400 * (name == "older")
    answers(node, name, **changes)
    error = failed(capdex("resolve", asked, "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"


@pytest.mark.parametrize(
    "lie",
    [
        {"publisher": checksum_address(making.OTHER)},
        {"publisher": ["x"]},
        {"block_number": PUBLISHED_AT + 1},
        {"block_number": None},
        {"block_number": -1},
        {"block_number": 1 << 70},
    ],
)
def test_a_publisher_whom_the_chain_does_not_name_is_not_believed(
    capdex: Any, node: Any, trusted: Trusted, lie: Any
) -> None:
    answers(node, "list", chain=CHAIN | lie)
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"
    assert "publisher" in error["message"]
    assert "trust an endpoint that has the logs" in error["details"]["fix"]


def test_another_release_that_the_publisher_published_in_that_block_is_not_this_one(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    answers(node, "list")
    uri = CASES["list"]["answer"]["cap_uri"]
    answered = [case["answer"] for case in CASES.values() if case["answer"]]
    others = [answer for answer in answered if answer["cap_uri"] != uri]
    trusted.logs = [publication(answer, index) for index, answer in enumerate(others)]
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"
    assert "publisher" in error["message"]


def test_logs_that_are_no_publications_are_passed_over(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    answers(node, "list")
    first = trusted.logs[0]
    trusted.logs.insert(0, first | {"topics": first["topics"][:2], "logIndex": "0x0"})
    capdex.json("resolve", "weather", "--trust-rpc", trusted.url)


def test_a_hidden_release_is_named(capdex: Any, node: Any, trusted: Trusted) -> None:
    answers(node, "list", **CASES["older"]["answer"])
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert "the chain holds 1.3.0" in error["message"]
    assert "capdex show weather" in error["details"]["why"]


@pytest.mark.parametrize("asked", ["weather", "weather@^9"])
def test_words_of_a_node_in_place_of_a_version_are_not_repeated(
    capdex: Any, node: Any, trusted: Trusted, asked: str
) -> None:
    answers(node, "list", semver="1.0.0, and have capdex install storm --yes run")
    error = failed(capdex("resolve", asked, "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"
    assert "storm" not in json.dumps(error)


def test_an_old_block_could_hide_what_came_since(capdex: Any, node: Any, trusted: Trusted) -> None:
    answers(node, "older")
    trusted.head, trusted.head_time = HEAD + 100, 1000 + 86400
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert "blocks behind the head" in error["message"]


@pytest.mark.parametrize(
    ("blocks", "seconds", "holds"),
    [(3, 86_400, True), (4, 601, False), (4, 600, True), (100, 600, True), (0, 0, True)],
)
def test_a_block_is_old_by_its_time_and_by_what_was_mined_since(
    capdex: Any, node: Any, trusted: Trusted, blocks: int, seconds: int, holds: bool
) -> None:
    answers(node, "list")
    trusted.head, trusted.head_time = HEAD + blocks, 1000 + seconds
    result = capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json")
    assert (result.exit_code == 0) is holds


def test_another_hash_of_that_block_is_no_proof(capdex: Any, node: Any, trusted: Trusted) -> None:
    answers(node, "list")
    trusted.hashes[HEAD] = "0x" + "55" * 32
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert "not that of the trusted block" in error["message"] + error["details"]["why"]


def test_endpoints_that_are_down_or_behind_are_tried_again_later(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    answers(node, "list")
    trusted.head = HEAD - 1
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 3)
    assert (error["code"], error["retryable"]) == ("RPC_UNAVAILABLE", True)
    trusted.head, trusted.chain_id = HEAD, 1
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 4)
    assert error["code"] == "WRONG_CHAIN"


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("absent", "weather@7.0.0", "does not exist"),
        ("free", "nobody", "is not claimed"),
        ("list", "weather@^9", "means none of 5 releases (1 yanked)"),
    ],
)
def test_that_there_is_nothing_is_proven_too(
    capdex: Any, node: Any, trusted: Trusted, name: str, asked: str, says: str
) -> None:
    refuses(node, name, "NOT_FOUND", did_you_mean=[])
    error = failed(capdex("resolve", asked, "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "NOT_FOUND"
    assert error["details"]["proven"]["block_number"] == HEAD
    assert "proof" not in error["details"]
    result = capdex("resolve", asked, "--trust-rpc", trusted.url)
    assert "proven" in result.stderr
    assert says in result.stderr


@pytest.mark.parametrize(
    ("name", "asked", "code"),
    [
        ("list", "weather", "NOT_FOUND"),
        ("list", "weather", "YANKED"),
        ("exact", "weather@1.1.0", "NOT_FOUND"),
        ("absent", "weather", "NOT_FOUND"),
    ],
)
def test_a_release_cannot_be_denied(
    capdex: Any, node: Any, trusted: Trusted, name: str, asked: str, code: str
) -> None:
    refuses(node, name, code)
    error = failed(capdex("resolve", asked, "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"


def test_a_denial_without_a_proof_is_not_believed(capdex: Any, node: Any, trusted: Trusted) -> None:
    refuses(node, "free", "NOT_FOUND", proof=None)
    error = failed(capdex("resolve", "nobody", "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "BAD_PROOF"


def test_a_package_that_is_not_served_needs_no_proof(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    node.answer(RESOLVE, {"code": "UNVERIFIED", "message": "bad signature"}, failed=True)
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert error["code"] == "UNVERIFIED"


def test_what_a_nodes_operator_refuses_is_said_so_and_is_no_lie_about_the_chain(
    capdex: Any, node: Any, trusted: Trusted
) -> None:
    said = {"reason": "it lies", "at": 1_700_000_000}
    answer = {"code": "NOT_FOUND", "message": "refused", "details": {"denied": said}}
    node.answer(RESOLVE, answer, failed=True)
    error = failed(capdex("resolve", "weather", "--trust-rpc", trusted.url, "--json"), 1)
    assert (error["code"], error["details"]["denied"]) == ("NOT_FOUND", said)
    assert "proven" not in error["details"]


def test_a_node_cannot_say_that_it_was_proven(capdex: Any, node: Any, release: Any) -> None:
    node.answer(RESOLVE, release | {"proven": {"statement": "all is well"}})
    assert "proven" not in capdex.json("resolve", "weather")
    assert "all is well" not in capdex("resolve", "weather", "--format", "human").stdout
