"""Capability names and URIs (P1)."""

import pytest
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.uri import MAX_NAME_CHARS, MAX_URI_CHARS, CapabilityURI, check_name, name_id, skeleton
from capdex.version import Version, VersionRange


@pytest.mark.parametrize("name", ["ab", "a1", "note", "weather-reporter", "a-0-b", "x" * 64])
def test_a_name_of_the_rules_is_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", "a", "1a", "-a", "a-", "a--b", "A", "Note", "note_x", "note.x", "note ", " note",
        "note\n", "nöte", "ｎote", "noté", "n\u200bote", "аb", "x" * 65, "a@b", "a/b", "a²",
    ],
)  # fmt: skip
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [("paypal", "paypa1"), ("google", "g00gle"), ("list", "1lst"), ("a-b", "ab"), ("i1", "ll")],
)
def test_names_that_look_alike_share_a_skeleton(one: str, other: str) -> None:
    assert skeleton(one) == skeleton(other)


def test_names_that_look_different_do_not_share_a_skeleton() -> None:
    assert skeleton("modern") != skeleton("modem")  # rn and m only warn
    assert skeleton("note") == "note"


def test_a_name_id_is_the_keccak_of_its_text() -> None:
    assert name_id("note") == keccak(b"note")


def test_a_uri_names_the_latest_an_exact_version_or_a_range() -> None:
    assert CapabilityURI.parse("did:nuwa:cap:note") == CapabilityURI("note")
    assert CapabilityURI.parse("did:nuwa:cap:note@1.2.3").version == Version(1, 2, 3)
    wanted = CapabilityURI.parse("did:nuwa:cap:note@^1.2 || 3")
    assert wanted.selector == VersionRange.parse("^1.2 || 3")
    assert str(wanted) == "did:nuwa:cap:note@^1.2 || 3"


@pytest.mark.parametrize(
    "text",
    [
        "", "note", "did:nuwa:cap:", "did:nuwa:cap:note@", "did:nuwa:cap:note@ ",
        "did:nuwa:cap:@1.0.0",
        "did:nuwa:cap:note@latest", "did:nuwa:cap:note@1.0.0@2.0.0", "did:nuwa:cap:note@1.0.0#tool",
        "did:nuwa:cap:note#tool", "did:nuwa:cap:note?x", "did:nuwa:cap:note/x", "DID:nuwa:cap:note",
        "did:nuwa:CAP:note", "did:web:note", " did:nuwa:cap:note", "did:nuwa:cap:note\n",
        "did:nuwa:cap:note@1.0.0\n", "did:nuwa:cap:note@v1.0.0", "did:nuwa:cap:note@1.0.0+b",
        "did:nuwa:cap:note%40" + "1.0.0", "did:nuwa:cap:note@" + "1" * MAX_URI_CHARS,
    ],
)  # fmt: skip
def test_what_is_not_a_capability_uri_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        CapabilityURI.parse(text)


@pytest.mark.parametrize(
    "text", ["did:nuwa:cap:note", "did:nuwa:cap:note@^1", "did:nuwa:cap:note@1"]
)
def test_a_published_uri_must_be_exact(text: str) -> None:
    with pytest.raises(InvalidInput):
        CapabilityURI.exact(text)
    with pytest.raises(InvalidInput):
        _ = CapabilityURI.parse(text).version


@pytest.mark.parametrize("text", ["Note@^1", "NOTE @^1", "<note>@^1", "_note@^1", "ñotě@^1"])
def test_a_uri_with_a_name_that_is_none_is_answered_with_one_that_is_read(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        CapabilityURI.parse(f"did:nuwa:cap:{text}")
    said = raised.value.fix.removeprefix("write ")
    assert CapabilityURI.parse(said) == CapabilityURI.parse("did:nuwa:cap:note@^1")


def test_a_person_may_leave_out_the_prefix() -> None:
    assert CapabilityURI.loose("note@1.0.0") == CapabilityURI.parse("did:nuwa:cap:note@1.0.0")
    assert CapabilityURI.loose("did:nuwa:cap:note") == CapabilityURI("note")
    with pytest.raises(InvalidInput):
        CapabilityURI.loose("did:web:note")


names = st.from_regex(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", fullmatch=True).filter(
    lambda name: 2 <= len(name) <= MAX_NAME_CHARS
)


@given(names, st.sampled_from(["", "@1.2.3", "@1.2.3-rc.1", "@^1", "@1 - 2", "@*"]))
def test_every_uri_survives_reading_and_writing(name: str, selector: str) -> None:
    text = f"did:nuwa:cap:{name}{selector}"
    assert str(CapabilityURI.parse(text)) == text
    assert len(name_id(name)) == 32
    assert skeleton(skeleton(name)) == skeleton(name)


@given(st.text(max_size=80) | st.text(max_size=40).map("did:nuwa:cap:{}".format))
def test_reading_a_uri_raises_nothing_but_invalid_input(text: str) -> None:
    for parse in (CapabilityURI.parse, CapabilityURI.exact, CapabilityURI.loose):
        try:
            uri = parse(text)
        except InvalidInput:
            continue
        assert str(uri) in (text, f"did:nuwa:cap:{text}")


@pytest.mark.parametrize(
    ("wanted", "found", "admitted"),
    [
        ("weather", "weather@1.2.0", True),
        ("weather@^1", "weather@1.2.0", True),
        ("weather@1.2.0", "weather@1.2.0", True),
        ("weather", "tides@1.2.0", False),
        ("weather@^1", "tides@1.2.0", False),
        ("weather@^2", "weather@1.2.0", False),
        ("weather@1.2.1", "weather@1.2.0", False),
    ],
)
def test_a_uri_admits_the_releases_that_it_may_mean(
    wanted: str, found: str, admitted: bool
) -> None:
    assert CapabilityURI.loose(wanted).admits(CapabilityURI.loose(found)) is admitted
