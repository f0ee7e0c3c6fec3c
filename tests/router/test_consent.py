"""What a person agrees to is what happens: properties of questions, grants and what is sent.

Whatever is granted, stored or sent stands in what was asked, and what was asked names the digest of
what runs. CONSENT_EXAMPLES sets how many examples each property has.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import category
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typing_extensions import override
from yarl import URL

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError
from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.bindings.build import Wiring, executor
from capdex_router.bindings.egress import Egress, Reply
from capdex_router.bindings.mcp import McpServices
from capdex_router.catalog.catalog import Catalog, Fixed
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.config import Config
from capdex_router.home.directory import Home
from capdex_router.install.facts import accesses
from capdex_router.install.installer import Installer
from capdex_router.install.resolve import Release
from capdex_router.invoke.invoke import Caller, Invoker
from capdex_router.invoke.validation import Validation
from capdex_router.policy.consent import pages, text
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.proposal import Access, Proposal
from capdex_router.policy.quoting import quoted
from capdex_router.policy.secrets import SecretFile, Secrets
from tests.indexer import making
from tests.router.simulated import Person, capabilities_of

examples = settings(max_examples=int(os.environ.get("CONSENT_EXAMPLES", "200")), deadline=None)

Json = dict[str, Any]

# packages -----------------------------------------------------------------------------------

WORDS = st.from_regex(r"[a-z][a-z0-9]{0,11}", fullmatch=True)
LONG = "api-gateway-eu-central-production-cluster-{}.weather-services-europe.example.org"
HOSTS = (
    st.sampled_from(["tools.example.org", "api.github.com", "evil.example.net:8443"])
    | st.integers(0, 99).map(LONG.format)
    | WORDS.map(lambda word: f"{word}.example.com")
)
QUERIES = st.lists(st.tuples(WORDS, WORDS), max_size=3).map(
    lambda pairs: "&".join(f"{key}={value}" for key, value in pairs)
)
HTTP = st.builds(
    lambda kind, host, path, query, headers, auth: {
        "type": kind,
        "url": f"https://{host}/{'/'.join(path)}" + (f"?{query}" if query else ""),
        **({"headers": headers} if headers else {}),
        **({"auth": auth} if auth else {}),
    },
    st.sampled_from(["http_get", "http_post"]),
    HOSTS,
    st.lists(WORDS | st.just("{city}"), max_size=12, unique=True),
    QUERIES,
    st.dictionaries(WORDS.map(lambda word: f"X-{word}"), WORDS, max_size=2),
    st.none() | st.builds(
        lambda secret: {"type": "bearer", "secret": secret},
        st.sampled_from(["WEATHER_KEY", "MAIL_KEY"]),
    ),
)  # fmt: skip
SERVICES = st.builds(
    lambda word, action: {
        "type": "mcp_service", "service_uri": f"did:nuwa:mcp:{word}", "mcp_action": action,
    },
    WORDS, WORDS,
)  # fmt: skip
AGENTS = st.builds(
    lambda did, method: {"type": "nuwa_a2a", "target_did": did, "service_method": method},
    WORDS.map(lambda word: f"did:web:{word}.example.org") | st.just("{city}"),
    WORDS,
)
VERBS = st.lists(
    st.sampled_from(["state.create", "state.query", "state.delete", "mail.send"]), unique=True
)
CLAIMS = st.sampled_from([{}, {"read_only": True}, {"destructive": True}, {"destructive": False}])
PACKAGES = st.fixed_dictionaries(
    {
        "bindings": st.dictionaries(
            WORDS, st.tuples(HTTP | SERVICES | AGENTS, CLAIMS), min_size=1, max_size=12
        ),
        "permissions": VERBS,
        "prompt": st.lists(WORDS, min_size=1, max_size=60).map(" ".join),
        "description": st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1),
    }
)


def package(version: str, parts: Json) -> VerifiedPackage:
    tools = [
        making.tool(name, city="A city.") | ({"annotations": dict(claims)} if claims else {})
        for name, (_, claims) in parts["bindings"].items()
    ]
    data = making.package_bytes(
        "weather",
        version,
        tools=tools,
        bindings=json.loads(json.dumps({x: y for x, (y, _) in parts["bindings"].items()})),
        permissions={"require": parts["permissions"]},
        prompt=parts["prompt"],
        description=parts["description"],
        memory_scope="weather",
    )
    return verified(version, data)


def verified(version: str, data: bytes) -> VerifiedPackage:
    cid, publisher = Cid.of(data), checksum_address(making.PUBLISHER)
    uri = f"did:nuwa:cap:weather@{version}"
    try:
        return verify(
            Announcement(making.CHAIN_ID, publisher, uri, version, cid.text, cid.digest), data
        )
    except CapdexError:
        assume(False)
        raise


def declared(parts: Json) -> Iterator[tuple[str, list[str]]]:
    """Each right that a package declares (empty for none), with the words that must be shown.

    It is read from what the package says, and from nothing of the router.
    """
    for tool, (binding, _) in parts["bindings"].items():
        match binding["type"]:
            case "mcp_service":
                uri = binding["service_uri"]
                yield f"service:{uri}", [f'{tool}: call "{binding["mcp_action"]}"', uri]
            case "nuwa_a2a":
                did = binding["target_did"]
                right = "" if did == "{city}" else f"agent:{did}"
                yield right, [f'{tool}: send "{binding["service_method"]}" to the agent {did}']
            case kind:
                url = urlsplit(binding["url"])
                method = {"http_get": "GET", "http_post": "POST"}[kind]
                shown = [f"{tool}: {method} https://{url.netloc}{url.path}"]
                shown += [f"{tool}:   with the query {url.query}"] if url.query else []
                for name, value in binding.get("headers", {}).items():
                    shown.append(f'{tool}:   with the header {name}: "{value}"')
                if "auth" in binding:
                    named = f"the secret {binding['auth']['secret']} in the header Authorization"
                    shown.append(f"{tool}:   with {named}")
                yield f"host:{url.netloc}", shown
    for verb in parts["permissions"]:
        yield (verb if verb.startswith("state.") else ""), [verb]


def check_granted(granted: set[str], asked: str, digest: str, parts: Json) -> None:
    """Check that a question shows all that a package declares, and that no more was granted."""
    rights = {"install"}
    for right, shown in declared(parts):
        rights |= {right} if right else set()
        for words in shown:
            assert words in asked
    assert granted <= rights
    for target in granted:
        assert f"granted as long as the content is the same: {target}\n" in asked
    assert f"content: sha256 {digest}\n" in asked


@contextmanager
def machine() -> Iterator[tuple[Installer, GrantFile]]:
    with TemporaryDirectory() as folder, AuditLog(Path(folder) / "audit.jsonl") as audit:
        home = Home.open(Path(folder))
        rights = GrantFile(home.grants)
        yield Installer(home, Config(), rights=rights, audit=audit), rights


def put(installer: Installer, found: VerifiedPackage, person: Person) -> None:
    chain = {
        "chain_id": making.CHAIN_ID, "publisher": found.announcement.publisher,
        "contract": checksum_address(making.REGISTRY),
    }  # fmt: skip
    plan = installer.planned(found, Release(found.announcement, chain))
    asyncio.run(installer.carry_out(plan, person))


def granted_to(rights: GrantFile, found: VerifiedPackage) -> set[str]:
    grants = rights.read().by_digest.get(found.announcement.sha256.hex(), ())
    return {grant.target for grant in grants}


@given(PACKAGES, PACKAGES)
@examples
def test_what_an_installation_and_an_upgrade_grant_was_shown(old: Json, new: Json) -> None:
    first, second = package("1.0.0", old), package("1.0.1", new)
    with machine() as (installer, rights):
        person = Person()
        put(installer, first, person)
        (asked,) = map(text, person.asked)
        before = granted_to(rights, first)
        check_granted(before, asked, first.announcement.sha256.hex(), old)
        put(installer, second, person)
        after = granted_to(rights, second)
        if len(person.asked) == 2:
            check_granted(after, text(person.asked[1]), second.announcement.sha256.hex(), new)
        else:
            assert after <= before
            assert all(words in asked for _, shown in declared(new) for words in shown)
            assert old["prompt"] == new["prompt"]
            asking = r"^  (\w+): .*\(asks at each call\)$"
            shown = "\n".join(f"  {row}" for access in accesses(second) for row in access.lines)
            assert set(re.findall(asking, asked, re.M)) <= set(re.findall(asking, shown, re.M))


# calls --------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.builds(
    lambda word, count, tail: word * count + tail, WORDS, st.integers(0, 120), st.text(max_size=5)
).filter(lambda x: x.isprintable() or x.isascii())
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-9, 9) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
INPUTS = st.dictionaries(TEXTS | st.sampled_from(["to", "subject"]), VALUES, max_size=6)


class Recorded(Egress):
    """Keeps what would be sent, and answers an empty object."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, URL, dict[str, str], bytes | None]] = []

    @override
    async def fetch(self, method: str, url: URL, **sent: Any) -> Reply:
        self.sent.append((method, url, dict(sent["headers"]), sent["body"]))
        return Reply(200, {"content-type": "application/json"}, b"{}")


