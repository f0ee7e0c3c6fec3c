"""The deployed registry, seen from Python: what it promises to whoever reads its logs and slots."""

import ast
import base64
import hashlib
from typing import Any

import pytest
from eth_abi.abi import decode
from eth_tester.exceptions import TransactionFailed
from eth_utils import keccak, to_bytes
from web3 import Web3
from web3.contract import Contract

DIGEST = hashlib.sha256(b"a package").digest()
OTHER_DIGEST = hashlib.sha256(b"another package").digest()
LONG_SEMVER = "1.0.0-abcdefghijklmnopqrstuvwxyz"


def raw_cid(digest: bytes) -> str:
    return "b" + base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().lower().rstrip("=")


def publish(
    registry: Contract,
    name: str = "note",
    semver: str = "1.0.0",
    digest: bytes = DIGEST,
    *,
    cid: str | None = None,
    by: int = 0,
) -> Any:
    spelled = raw_cid(digest) if cid is None else cid
    return send(registry, registry.functions.publish(name, semver, spelled, digest), by=by)


def send(registry: Contract, call: Any, *, by: int = 0) -> Any:
    w3 = registry.w3
    return w3.eth.wait_for_transaction_receipt(call.transact({"from": w3.eth.accounts[by]}))


def account(registry: Contract, number: int) -> str:
    return str(registry.w3.eth.accounts[number])


def logs_of(registry: Contract) -> list[Any]:
    w3 = registry.w3
    return list(w3.eth.get_logs({"address": registry.address, "fromBlock": 0}))


def folded(logs: list[Any]) -> tuple[bytes, int]:
    """Fold raw logs as the interface documents it, starting from the zero word."""
    head, count = bytes(24), 0
    for log in logs:
        topics = b"".join(bytes(topic) for topic in log["topics"])
        entry = keccak(topics + keccak(bytes(log["data"])))
        head, count = keccak(head + count.to_bytes(8, "big") + entry)[:24], count + 1
    return head, count


def assert_reverts(registry: Contract, call: Any, error: str, *values: Any, by: int = 0) -> None:
    """Assert that a call reverts with exactly this custom error and these values."""
    (abi,) = [e for e in registry.abi if e["type"] == "error" and e["name"] == error]
    types = [parameter["type"] for parameter in abi["inputs"]]
    with pytest.raises(TransactionFailed) as caught:
        call.call({"from": account(registry, by)})
    data = revert_data(caught.value)
    assert data[:4] == keccak(text=f"{error}({','.join(types)})")[:4]
    assert decode(types, data[4:]) == values


def revert_data(failure: TransactionFailed) -> bytes:
    """Return the data of a revert, which eth-tester gives as the `repr` of bytes inside a text."""
    text = str(failure)
    data: bytes = ast.literal_eval(text[text.index("b" + text[-1]) :])
    return data


def slot(key: bytes, base: bytes) -> bytes:
    return keccak(key.rjust(32, b"\0") + base)


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


# ---------------------------------------------------------------------------- publishing


def test_a_published_release_reads_back_with_all_its_fields(registry: Contract) -> None:
    publish(registry)
    uri = "did:nuwa:cap:note@1.0.0"
    expected = (uri, "1.0.0", raw_cid(DIGEST), DIGEST, False, False)
    assert tuple(registry.functions.release("note", "1.0.0").call()) == expected
    assert registry.functions.releaseCount("note").call() == 1
    assert registry.functions.indexOf("note", "1.0.0").call() == 0


def test_publishing_emits_published_with_the_full_strings(registry: Contract) -> None:
    receipt = publish(registry, by=1)
    (event,) = registry.events.Published().process_receipt(receipt)
    assert dict(event["args"]) == {
        "nameId": keccak(text="note"),
        "publisher": account(registry, 1),
        "sequence": 1,
        "capUri": "did:nuwa:cap:note@1.0.0",
        "semver": "1.0.0",
        "cid": raw_cid(DIGEST),
        "sha256": DIGEST,
    }


def test_whoever_publishes_first_owns_the_name(registry: Contract) -> None:
    assert registry.functions.ownerOf("note").call() == "0x" + "00" * 20
    publish(registry, by=1)
    assert registry.functions.ownerOf("note").call() == account(registry, 1)
    again = registry.functions.publish("note", "1.0.1", raw_cid(DIGEST), DIGEST)
    assert_reverts(registry, again, "NotMaintainer", "note", account(registry, 2).lower(), by=2)


def test_a_name_that_looks_like_another_is_refused_and_the_other_is_named(
    registry: Contract,
) -> None:
    publish(registry, "file")
    twin = registry.functions.publish("f-1le", "1.0.0", raw_cid(DIGEST), DIGEST)
    assert_reverts(registry, twin, "NameTaken", "f-1le", "file")
    assert registry.functions.nameOfSkeleton("flle").call() == "file"
    assert registry.functions.nameOfSkeleton("note").call() == ""


