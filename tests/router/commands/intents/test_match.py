"""Sentences and intents: plain requests arrive, and no unsafe sentence reaches a guarded intent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, InvalidInput
from capdex_router.commands.intents.manifest import (
    CommandManifest,
    CommandTool,
    parse_capability,
    parse_intent,
    parse_manifest,
)
from capdex_router.commands.intents.match import is_guarded, match

DATA = Path(__file__).parents[1] / "data"
INBOX = CommandTool(
    CommandManifest("email", "inboxd", "", "1.0.0", "inbox"),
    parse_capability((DATA / "inboxd.json").read_bytes()),
)
RG = CommandTool(
    parse_manifest((DATA / "rg.json").read_bytes()),
    parse_capability((DATA / "rg.json").read_bytes()),
)
UNSAFE = (DATA / "unsafe.txt").read_text("utf-8").splitlines()
PLAIN = [
    line.split(" | ")
    for line in (DATA / "plain.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def reached(want: str) -> str | None:
    try:
        return match(want, (INBOX, RG)).intent.patterns[0]
    except InvalidInput:
        return None


def test_there_are_two_hundred_unsafe_sentences() -> None:
    assert len(set(UNSAFE)) >= 200


@pytest.mark.parametrize("want", UNSAFE)
def test_an_unsafe_sentence_reaches_no_guarded_intent(want: str) -> None:
    assert reached(want) != "delete emails"


def test_nine_of_ten_plain_requests_reach_their_intent() -> None:
    missed = [want for pattern, want in PLAIN if reached(want) != pattern]
    assert len(missed) <= len(PLAIN) // 10, missed


def test_a_plain_order_reaches_a_guarded_intent() -> None:
    assert reached("delete these emails") == "delete emails"


@pytest.mark.parametrize(
    ("want", "intent"),
    [
        ("restore emails", "restore emails"),
        ("undo delete", "restore emails"),
        ("recover messages", "restore emails"),
        ("undelete my messages", "restore emails"),
        ("do not delete emails", None),
        ("show my emails", "analyze emails"),
        ("e", None),
        ("unread count", "check email"),
        ("delete", None),
    ],
)
def test_sentences_that_the_reference_router_gets_wrong(want: str, intent: str | None) -> None:
    assert reached(want) == intent


def test_invisible_and_wide_letters_hide_no_negation() -> None:
    assert reached("do n\u200bot delete emails") is None
    assert reached("ｎｅｖｅｒ delete emails") is None


def test_what_is_asked_back_names_candidates() -> None:
    with pytest.raises(InvalidInput) as refused:
        match("do not delete emails", (INBOX,))
    assert refused.value.code == Code.AMBIGUOUS
    assert refused.value.details is not None
    assert {"tool": "inboxd", "domain": "email", "pattern": "delete emails"} in (
        refused.value.details["candidates"]
    )


def test_two_tools_with_one_pattern_are_asked_back() -> None:
    other = CommandTool(CommandManifest("email", "other", "", "1", "other"), INBOX.intents)
    with pytest.raises(InvalidInput) as refused:
        match("restore emails", (INBOX, other))
    assert refused.value.code == Code.AMBIGUOUS


@pytest.mark.parametrize("want", ["sing a song", "zzz"])
def test_a_wish_that_nothing_comes_near_is_not_found(want: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        match(want, (INBOX, RG))
    assert refused.value.code == Code.NOT_FOUND


def test_a_command_that_removes_is_guarded_though_its_file_does_not_say_so() -> None:
    def intent(pattern: str, command: str) -> bool:
        return is_guarded(parse_intent({"patterns": [pattern], "command": command}))

    assert intent("tidy up", "inbox purge")
    assert intent("tidy up", "tar --delete")
    assert intent("wipe disk", "dd of=x")
    assert intent("re:wipe|tidy", "x")
    assert not intent("undo delete", "inbox restore")


@pytest.mark.parametrize("want", ["", " ", "x" * 3_000])
def test_a_wish_is_bounded(want: str) -> None:
    with pytest.raises(InvalidInput):
        match(want, (INBOX,))


NOT = st.sampled_from(["not", "never", "don't", "no", "without", "DON’T", "nothing"])
SAID = ("please", "delete", "these", "emails", "messages", "trash", "now", "my", "all", "remove")
WORDS = st.sampled_from(SAID)


@given(st.lists(WORDS, max_size=8), NOT, st.lists(WORDS, max_size=8))
def test_a_negation_anywhere_reaches_nothing(head: list[str], no: str, tail: list[str]) -> None:
    assert reached(" ".join([*head, no, *tail])) is None


@given(st.text(max_size=80))
def test_any_text_is_matched_or_refused(want: str) -> None:
    try:
        match(want, (INBOX, RG))
    except CapdexError:
        return
