"""What owners say against their releases and names is told with every answer, and changes none."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.uri import CapabilityURI
from capdex_indexer.query.index import Index
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.store import Store
from tests.indexer.found import search_page

SAID = ("deprecated", "deprecation_message", "name_deprecated", "name_message", "replaced_by")


def resolve(index: Index, text: str) -> IndexedRelease:
    return index.resolve(CapabilityURI.loose(text))


def said(found: IndexedRelease) -> tuple[Any, ...]:
    return tuple(getattr(found, one) for one in SAID)


NOTHING = (False, "", False, "", "")


def test_a_deprecated_release_is_resolved_as_before_with_a_warning_and_sinks_in_a_search(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    for name in ("note", "note-taker"):
        for version in ("1.0.0", "1.1.0"):
            chain.publish(name, version, summary="keeps notes")
    making.follow(store, chain)
    before = search_page(search_index, "keeps notes")
    chain.mine(making.deprecated("note", "1.1.0", "it is slow"))
    making.append(store, chain)
    for asked in ("note", "note@^1", "note@1.1.0"):
        found = resolve(search_index, asked)
        assert (found.semver, *said(found)) == ("1.1.0", True, "it is slow", *NOTHING[2:])
        assert found.warnings == ['this release is deprecated: "it is slow"']
    assert said(resolve(search_index, "note@1.0.0")) == NOTHING
    after = search_page(search_index, "keeps notes")
    assert [x.release.name for x in before.hits] == ["note", "note-taker"]
    assert [(x.release.name, x.release.deprecated) for x in after.hits] == [
        ("note-taker", False),
        ("note", True),
    ]
    assert after.total == before.total


def test_a_deprecated_name_says_what_to_use_instead_with_each_of_its_releases(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", "1.0.0")
    chain.mine(making.name_deprecated("note", "no time for it", "memo"))
    chain.publish("note", "1.1.0")
    chain.publish("memo")
    making.follow(store, chain)
    owners = "by its owner, who names did:nuwa:cap:memo in its place"
    warning = f'note is deprecated {owners}: "no time for it"'
    for found in search_index.releases("note"):
        assert said(found) == (False, "", True, "no time for it", "memo")
        assert found.warnings == [warning]
    assert search_page(search_index, "note").hits[0].release.warnings == [warning]
    assert said(resolve(search_index, "memo")) == NOTHING


@pytest.mark.parametrize(
    ("message", "replaced_by", "warning"),
    [
        ("", "", "note is deprecated by its owner"),
        ("dead", "", 'note is deprecated by its owner: "dead"'),
        ("", "memo", "note is deprecated by its owner, who names did:nuwa:cap:memo in its place"),
    ],
)
def test_a_warning_says_no_more_than_the_owner_did(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    message: str,
    replaced_by: str,
    warning: str,
) -> None:
    chain.mine(chain.release("note"), making.name_deprecated("note", message, replaced_by))
    chain.mine(making.deprecated("note", "1.0.0", ""), making.yanked("note", "1.0.0", "leaks"))
    making.follow(store, chain)
    assert resolve(search_index, "note@1.0.0").warnings == [
        'this release was yanked: "leaks"',
        "this release is deprecated",
        warning,
    ]


def test_the_latest_word_counts_and_a_reorg_takes_it_back(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.follow(store, chain)
    words = []
    for events in (
        [making.deprecated(message="one"), making.name_deprecated(replaced_by="memo")],
        [making.undeprecated()],
        [making.of_name("NameUndeprecated")],
        [making.name_deprecated(message="two"), making.deprecated(message="two")],
    ):
        words.append(said(resolve(search_index, "note")))
        chain.mine(*events)
        making.append(store, chain)
    assert words == [
        NOTHING,
        (True, "one", True, "unmaintained", "memo"),
        (False, "", True, "unmaintained", "memo"),
        NOTHING,
    ]
    assert said(resolve(search_index, "note")) == (True, "two", True, "two", "")
    for expected in reversed(words):
        store.rollback(chain.fork(1))
        assert said(resolve(search_index, "note")) == expected


def test_a_name_may_be_deprecated_before_it_has_a_release(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(making.of_name("Claimed"), making.name_deprecated(replaced_by="memo"))
    assert search_index.releases("note") == []
    chain.publish("note")
    making.follow(store, chain)
    assert resolve(search_index, "note").replaced_by == "memo"


def test_a_deprecation_of_nothing_is_kept_and_concerns_nothing(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    """Our contract emits none of these; another might."""
    topic, _, account, body = making.deprecated()
    of_another = (topic, b"\x05" * 32, account, body)
    wrong = [of_another, making.deprecated(version="1"), making.deprecated("N\0")]
    wrong += [making.name_deprecated(x) for x in ("N", "note@1.0.0", "")]
    wrong += [making.name_deprecated(replaced_by=x) for x in ("N", "note@1.0.0", "\0")]
    chain.mine(making.deprecated(), chain.release("note"), chain.release("note"), *wrong)
    making.follow(store, chain)
    assert [said(x) for x in search_index.releases("note")] == [NOTHING, NOTHING]
    assert search_index.status().undecodable == len(wrong)


def test_of_two_announcements_of_a_version_only_the_one_that_stands_is_deprecated(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note"), chain.release("note"), making.deprecated())
    making.follow(store, chain)
    assert [x.deprecated for x in search_index.releases("note")] == [True, False]


def test_a_message_of_any_text_is_kept_readable(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    topic, name_id, account, _ = making.deprecated()
    broken = (("uint64", "string", "string", "bytes"), ("note", "1.0.0", b"\xff\0 old"))
    long = making.name_deprecated(message="\0" + "é" * 2000)
    chain.mine(chain.release("note"), (topic, name_id, account, broken), long)
    making.follow(store, chain)
    found = resolve(search_index, "note")
    assert found.deprecation_message == "\N{REPLACEMENT CHARACTER}\N{SYMBOL FOR NULL} old"
    assert found.name_message.startswith("\N{SYMBOL FOR NULL}é")
    assert found.name_message.endswith("…")


def test_no_event_of_the_contract_is_an_error(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    account = "0x" + "11" * 20
    of_account = {"address": account}
    chain.mine(
        making.of_name("Claimed"),
        making.of_name("MaintainerAdded", **of_account),
        making.of_name("MaintainerRemoved", **of_account),
        making.of_name("TransferOffered", **of_account),
        making.of_name("TransferCancelled"),
        making.of_name("Transferred", **of_account),
        making.of_name("Sponsored", address=account, uint256=7),
        chain.release("note"),
        making.deprecated(),
        making.undeprecated(),
        making.yanked(),
        making.unyanked(),
        making.name_deprecated(),
        making.of_name("NameUndeprecated"),
        making.of_name("Renounced"),
        making.committed(),
    )
    making.follow(store, chain)
    state = search_index.status()
    assert (state.log_count, state.undecodable, state.rejections) == (16, 0, [])


def test_a_message_shows_each_character_of_an_owners_words_that_nobody_would_see(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    unseen = "".join(map(chr, (0x202E, 0x200B, 0xE0049, 0xFE01)))  # bidi, blank, tag, selector
    chain.mine(chain.release("note"), making.name_deprecated("note", f"old{unseen}"))
    chain.mine(making.yanked("note", "1.0.0", f"bad{unseen}\u00a0\u4e2d\n"))
    making.follow(store, chain)
    escapes = r"\u202e\u200b\udb40\udc49\ufe01"
    assert resolve(search_index, "note@1.0.0").warnings == [
        f'this release was yanked: "bad{escapes}\u00a0\u4e2d\\n"',
        f'note is deprecated by its owner: "old{escapes}"',
    ]
    with pytest.raises(InvalidInput) as refusal:
        resolve(search_index, "note")
    assert refusal.value.why == f'the reason given: "bad{escapes}\u00a0\u4e2d\\n"'
