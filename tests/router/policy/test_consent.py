"""Questions as texts: in pages where they are long, or by a command where they are too long."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import orjson
import pytest

from capdex.errors import Code, Refused
from capdex.json import Json
from capdex_router.model.requests import HostRequest
from capdex_router.policy.consent import (
    MAX_PAGES,
    PAGE_CHARS,
    Refuse,
    clean,
    needs_person,
    pages,
    text,
)
from capdex_router.policy.grants import Grant
from capdex_router.policy.proposal import Access, Proposal, accessed


def proposal(accesses: int = 1, **given: object) -> Proposal:
    input_ = orjson.dumps(given, option=orjson.OPT_SORT_KEYS) if given else None
    return Proposal(
        "call", "Let x#t@1.0.0 do this?", "x#t", "1.0.0", "ab" * 32, ("capdex", "grant", "x#t"),
        accesses=tuple(
            Access(f"host:h{number}.example.org", (f"GET https://h{number}.example.org/",))
            for number in range(accesses)
        ),
        input=input_,
        words=(("description", 'It is safe."\nproof: proven'),),
    )  # fmt: skip


def test_a_question_that_fits_is_one_page() -> None:
    asked = proposal(to="a@b.example")
    assert pages(asked) == [text(asked)]
    assert text(asked).splitlines() == [
        "Let x#t@1.0.0 do this?",
        "  GET https://h0.example.org/",
        "  input:",
        '    to: "a@b.example"',
        "  content: sha256 " + "ab" * 32,
        "description (the package's own words): " + r'"It is safe.\"\nproof: proven"',
    ]


@pytest.mark.parametrize(
    ("capability_id", "whose"),
    [
        ("did:nuwa:cap:x#t", "the package's own words"),
        ("mcp:x#t", "the server's own words"),
        ("learned:x#t", "the words of its help or its intents"),
    ],
)
def test_a_question_says_whose_words_it_quotes(capability_id: str, whose: str) -> None:
    last = text(replace(proposal(), capability_id=capability_id)).splitlines()[-1]
    assert last.startswith(f"description ({whose}): ")


@pytest.mark.parametrize(
    ("body", "given", "shown"),
    [
        ({"a": 1, "b": True}, {"b": True, "a": 1}, ["  with the input as its JSON body"]),
        ({"a": True}, {"a": 1}, ["  with the JSON body:", "    a: true"]),
        ({"a": 1.0}, {"a": 1}, ["  with the JSON body:", "    a: 1.0"]),
        (5, {"v": 5}, ["  with the JSON body:", "    5"]),
        ("text", {"v": "text"}, ["  with the JSON body:", '    "text"']),
        (False, {"v": False}, ["  with the JSON body:", "    false"]),
        (None, {"v": None}, ["  with the JSON body:", "    null"]),
        ([], {"v": []}, ["  with an empty JSON body"]),
    ],
)  # fmt: skip
def test_a_body_is_shown_as_it_is_sent(body: object, given: Json, shown: list[str]) -> None:
    request = HostRequest("POST", "https", "a.b", 443, "/", body=orjson.dumps(body))
    assert accessed(request, given).lines == ("POST https://a.b/", *shown)


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("X-Key", "header X-Key"),
        ("query key", "query key"),
        ("cookie key", "cookie key"),
    ],
)
def test_what_goes_beside_a_request_is_shown(place: str, shown: str) -> None:
    request = HostRequest(
        "GET", "https", "a.b", 443, "/", "x=1&y", (("X-A", "v"),), secrets=(("KEY", place),)
    )
    assert accessed(request).lines == (
        "GET https://a.b/",
        "  with the query x=1&y",
        '  with the header X-A: "v"',
        f"  with the secret KEY in the {shown}",
    )


def test_the_log_and_programs_are_told_what_is_asked() -> None:
    asked = Proposal(
        "call", "Let x#t do this?", "x#t", "1.0.0", "ab" * 32, ("capdex", "grant", "x#t"),
        signer="did:key:z6Mk", accesses=(Access("host:h", ("GET h", "  with the query x")),) * 2,
        input=b"{}", input_sha256="cd" * 32, granted=("host:h",), days=30,
    )  # fmt: skip
    audited = {
        "capability_id": "x#t", "version": "1.0.0", "digest": "ab" * 32, "signer": "did:key:z6Mk",
        "touches": ["GET h", "GET h"], "asked": ["host:h"], "input_sha256": "cd" * 32,
    }  # fmt: skip
    assert asked.audited() == audited
    assert asked.to_json() == audited | {
        "kind": "call", "summary": "Let x#t do this?", "command": "capdex grant 'x#t'",
        "lines": [
            *(["GET h", "  with the query x"] * 2), "input: nothing", "signed by: did:key:z6Mk",
            "content: sha256 " + "ab" * 32, "granted for 30 days: host:h",
        ],
    }  # fmt: skip
    assert asked.grants(1.0) == [Grant("x#t", "ab" * 32, "*", "host:h", 1.0 + 30 * 86_400)]
    plain = replace(asked, signer="", input=None, input_sha256=None, days=None)
    assert plain.audited().keys() == audited.keys() - {"signer", "input_sha256"}
    assert plain.to_json()["lines"][-1] == "granted as long as the content is the same: host:h"
    assert plain.grants(1.0)[0].until is None
    assert needs_person(asked).details == {"touches": ["GET h", "GET h"]}


def test_an_answer_is_for_one_proposal() -> None:
    asked = replace(proposal(1, to="a"), granted=("host:h0.example.org",))
    others: dict[str, Any] = {
        "kind": "install", "summary": "Let x?", "capability_id": "y#t", "version": "1.0.1",
        "digest": "cd" * 32, "command": ("capdex",), "signer": "did:key:z6Mk", "tool": "t",
        "accesses": (Access("host:h0.example.org", ("POST /",)),), "input": b'{"to":"b"}',
        "input_sha256": "ab" * 32, "changes": ("new",), "facts": ("big",), "words": (),
        "granted": (), "days": 30.0,
    }  # fmt: skip
    assert others.keys() == {field.name for field in fields(Proposal)}
    keys = {replace(asked, **{name: value}).key for name, value in others.items()}
    assert len(keys | {asked.key, replace(asked, input=None).key}) == len(others) + 2
    assert replace(asked).key == asked.key


def test_a_line_that_is_longer_than_a_page_is_a_page() -> None:
    asked = replace(proposal(), summary="x" * (PAGE_CHARS + 1), words=())
    first, second = pages(asked)
    assert first.split("\n") == [
        asked.summary, "Page 1 of 2: a yes shows the next, and does nothing."
    ]  # fmt: skip
    assert second.startswith("  GET ")


def test_a_longer_one_has_pages_whose_lines_are_whole_and_complete() -> None:
    asked = proposal(300)
    found = pages(asked)
    assert 1 < len(found) <= MAX_PAGES
    assert all(len(page) < PAGE_CHARS + 200 for page in found)
    lines = [line for page in found for line in page.split("\n")[:-1]]
    assert lines == text(asked).split("\n")
    assert found[0].endswith(f"Page 1 of {len(found)}: a yes shows the next, and does nothing.")
    assert found[-1].endswith("a yes agrees to all pages.")


def test_what_no_dialog_can_show_is_told_with_the_command_that_shows_it() -> None:
    asked = proposal(numbers=list(range(10_000)))
    with pytest.raises(Refused) as caught:
        pages(asked)
    assert caught.value.code is Code.CONFIRM_NEEDED
    assert caught.value.why == f"it fills more than {MAX_PAGES} questions"
    assert "capdex call 'x#t@1.0.0' - --plan" in caught.value.fix
    with pytest.raises(Refused) as caught:
        pages(replace(asked, kind="install"))
    assert caught.value.fix == "a person can run: capdex grant 'x#t'"


async def test_where_nobody_can_be_asked_the_command_is_told() -> None:
    with pytest.raises(Refused) as caught:
        await Refuse().ask(proposal())
    assert caught.value.why == "Let x#t@1.0.0 do this?"
    assert caught.value.fix == "a person can run: capdex grant 'x#t'"
    assert (caught.value.details or {})["touches"] == ["GET https://h0.example.org/"]


@pytest.mark.parametrize(("accesses", "more"), [(8, []), (9, ["and 1 more"])])
async def test_an_error_names_the_first_of_very_many_accesses(
    accesses: int, more: list[str]
) -> None:
    with pytest.raises(Refused) as caught:
        await Refuse().ask(proposal(accesses))
    touches = (caught.value.details or {})["touches"]
    assert touches == [*(f"GET https://h{x}.example.org/" for x in range(8)), *more]


@pytest.mark.parametrize("text", ["می\u200cخواهم", "श्\u200dरी", "👩\u200d💻 and 🏳\ufe0f\u200d🌈"])
def test_a_cleaned_text_keeps_the_joiners_of_a_script_and_an_emoji(text: str) -> None:
    assert clean(text) == text


def test_a_cleaned_text_has_nothing_that_does_not_show() -> None:
    hidden = "\U000e0100\ufe00\u034f\u3164\u115f\u2800\u17b4\u180b\U000e0041\u200b\u202e\x1b"
    assert clean(f"a{hidden}b\nc 👩\u200d💻❤\ufe0f") == "ab c 👩\u200d💻❤\ufe0f"


@pytest.mark.parametrize(("length", "shown"), [(9, 9), (10, 10), (11, 9), (99, 9)])
def test_a_cleaned_text_is_cut_to_its_limit(length: int, shown: int) -> None:
    assert clean("x" * length, 10) == "x" * shown + "…" * (length > 10)
    assert clean(f"{'x ' * length}", 2 * length) == " ".join("x" * length)
