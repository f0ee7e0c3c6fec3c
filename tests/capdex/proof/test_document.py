"""Proof documents: what holds is told, and whatever was touched is refused.

`World` is a chain in memory. Real chains, and the cases of the acceptance, are in tests/e2e.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import rlp
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, VerificationFailure
from capdex.proof import storage_layout as slots
from capdex.proof.document import MAX_RELEASES, SCHEMA, Proof, Slot
from capdex.proof.resolution import check_refusal, check_resolution
from capdex.proof.verify import Anchor, Proven, verify
from capdex.uri import CapabilityURI
from capdex.version import Version, latest

LONG = "2.0.0-" + "x" * 27  # 33 characters: three slots
LONGEST = "1.9.0-" + "y" * 58
NUMBER = st.integers(0, 20)
VERSIONS = st.builds(
    lambda core, tail: ".".join(map(str, core)) + tail,
    st.tuples(NUMBER, NUMBER, NUMBER),
    st.sampled_from(["", "-rc.1", "-x", "-" + "long" * 6, "-" + "l" * 25, "-" + "longer" * 9]),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ANY_JSON = st.recursive(
    SCALARS, lambda x: st.lists(x) | st.dictionaries(st.text(max_size=8), x), max_leaves=20
)


@pytest.fixture(scope="session")
def world(proving: Any) -> Any:
    """Two names, and an older block in which one had a release less."""
    release = proving.Release
    weather = [
        release("1.0.0"),
        release("1.1.0", deprecated=True),
        release(LONGEST),
        release("1.2.0", yanked=True),
        release("2.0.0-rc.1"),
        release("1.3.0"),
    ]
    names = {"weather": weather, "other": [release("1.0.0"), release(LONG)], "claimed": []}
    return proving.World(names)


@pytest.fixture(scope="session")
def older(proving: Any, world: Any) -> Any:
    names = {name: releases[:-1] for name, releases in world.names.items()}
    return proving.World(names, number=world.number - 1)


def uri(text: str) -> CapabilityURI:
    return CapabilityURI.loose(text)


def prove(document: Any, anchor: Anchor) -> Proven:
    return verify(Proof.parse(document), anchor)


@pytest.mark.parametrize("asked", ["weather@1.0.0", "weather@^1", "weather"])
@pytest.mark.parametrize("proven", ["1.1.0", "1.3.0", "9.9.9"])
def test_a_proof_of_one_version_says_nothing_of_another(
    world: Any, asked: str, proven: str
) -> None:
    document = world.document("weather", proven)
    for code in (Code.NOT_FOUND, Code.YANKED):
        with pytest.raises(VerificationFailure, match="alone, which is not what"):
            check_refusal(document, world.anchor, uri(asked), code)
    says = why(document, world.anchor, asked, world.answer("weather", "1.0.0"))
    assert "alone, which is not what" in says


def why(document: Any, anchor: Anchor, text: str, answer: Any) -> str:
    """Why an answer is refused; it has to be."""
    with pytest.raises(VerificationFailure) as caught:
        check_resolution(document, anchor, uri(text), answer)
    assert caught.value.code is Code.BAD_PROOF
    assert caught.value.fix
    return f"{caught.value.message}; {caught.value.why}"


# what holds ---------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.sampled_from(["weather", "note", "a1"]), st.lists(VERSIONS, max_size=8, unique=True)
    ),
    st.data(),
)
def test_whatever_a_registry_keeps_is_proven(proving: Any, given_: Any, data: Any) -> None:
    names = {
        name: [proving.Release(x, data.draw(st.booleans()), data.draw(st.booleans())) for x in xs]
        for name, xs in given_.items()
    }
    chain = proving.World(names)
    for name in ("weather", "note", "free"):
        releases = names.get(name, [])
        proven = prove(chain.document(name), chain.anchor)
        assert [
            (str(x.version), x.index, x.sha256, x.yanked, x.deprecated) for x in proven.releases
        ] == [(x.semver, i, x.sha256(name), x.yanked, x.deprecated) for i, x in enumerate(releases)]
        assert proven.record is not None
        assert proven.record.claimed is (name in names)
        for release in releases:
            (exact,) = prove(chain.document(name, release.semver), chain.anchor).releases
            assert (str(exact.version), exact.yanked) == (release.semver, release.yanked)
        assert prove(chain.document(name, "99.0.0"), chain.anchor).releases == ()
        best = latest(Version.parse(x.semver) for x in releases if not x.yanked)
        if best is not None:
            answer = chain.answer(name)
            assert answer["semver"] == str(best)
            check_resolution(chain.document(name), chain.anchor, uri(name), answer)
        else:
            code = Code.YANKED if releases else Code.NOT_FOUND
            check_refusal(chain.document(name), chain.anchor, uri(name), code)


def test_a_document_survives_its_json(world: Any) -> None:
    for document in (world.document("weather"), world.document("weather", LONGEST)):
        again = Proof.parse(json.loads(json.dumps(document))).to_json()
        assert again == document
        assert document["schema"] == SCHEMA


def test_what_is_proven_is_told(world: Any) -> None:
    proven = prove(world.document("weather"), world.anchor)
    assert (proven.block.number, proven.block.hash) == (world.number, world.hash)
    assert proven.block.timestamp == 1_700_000_084
    assert proven.record is not None
    assert (proven.record.release_count, proven.record.owner.hex()[:4]) == (6, "f39f")


@pytest.mark.parametrize(
    ("asked", "semver"),
    [
        ("weather", "1.3.0"),
        ("weather@^1.1", "1.3.0"),
        ("weather@<1.3", "1.1.0"),
        ("weather@1.2.0", "1.2.0"),  # yanked: an exact request finds it
        ("weather@>=2.0.0-rc.0", "2.0.0-rc.1"),
        ("weather@>=1.0.0 <=2.0.0-rc.1", "2.0.0-rc.1"),  # not the latest, but the highest
        (f"weather@{LONGEST}", LONGEST),
    ],
)
def test_a_list_proves_what_a_uri_means(world: Any, asked: str, semver: str) -> None:
    answer = world.answer("weather", semver)
    check_resolution(world.document("weather"), world.anchor, uri(asked), answer)
    newer = world.answer("weather", "1.0.0")
    assert f"holds {semver} for" in why(world.document("weather"), world.anchor, asked, newer)


def test_one_version_is_proven_by_its_own_slots(world: Any) -> None:
    for semver in ("1.0.0", "1.2.0", LONGEST):
        document = world.document("weather", semver)
        assert len(document["slots"]) == (2 if semver != LONGEST else 5)
        answer = world.answer("weather", semver)
        check_resolution(document, world.anchor, uri(f"weather@{semver}"), answer)


@pytest.mark.parametrize(
    ("asked", "semver", "code"),
    [
        ("weather@9.0.0", "9.0.0", Code.NOT_FOUND),
        ("weather@9.0.0", None, Code.NOT_FOUND),
        ("weather@^9", None, Code.NOT_FOUND),
        ("weather@~1.2", None, Code.YANKED),
        ("claimed", None, Code.NOT_FOUND),
        ("free", None, Code.NOT_FOUND),
        ("free@1.0.0", "1.0.0", Code.NOT_FOUND),
    ],
)
def test_a_refusal_is_proven(world: Any, asked: str, semver: str | None, code: Code) -> None:
    document = world.document(uri(asked).name, semver)
    assert not check_refusal(document, world.anchor, uri(asked), code).releases or semver is None
    other = Code.YANKED if code is Code.NOT_FOUND else Code.NOT_FOUND
    with pytest.raises(VerificationFailure):
        check_refusal(document, world.anchor, uri(asked), other)


@pytest.mark.parametrize("asked", ["weather", "weather@1.0.0", "weather@^1", "weather@1.2.0"])
@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.YANKED])
def test_a_release_cannot_be_denied(world: Any, asked: str, code: Code) -> None:
    with pytest.raises(VerificationFailure, match="the chain holds weather@"):
        check_refusal(world.document("weather"), world.anchor, uri(asked), code)


def test_a_deprecated_name_is_proven(proving: Any, world: Any) -> None:
    word = bytes.fromhex("000000010000000000000006") + proving.OWNER
    odd = proving.World(world.names, {slots.record_slot("weather"): word})
    answer = odd.answer("weather")
    assert "name_deprecated flag" in why(odd.document("weather"), odd.anchor, "weather", answer)
    answer["status"]["name_deprecated"] = True
    check_resolution(odd.document("weather"), odd.anchor, uri("weather"), answer)


# answers that are not the chain's -----------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"semver": "1.0.0"}, "the chain holds 1.3.0"),
        ({"semver": "1.4.0"}, "the chain holds 1.3.0"),
        ({"semver": None}, "semver is no version"),
        ({"semver": ["1.3.0"]}, "semver is no version"),
        ({"sha256": "00" * 32}, "sha256 is not"),
        ({"sha256": None}, "sha256 is not"),
        ({"ipfs_cid": "bafkqaaa"}, "ipfs_cid is not"),
        ({"cap_uri": "did:nuwa:cap:other@1.3.0"}, "cap_uri is not"),
        ({"status": {"yanked": True}}, "yanked flag is not"),
        ({"status": {"yanked": 0}}, "yanked flag is not"),
        ({"status": {"yanked": False, "deprecated": True}}, "answer's deprecated flag"),
        ({"status": {"yanked": False}}, "answer's deprecated flag"),
        (
            {"status": {"yanked": False, "deprecated": False, "name_deprecated": True}},
            "name_deprecated flag is not",
        ),
        ({"status": None}, "yanked flag is not"),
        ({"status": {}}, "yanked flag is not"),
    ],
)
def test_an_answer_that_is_not_the_chains_is_refused(
    world: Any, change: dict[str, Any], told: str
) -> None:
    answer = world.answer("weather") | change
    assert told in why(world.document("weather"), world.anchor, "weather", answer)


def test_an_old_release_with_a_valid_proof_of_it_is_refused(world: Any) -> None:
    """The lie that a proof of existence cannot show."""
    answer, existence = world.answer("weather", "1.0.0"), world.document("weather", "1.0.0")
    assert prove(existence, world.anchor).releases
    assert "of the version 1.0.0 alone" in why(existence, world.anchor, "weather", answer)
    assert "of the version 1.0.0 alone" in why(existence, world.anchor, "weather@^1", answer)
    whole = world.document("weather")
    told = why(whole, world.anchor, "weather", answer)
    assert "1.3.0" in told
    assert "hides" in told


def test_a_proof_of_another_name_or_chain_is_refused(world: Any) -> None:
    answer = world.answer("weather")
    other = world.document("other")
    assert "of other, not of weather" in why(other, world.anchor, "weather", answer)
    elsewhere = Anchor(1, world.anchor.contract, world.hash)
    assert "another contract" in why(world.document("weather"), elsewhere, "weather", answer)


def test_an_older_block_is_refused_by_a_newer_hash(world: Any, older: Any) -> None:
    answer = older.answer("weather")
    check_resolution(older.document("weather"), older.anchor, uri("weather"), answer)
    assert "not that of the trusted block" in why(
        older.document("weather"), world.anchor, "weather", answer
    )


def test_an_address_without_a_contract_proves_nothing(proving: Any, world: Any) -> None:
    bare = proving.World(world.names, code_hash=proving.keccak(b""))
    with pytest.raises(VerificationFailure) as caught:
        prove(bare.document("weather"), bare.anchor)
    assert "no code" in caught.value.why
    missing = {**world.document("weather"), "contract": "0x" + "ab" * 20}
    missing["account_proof"] = [
        "0x" + node.hex() for node in proving.proof_of(world.state, b"\xab" * 20)
    ]
    with pytest.raises(VerificationFailure) as caught:
        prove(missing, Anchor(world.chain_id, b"\xab" * 20, world.hash))
    assert "no contract" in caught.value.why


# what no registry keeps ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slot", "word", "told"),
    [
        (slots.record_slot("weather"), "00000002" + "00" * 28, "unknown flags"),
        (
            slots.record_slot("weather"),
            "00" * 8 + f"{MAX_RELEASES + 1:08x}" + "11" * 20,
            "more than 1000 releases",
        ),
        (
            slots.record_slot("weather"),
            "00" * 8 + "00000007" + "11" * 20,
            "must be proven next",
        ),  # one too many
        (
            slots.release_slot("weather", 0),
            "0405" + b"1.0.0".ljust(30, b"\0").hex(),
            "not that of a release",
        ),
        (
            slots.release_slot("weather", 0),
            "0005" + b"1.0.x".ljust(30, b"\0").hex(),
            "must be proven next",
        ),
        (slots.release_slot("weather", 0), "00" * 32, "not that of a release"),
        (slots.digest_slot("weather", "1.0.0"), "00" * 32, "has no digest"),
        (slots.long_semver_slots("weather", 2, 64)[0], "00" * 32, "not the string"),
        (slots.long_semver_slots("weather", 2, 64)[1], "ff" * 32, "can't decode"),
    ],
)
def test_storage_that_is_no_registrys_proves_nothing(
    proving: Any, world: Any, slot: bytes, word: str, told: str
) -> None:
    odd = proving.World(world.names, {slot: bytes.fromhex(word)})
    with pytest.raises(VerificationFailure) as caught:
        prove(odd.document("weather"), odd.anchor)
    assert caught.value.code is Code.BAD_PROOF
    assert told in caught.value.why


def of_account(proving: Any, encoded: bytes, slot: Any = None) -> tuple[Any, Anchor]:
    """A document from a block whose contract has this account, with one slot to show."""
    state = proving.trie_of({proving.CONTRACT: encoded})
    header = proving.encode_header(proving.block_json(7, state.root_hash))
    proof = Proof(
        proving.CHAIN_ID, proving.CONTRACT, 7, proving.keccak(header), header,
        proving.proof_of(state, proving.CONTRACT), "weather", "1.0.0", None,
        (slot or Slot(bytes(32), bytes(32), ()),),
    )  # fmt: skip
    return proof.to_json(), Anchor(proving.CHAIN_ID, proving.CONTRACT, proving.keccak(header))


@pytest.mark.parametrize(
    "account",
    [
        b"text",
        [b"\1", b"", b"\2" * 32],
        [b"\1", b"", b"\2" * 31, b"\3" * 32],
        [b"\1", b"", b"\2" * 32, b""],
        [b"\1", b"", [], b"\3" * 32],
    ],
)
def test_an_account_that_no_chain_keeps_proves_nothing(proving: Any, account: Any) -> None:
    document, anchor = of_account(proving, rlp.encode(account))
    assert "the account is malformed" in why(document, anchor, "weather@1.0.0", {})


@pytest.mark.parametrize("word", [b"", b"\0", b"\0\1", b"\1" * 33, [b"\1"]])
def test_a_word_that_no_chain_keeps_proves_nothing(proving: Any, word: Any) -> None:
    key = slots.digest_slot("weather", "1.0.0")
    storage = proving.trie_of({key: rlp.encode(word)})
    slot = Slot(key, bytes(32), proving.proof_of(storage, key))
    encoded = rlp.encode([b"\1", b"", storage.root_hash, proving.CODE_HASH])
    document, anchor = of_account(proving, encoded, slot)
    assert "is not a word" in why(document, anchor, "weather@1.0.0", {})


# what was touched ---------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.data())
def test_whatever_is_tampered_with_is_refused(
    proving: Any, tampering: Any, world: Any, older: Any, seed: int, data: Any
) -> None:
    name, semver = data.draw(
        st.sampled_from(
            [("weather", None), ("other", None), ("weather", "1.0.0"), ("weather", LONGEST)]
        )
    )
    document = world.document(name, semver)
    case = tampering.Case(
        document,
        older.document(name, semver),
        {
            "contract": "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
            "account_proof": [
                "0x" + x.hex() for x in proving.proof_of(world.state, proving.OTHER_CONTRACT)
            ],
        },
        "note",
        random.Random(seed),  # noqa: S311 - which bit is flipped is not a secret
    )
    kind = data.draw(st.sampled_from(tampering.kinds_for(document)))
    asked = name if semver is None else f"{name}@{semver}"
    why(tampering.tampered(kind, case), world.anchor, asked, world.answer(name, semver))


def test_the_index_is_that_of_the_version(world: Any) -> None:
    document, answer = world.document("weather", "1.0.0"), world.answer("weather", "1.0.0")
    missing = document | {"index": None}
    assert "index of the release is missing" in why(missing, world.anchor, "weather@1.0.0", answer)
    keys = [slots.digest_slot("weather", "1.0.0"), slots.release_slot("weather", 1)]
    other = world.document_of(keys, "weather", "1.0.0", 1)
    assert "at index 1 is 1.1.0" in why(other, world.anchor, "weather@1.0.0", answer)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"block_hash": "0x" + "11" * 31}, "31 bytes, not 32"),
        ({"block_hash": "0x" + "1G" * 32}, "not hexadecimal"),
        ({"name": 5}, "a string is expected"),
        ({"header": None}, "a string is expected"),
        ({"more": 1}, "does not have just"),
        ({"kind": "each"}, "each"),
        ({"slots": []}, "no slots"),
    ],
)
def test_a_document_of_another_shape_says_what_is_wrong(
    world: Any, change: dict[str, Any], told: str
) -> None:
    document = world.document("weather", "1.0.0") | change
    assert told in why(document, world.anchor, "weather@1.0.0", {})


@given(ANY_JSON)
def test_any_json_is_refused(world: Any, document: Any) -> None:
    why(document, world.anchor, "weather", {})


@given(st.data())
def test_any_json_at_any_place_is_refused(world: Any, data: Any) -> None:
    document = world.document("weather", LONGEST)
    place: Any = document
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    wrong = data.draw(ANY_JSON)
    if wrong != place[key] or type(wrong) is not type(place[key]):
        place[key] = wrong
        why(document, world.anchor, f"weather@{LONGEST}", world.answer("weather", LONGEST))


@given(ANY_JSON)
def test_any_answer_is_refused(world: Any, answer: Any) -> None:
    given_ = answer if isinstance(answer, dict) else {"semver": answer}
    why(world.document("weather"), world.anchor, "weather", given_)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=60))
def test_a_lying_hash_gives_only_errors_of_ours(
    proving: Any, world: Any, root: bytes, node: bytes
) -> None:
    """Whoever trusts a hash that no block has must still not crash."""
    document = world.document("weather")
    for roots in (root, proving.keccak(node)):
        header = proving.encode_header(proving.block_json(7, roots))
        document |= {"header": "0x" + header.hex(), "account_proof": ["0x" + node.hex()]}
        document["block_hash"] = "0x" + proving.keccak(header).hex()
        anchor = Anchor(world.chain_id, world.anchor.contract, proving.keccak(header))
        with pytest.raises(CapdexError):
            prove(document, anchor)


def test_a_document_over_its_bounds_is_not_read(world: Any) -> None:
    document = world.document("weather", "1.0.0")
    slot = document["slots"][0]
    for change, told in [
        ({"slots": [slot] * 6000}, "too many"),
        ({"slots": [{**slot, "proof": ["0x" + "00" * 1000] * 60}] * 150}, "too large"),
        ({"slots": [{**slot, "proof": ["0x00"] * 70}]}, "too long"),
        ({"account_proof": ["0x" + "00" * 2000]}, "too large"),
        ({"block_number": 2**64}, "an unsigned"),
        ({"block_number": True}, "an unsigned"),
    ]:
        assert told in why(document | change, world.anchor, "weather@1.0.0", {})


def test_a_thousand_releases_are_proven(proving: Any) -> None:
    releases = [proving.Release(f"1.{i}.0", yanked=i % 7 == 0) for i in range(MAX_RELEASES)]
    chain = proving.World({"weather": releases})
    proven = prove(chain.document("weather"), chain.anchor)
    assert len(proven.releases) == MAX_RELEASES
    check_resolution(
        chain.document("weather"), chain.anchor, uri("weather"), chain.answer("weather")
    )