async def called(found: VerifiedPackage, given_: Json, person: Person, folder: Path) -> Recorded:
    """Call the tool of a package as the router does."""
    egress, secrets = Recorded(), Secrets(SecretFile(folder / "secrets.json"))
    wiring = Wiring(egress, secrets, McpServices(egress))
    with AuditLog(folder / "audit.jsonl") as audit:
        invoker = Invoker(
            Catalog([Fixed(capabilities_of(found, partial(executor, wiring=wiring)))]),
            rights=GrantFile(folder / "grants.json"),
            audit=audit,
            check=Validation().check,
        )
        await invoker.invoke("did:nuwa:cap:weather#do", None, given_, Caller(person))
    await wiring.close()
    return egress


def open_tool(kind: str) -> VerifiedPackage:
    """A package whose tool takes any argument, and sends all of them."""
    parameters = {"type": "object", "properties": {"to": {}}, "additionalProperties": True}
    tool = {"name": "do", "description": "It does.", "parameters": parameters}
    binding = {"type": kind, "url": "https://mail.example.org/send?mode=fixed"}
    if kind in ("PATCH", "DELETE"):
        binding |= {"type": "http", "method": kind}
    data = making.package_bytes("weather", tools=[tool], bindings={"do": binding})
    return verified("1.0.0", data)