def test_a_version_is_never_published_twice_even_when_it_is_yanked(registry: Contract) -> None:
    publish(registry)
    send(registry, registry.functions.yank("note", "1.0.0", 0, ""))
    again = registry.functions.publish("note", "1.0.0", raw_cid(OTHER_DIGEST), OTHER_DIGEST)
    assert_reverts(registry, again, "VersionAlreadyPublished", "note", "1.0.0")
    assert registry.functions.release("note", "1.0.0").call()[3] == DIGEST


def test_a_malformed_name_is_refused(registry: Contract) -> None:
    call = registry.functions.publish("No_te", "1.0.0", raw_cid(DIGEST), DIGEST)
    assert_reverts(registry, call, "InvalidName", "No_te")


def test_a_malformed_version_is_refused(registry: Contract) -> None:
    call = registry.functions.publish("note", "1.0", raw_cid(DIGEST), DIGEST)
    assert_reverts(registry, call, "InvalidSemVer", "1.0")


def test_a_cid_of_other_bytes_is_refused(registry: Contract) -> None:
    cid = raw_cid(OTHER_DIGEST)
    call = registry.functions.publish("note", "1.0.0", cid, DIGEST)
    assert_reverts(registry, call, "CidMismatch", cid, DIGEST)


def test_a_zero_digest_is_refused(registry: Contract) -> None:
    call = registry.functions.publish("note", "1.0.0", raw_cid(bytes(32)), bytes(32))
    assert_reverts(registry, call, "ZeroDigest")


# ---------------------------------------------------------------------------- yanking


def test_a_yank_is_seen_and_can_be_taken_back(registry: Contract) -> None:
    publish(registry, semver=LONG_SEMVER)
    receipt = send(registry, registry.functions.yank("note", LONG_SEMVER, 0, "leaks"))
    (event,) = registry.events.Yanked().process_receipt(receipt)
    assert event["args"]["reason"] == "leaks"
    assert registry.functions.release("note", LONG_SEMVER).call()[4] is True

    receipt = send(registry, registry.functions.unyank("note", LONG_SEMVER, 0))
    (event,) = registry.events.Unyanked().process_receipt(receipt)
    assert event["args"]["semver"] == LONG_SEMVER
    assert registry.functions.release("note", LONG_SEMVER).call()[4] is False


def test_a_yank_that_would_change_nothing_is_refused(registry: Contract) -> None:
    publish(registry)
    unyank = registry.functions.unyank("note", "1.0.0", 0)
    assert_reverts(registry, unyank, "NotYanked", "note", "1.0.0")
    send(registry, registry.functions.yank("note", "1.0.0", 0, ""))
    yank = registry.functions.yank("note", "1.0.0", 0, "")
    assert_reverts(registry, yank, "AlreadyYanked", "note", "1.0.0")


def test_only_the_owner_yanks(registry: Contract) -> None:
    publish(registry)
    call = registry.functions.yank("note", "1.0.0", 0, "")
    assert_reverts(registry, call, "NotMaintainer", "note", account(registry, 1).lower(), by=1)


def test_a_yank_never_reaches_another_release_than_the_one_it_names(registry: Contract) -> None:
    publish(registry, semver="1.0.0")
    publish(registry, semver="1.0.1")
    for semver, index in [("1.0.0", 1), ("1.0.1", 0), ("1.0.0", 2), ("9.9.9", 0), ("", 2)]:
        call = registry.functions.yank("note", semver, index, "")
        assert_reverts(registry, call, "NoSuchRelease", "note", semver)


def test_a_reason_has_at_most_500_bytes(registry: Contract) -> None:
    publish(registry)
    call = registry.functions.yank("note", "1.0.0", 0, "é" * 251)
    assert_reverts(registry, call, "ReasonTooLong", 502)


def test_an_absent_release_is_an_error_and_an_absent_name_has_no_releases(
    registry: Contract,
) -> None:
    for call in (registry.functions.release, registry.functions.indexOf):
        assert_reverts(registry, call("note", "1.0.0"), "NoSuchRelease", "note", "1.0.0")
    assert registry.functions.releases("note", 0, 10).call() == []
    assert registry.functions.releaseCount("note").call() == 0


def test_releases_come_in_pages_in_the_order_of_publication(registry: Contract) -> None:
    semvers = ["2.0.0", "1.0.0", "1.5.0"]
    for semver in semvers:
        publish(registry, semver=semver)

    def page(start: int, count: int) -> list[str]:
        return [release[1] for release in registry.functions.releases("note", start, count).call()]

    assert page(0, 100) == semvers
    assert page(1, 1) == ["1.0.0"]
    assert page(2, 2**256 - 1) == ["1.5.0"]
    assert page(3, 1) == []


