"""CIDs: one spelling each, sha2-256 only (P3)."""

import contextlib
import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiformats import multibase
from multiformats.cid import CID

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid, spells


@given(st.binary(max_size=200))
def test_the_cid_of_bytes_names_these_bytes_alone(data: bytes) -> None:
    cid = Cid.of(data)
    assert Cid.parse(str(cid)) == cid
    assert cid.digest == hashlib.sha256(data).digest()
    assert cid.matches(data)
    assert not cid.matches(data + b"\0")
    assert bytes(CID.decode(str(cid)).hash.digest) == cid.digest


def test_a_raw_cid_takes_a_whole_digest() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Cid.raw(b"short")


OTHER_BASES = (
    *("base2", "base8", "base10", "base16", "base16upper", "base36", "base36upper", "base58btc"),
    *("base32upper", "base32hex", "base32hexupper", "base32pad", "base32z", "base58flickr"),
    *("base64", "base64pad", "base64url", "base64urlpad", "base256emoji"),
)


@pytest.mark.parametrize("base", OTHER_BASES)
def test_a_cid_in_another_base_is_refused(base: str) -> None:
    cid = Cid.of(b"package")
    assert multibase.encode("base32", cid.to_bytes()) == cid.text
    text = multibase.encode(base, cid.to_bytes())
    with pytest.raises(InvalidInput, match="not an accepted CID"):
        Cid.parse(text)


@given(st.text(max_size=80) | st.from_regex(r"(bafk|bafy|Qm|z|f01)[a-z0-9]{0,60}", fullmatch=True))
def test_reading_a_cid_raises_nothing_but_invalid_input(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert str(Cid.parse(text)) == text


@given(st.integers(0, 58), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_no_second_spelling_of_a_cid_is_taken(index: int, character: str) -> None:
    cid = Cid.of(b"package")
    text = cid.text[:index] + character + cid.text[index + 1 :]
    try:
        other = Cid.parse(text)
    except InvalidInput:
        return
    assert (other == cid) == (text == cid.text)
    assert (other.digest == cid.digest and other.codec == cid.codec) == (other == cid)


@given(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 58),
    st.sampled_from("abcdefghijklmnopqrstuvwxyz234567A018_ +-é\0\ud800"),
)
def test_a_raw_cid_is_read_as_the_library_reads_it(
    digest: bytes, index: int, character: str
) -> None:
    text = Cid.raw(digest).text
    assert Cid.parse(text) == Cid._read(text) == Cid.raw(digest)
    assert spells(text, digest)
    assert not spells(text, digest[:-1])
    assert not spells(text, digest + b"\0")
    other = text[:index] + character + text[index + 1 :]
    assert spells(other, digest) == (other == text)

    def outcome(read: Callable[[str], Cid]) -> object:
        try:
            return read(other)
        except InvalidInput as error:
            return error.message, error.why

    assert outcome(Cid.parse) == outcome(Cid._read)


def test_no_other_cid_spells_a_digest() -> None:
    digest = bytes(range(32))
    for data in (b"\x12\x20" + digest, b"\x01\x70\x12\x20" + digest):
        assert not spells(Cid.from_bytes(data).text, digest)