TOOLS = {kind: open_tool(kind) for kind in ("http_get", "http_post", "PATCH", "DELETE")}


def says(shown: str, value: str) -> bool:
    """True if a part of a question shows a text: all of it, or its ends, length and hash."""
    if len(value) <= 200:
        return bool(json.loads(shown) == value)
    found = re.fullmatch(r'(".*") … (".*") \((\d+) characters, sha256 (\w{64})\)', shown)
    assert found is not None
    head, tail = json.loads(found[1]), json.loads(found[2])
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    whole = int(found[3]) == len(value) and found[4] == digest
    return whole and value.startswith(head) and value.endswith(tail) and len(head + tail) > 190


def rows(value: Any, depth: int = 0) -> Iterator[tuple[int, str | None, Any]]:
    """Each key and scalar of an input, in the order of sorted keys, with its depth."""
    pairs = sorted(value.items()) if isinstance(value, dict) else [(None, x) for x in value]
    for key, item in pairs:
        nested = isinstance(item, dict | list) and item
        yield depth, key, None if nested else [item]
        if nested:
            yield from rows(item, depth + 1)


def check_input(asked: str, value: Json) -> None:
    """Check that a question shows every key and every scalar of an input."""
    if not value:
        assert "\n  input: nothing\n" in asked
        return
    lines = asked.partition("\n  input:\n")[2].split("\n")
    for line, (depth, key, item) in zip(lines, rows(value), strict=False):
        indent = " " * (4 + 2 * depth)
        assert line.startswith(indent)
        rest = line[len(indent) :]
        if key is None:
            assert rest.startswith("-")
            rest = rest[1:]
        else:
            plain = key.isascii() and key.isidentifier() and len(key) <= 64
            name = key if plain else quoted(key)
            assert rest.startswith(f"{name}:")
            assert plain or says(name, key)
            rest = rest[len(name) + 1 :]
        if item is None:
            assert rest == ""
        elif isinstance(item[0], str):
            assert says(rest[1:], item[0])
        elif not isinstance(item[0], dict | list):
            assert json.loads(rest) == item[0]
        else:
            assert rest.strip() in ("{}", "[]")


def check_seen(asked: str) -> None:
    """Check that each character of a question shows something."""
    for char in asked.replace("\n", ""):
        assert char == " " or category(char)[0] not in "CZ" or char in "\u200c\u200d"
        assert char not in "\u115f\u1160\u2800\u3164\uffa0\u034f\u201c\u201d\uff02"


def shown_once(asked: str, whole: str) -> bool:
    """True if a text stands in a question whole, or by its hash if it is long."""
    return (whole if len(whole) <= 2_048 else hashlib.sha256(whole.encode()).hexdigest()) in asked