# ---------------------------------------------------------------------------- log and storage


def test_the_head_of_the_log_is_the_fold_of_the_logs(registry: Contract) -> None:
    assert registry.functions.log().call() == [bytes(24), 0]
    publish(registry, "note")
    publish(registry, "memo", LONG_SEMVER, OTHER_DIGEST, by=1)
    send(registry, registry.functions.yank("note", "1.0.0", 0, "leaks"))
    send(registry, registry.functions.unyank("note", "1.0.0", 0))

    logs = logs_of(registry)
    assert registry.functions.log().call() == list(folded(logs))
    for missing in range(len(logs)):
        assert folded(logs[:missing] + logs[missing + 1 :])[0] != folded(logs)[0]
    assert folded(logs[::-1])[0] != folded(logs)[0]


def test_the_sequence_counts_the_events_of_all_names(registry: Contract) -> None:
    publish(registry, "note")
    publish(registry, "memo", by=1)
    send(registry, registry.functions.yank("note", "1.0.0", 0, ""))
    publish(registry, "note", "1.0.1")
    sequences = [int.from_bytes(bytes(log["data"])[:32], "big") for log in logs_of(registry)]
    assert sequences == [1, 2, 3, 4]


def test_storage_lies_where_the_protocol_says(w3: Web3, registry: Contract) -> None:
    publish(registry, "notes-1sts", "1.0.0", by=1)
    publish(registry, "notes-1sts", LONG_SEMVER, OTHER_DIGEST, by=1)
    send(registry, registry.functions.yank("notes-1sts", "1.0.0", 0, ""), by=1)

    def load(position: bytes) -> bytes:
        found = w3.eth.get_storage_at(registry.address, int.from_bytes(position, "big"))
        return bytes(found).rjust(32, b"\0")

    name_id = keccak(text="notes-1sts")
    head, count = registry.functions.log().call()
    assert load(word(0)) == head + count.to_bytes(8, "big")

    owner = to_bytes(hexstr=account(registry, 1))
    record = bytes(4) + bytes(4) + (2).to_bytes(4, "big") + owner
    assert load(slot(name_id, word(1))) == record
    assert load(slot(keccak(text="noteslsts"), word(2))) == b"notes-1sts".ljust(31, b"\0") + b"\x14"

    digests = slot(name_id, word(3))
    assert load(slot(keccak(text="1.0.0"), digests)) == DIGEST
    assert load(slot(keccak(text=LONG_SEMVER), digests)) == OTHER_DIGEST
    assert load(slot(keccak(text="1.0.1"), digests)) == bytes(32)

    releases = slot(name_id, word(4))
    assert load(slot(word(0), releases)) == b"\x01\x05" + b"1.0.0".ljust(30, b"\0")
    assert load(slot(word(1), releases)) == b"\x00\x20" + bytes(30)
    assert load(slot(word(2), releases)) == bytes(32)

    text = slot(word(1), slot(name_id, word(5)))
    assert load(text) == word(2 * 32 + 1)  # a string of 32 bytes: its text is in the next place
    assert load(keccak(text)) == LONG_SEMVER.encode()


def test_the_registry_takes_no_ether(w3: Web3, registry: Contract) -> None:
    assert not any(item.get("stateMutability") == "payable" for item in registry.abi)
    assert not any(item["type"] in ("receive", "fallback") for item in registry.abi)
    assert w3.eth.get_balance(registry.address) == 0


# ---------------------------------------------------------------------------- the lax one


def test_the_lax_registry_announces_anything_with_a_flawless_log(lax: Contract) -> None:
    somebody = account(lax, 3)
    nonsense = (keccak(text="x"), somebody, "did:nuwa:cap:NOTE@one", "one", "Qm", bytes(32))
    receipt = send(lax, lax.functions.announce(*nonsense))
    (event,) = lax.events.Published().process_receipt(receipt)
    assert tuple(event["args"].values()) == (*nonsense[:2], 1, *nonsense[2:])
    publish(lax, cid="not a cid")
    send(lax, lax.functions.yank("note", "1.0.0", 7, "x" * 1000), by=1)
    send(lax, lax.functions.unyank("note", "1.0.0", 7))
    assert lax.functions.log().call() == list(folded(logs_of(lax)))


def test_the_lax_registry_emits_what_the_real_one_would(registry: Contract, lax: Contract) -> None:
    for contract in (registry, lax):
        publish(contract)
        send(contract, contract.functions.yank("note", "1.0.0", 0, "leaks"))
        send(contract, contract.functions.unyank("note", "1.0.0", 0))
    assert registry.functions.log().call() == lax.functions.log().call()