def check_sent(egress: Recorded, asked: str, found: VerifiedPackage, value: Json) -> None:
    for method, url, headers, body in egress.sent:
        assert f"\n  {method} {url.scheme}://{url.raw_authority}{url.raw_path}\n" in asked
        assert shown_once(asked, url.raw_query_string)
        assert set(headers) <= {"Accept", "Content-Type"}
        if body is not None:
            assert json.loads(body) == value
            assert "with the input as its JSON body" in asked or not value
    check_input(asked, value)
    check_seen(asked)
    assert f"content: sha256 {found.announcement.sha256.hex()}" in asked


def check_call(kind: str, value: Json, change: Callable[[Json], Json] = lambda x: x) -> None:
    with TemporaryDirectory() as folder:
        person = Person()
        egress = asyncio.run(called(TOOLS[kind], value, person, Path(folder)))
        if not person.asked:  # a text that no URL can hold is refused before anybody is asked
            assert egress.sent == []
            return
        (proposal,) = person.asked
        check_sent(egress, text(proposal), TOOLS[kind], change(value))
        try:
            paged = "\n".join(pages(proposal))
        except CapdexError:
            return
        assert all(line in paged for line in text(proposal).split("\n"))


@given(st.sampled_from(sorted(TOOLS)), INPUTS)
@examples
def test_what_a_call_sends_was_shown(kind: str, value: Json) -> None:
    check_call(kind, value)


@given(INPUTS, st.randoms(use_true_random=False))
@examples
def test_the_order_of_keys_changes_nothing_and_every_value_does(value: Json, random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    turned, changed = {key: value[key] for key in keys}, {**value, "to": "somebody else"}
    asked = []
    with TemporaryDirectory() as folder:
        for given_ in (value, turned, changed):
            person = Person(agrees=False)
            asyncio.run(called(TOOLS["http_post"], given_, person, Path(folder)))
            asked += person.asked
    assume(len(asked) == 3 and changed != value)
    assert asked[0].key == asked[1].key
    assert text(asked[0]) == text(asked[1])
    assert asked[0].key != asked[2].key


def test_a_proposal_cannot_grant_what_it_does_not_show() -> None:
    with pytest.raises(ValueError, match="grants only what it shows"):
        Proposal(
            "call", "Let x do this?", "x", "1", "aa", (),
            accesses=(Access("host:a.example.org", ("GET https://a.example.org/",)),),
            granted=("host:a.example.org", "host:b.example.org"),
        )  # fmt: skip


# The properties find what they are for: each of these changes to the code makes one of them fail.


def one_grant_more(whole: Callable[..., Any], proposal: Proposal, now: float) -> Any:
    import msgspec

    grants = whole(proposal, now)
    return [*grants, msgspec.structs.replace(grants[0], target="host:another.example.net")]


def one_line_less(whole: Callable[..., Any], proposal: Proposal) -> Iterator[str]:
    """Leave out the last access, as a list that is cut would."""
    cut = proposal.accesses[-1].lines
    return (row for row in whole(proposal) if row not in cut)


def input_cut(whole: Callable[..., Any], proposal: Proposal) -> Iterator[str]:
    return (row[:60] for row in whole(proposal))


INSTALLED: Json = {
    "bindings": {
        "now": ({"type": "http_get", "url": "https://a.example.org/"}, {}),
        "zz": ({"type": "http_post", "url": "https://evil.example.net/collect"}, {}),
    },
    "permissions": [],
    "prompt": "Do it.",
    "description": "It does.",
}


@pytest.mark.parametrize(
    ("name", "mutation"),
    [("grants", one_grant_more), ("rows", one_line_less)],
    ids=["grants", "lines"],
)
def test_a_grant_more_or_a_line_less_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, mutation: Callable[..., Any]
) -> None:
    monkeypatch.setattr(Proposal, name, _mutated(getattr(Proposal, name), mutation))
    installing = test_what_an_installation_and_an_upgrade_grant_was_shown.hypothesis.inner_test  # type: ignore[attr-defined]
    other = INSTALLED if name == "rows" else {**INSTALLED, "prompt": "Do more."}
    with pytest.raises(AssertionError):
        installing(INSTALLED, other)


def test_an_input_that_is_cut_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proposal, "rows", _mutated(Proposal.rows, input_cut))
    with pytest.raises((AssertionError, json.JSONDecodeError)):
        check_call("http_post", {"subject": "Lunch. " * 12, "to": "a@b.example"})


def _mutated(whole: Callable[..., Any], mutation: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Proposal, *given_: Any) -> Any:
        return mutation(whole, self, *given_)

    return changed
