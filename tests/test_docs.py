"""The documents say what the code does: tables are compared, examples are computed again."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import eth_abi
import pytest
from click import Option
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from eth_account import Account
from packaging.version import Version

from capdex import __version__, signing
from capdex import limits as shared
from capdex.codes import error_codes, reason_codes
from capdex.ipld.cid import Cid
from capdex.json_schema import schema
from capdex.manifest import manifest, metadata, resources, tools, triggers, urls
from capdex.manifest.bindings import binding, http_auth, http_header, http_request
from capdex.package import RULES_VERSION, VerifiedPackage, judge
from capdex.problems import Availability, Reason, Verdict
from capdex.proof.index_digest import Counts, Frontier, deployment_leaf, event_leaf, release_leaf
from capdex.registry.events import PUBLISHED, TOPICS, Announcement
from capdex.registry.logs import LogHead, LogPosition, RawLog
from capdex.routing import patterns
from capdex.uri import name_id
from capdex.yaml import composer
from capdex.yaml.characters import forbidden
from capdex_cli.commands.run.node import node_command
from capdex_cli.main import program
from capdex_explorer.samples import MAX_DIGESTS
from capdex_indexer.db.models import DECODER_VERSION
from capdex_indexer.query.search.filters import FILTER_NAMES
from capdex_service.answers import hit_schemas, schemas
from capdex_service.http import change_stream
from capdex_service.limits import streams
from capdex_service.mcp.tools import ALL
from capdex_service.queries.search import FACETS

ROOT = Path(__file__).parents[1]
PROTOCOL = (ROOT / "docs/protocol.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROSE = [page for page in PAGES if page.name != "CHANGELOG.md"]

PUBLISHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
SECRET = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"  # noqa: S105 - RFC 8032's
DEV_SECRET = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"  # noqa: S105 - Anvil's


def reason_rows() -> list[str]:
    return [f"| `{code}` | {text.meaning} | {text.hint} |" for code, text in reason_codes().items()]


def kind_rows() -> list[str]:
    return [
        f"| `{code}` | {kind.cap} | {kind.http} | {kind.exit} | {'yes' if kind.retryable else 'no'}"
        f" | {kind.meaning} |"
        for code, kind in error_codes().items()
    ]


def limit_rows() -> list[str]:
    limits = {
        "the file": _bytes(shared.MAX_PACKAGE_BYTES),
        "nesting in YAML and in the schema": f"{shared.MAX_DEPTH} levels",
        "keys, values and collections": f"{composer.MAX_NODES}",
        "one scalar, as it is written": _bytes(composer.MAX_SCALAR_BYTES),
        "`prompt`": _bytes(manifest.MAX_PROMPT_BYTES),
        "`schema`": f"{_bytes(schema.MAX_SCHEMA_BYTES)}, {schema.MAX_SUBSCHEMAS} subschemas",
        "`metadata.name`": f"{metadata.MAX_TITLE_CHARS} characters on one line",
        "`metadata.description`": _bytes(metadata.MAX_DESCRIPTION_BYTES),
        "`metadata.summary`": f"{metadata.MAX_SUMMARY_CHARS} characters on one line",
        "`tags`, `languages`, `examples`": f"{metadata.MAX_TAGS}, {metadata.MAX_LANGUAGES}, "
        f"{metadata.MAX_EXAMPLES}; a language {metadata.MAX_LANGUAGE_CHARS} characters, what an "
        f"example says {_bytes(metadata.MAX_EXAMPLE_BYTES)}",
        "permissions, models, features": f"{metadata.MAX_NAMES} each",
        "a tag, permission, model, feature, license, `memory_scope`": f"{metadata.MAX_WORD_CHARS} "
        "characters on one line",
        "`domain`, the tool of an example": f"{metadata.MAX_WORD_CHARS} characters",
        "`author`, `publisher`": f"{metadata.MAX_DID_CHARS} characters on one line",
        "a URL, a binding's field": f"{urls.MAX_URL_CHARS}, {binding.MAX_FIELD_CHARS} characters "
        "on one line",
        "triggers": f"{triggers.MAX_TRIGGERS}; a pattern {triggers.MAX_PATTERN_BYTES} bytes",
        "tools, bindings": f"{tools.MAX_TOOLS} each; a tool's description "
        f"{_bytes(tools.MAX_TOOL_DESCRIPTION_BYTES)}",
        "files": f"{resources.MAX_RESOURCES}; a file {_bytes(shared.MAX_RESOURCE_BYTES)}, all "
        f"{_bytes(resources.MAX_TOTAL_BYTES)}; a path {resources.MAX_PATH_BYTES} bytes in "
        f"{resources.MAX_PARTS} parts",
        "mapped parameters, fixed headers of a binding": f"{http_request.MAX_MAPPED}, "
        f"{http_request.MAX_HEADERS}; a header {http_request.MAX_HEADER_CHARS}, its name "
        f"{http_header.MAX_HEADER_NAME_CHARS}, another name {http_request.MAX_NAME_CHARS}, "
        f"the name of a secret {http_auth.MAX_SECRET_CHARS} "
        "characters",
    }
    return [f"| {what} | {limit} |" for what, limit in limits.items()]


def _bytes(count: int) -> str:
    return f"{count // 1024} KiB"


def _table(page: str, header: str) -> list[str]:
    """The rows of the table whose header is this line."""
    lines = page.split("\n")
    start = lines.index(header) + 2
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    return lines[start:end]


def _block(language: str, page: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


# tables ---------------------------------------------------------------------------------------


def test_every_reason_code_stands_in_the_protocol_with_its_meaning_and_hint() -> None:
    assert set(reason_codes()) == set(Reason)
    assert _table(PROTOCOL, "| code | means | what to do |") == reason_rows()


def test_the_error_table_of_the_protocol_is_the_one_of_the_code() -> None:
    header = "| code | CAP | HTTP | exit | retryable | when |"
    assert _table(PROTOCOL, header) == kind_rows()


def test_the_tools_of_the_protocol_are_those_of_a_node_with_their_arguments() -> None:
    rows = [row.split(" | ")[:2] for row in _table(PROTOCOL, "| tool | arguments | answers |")]
    listed = [["| `" + x["name"] + "`", x["inputSchema"]["properties"]] for x in ALL]
    assert rows == [[tool, ", ".join(f"`{name}`" for name in names)] for tool, names in listed]


def test_the_types_of_bindings_of_the_protocol_are_those_of_the_code() -> None:
    rows = _table(PROTOCOL, "| type | fields |")
    for row, (type_, fields) in zip(rows, binding.FIELDS.items(), strict=True):
        assert row.startswith(f"| `{type_}` |")
        assert [name for name in fields if f"`{name}`" not in row] == []


def test_the_limits_of_a_package_are_those_of_the_code() -> None:
    assert _table(PROTOCOL, "| of a package | at most |") == limit_rows()


@pytest.mark.parametrize(
    ("header", "words"),
    [("| verdict | means |", Verdict), ("| availability | means |", Availability)],
)
def test_verdicts_and_availabilities_are_explained_in_order(
    header: str, words: type[Verdict] | type[Availability]
) -> None:
    said = [row.split("`")[1] for row in _table(PROTOCOL, header)]
    assert said == [str(word) for word in words]


def test_the_topics_of_events_are_those_of_the_code() -> None:
    rows = [f"| `{name}` | `0x{topic.hex()}` |" for name, topic in TOPICS.items()]
    assert sorted(_table(PROTOCOL, "| event | topic |")) == sorted(rows)


def test_domains_filters_and_metadata_fields_are_complete() -> None:
    listed = [*metadata.DOMAINS, *FILTER_NAMES, *metadata.KNOWN]
    assert [word for word in listed if not re.search(rf"`{word}[`.]", PROTOCOL)] == []


def test_the_binding_that_the_protocol_shows_has_no_problem() -> None:
    block = next(x for x in _block("yaml", PROTOCOL) if x.startswith("tool_bindings:"))
    properties = "{city: {type: string}, days: {type: integer}, language: {type: string}}"
    file = f"""\
metadata: {{id: did:nuwa:cap:kit@1.0.0, name: Kit, description: Does it.,
  triggers: [{{type: keyword, value: kit}}]}}
schema: |
  {{"$id": "did:nuwa:state:kit#v1"}}
tools:
  - type: function
    function:
      name: get_forecast
      description: Tells it.
      parameters: {{type: object, properties: {properties}}}
{block}"""
    assert manifest.read(file.encode()).problems == ()


# the worked example ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> bytes:
    """The signed file of P5."""
    return next(x for x in _block("yaml", PROTOCOL) if "signature: z" in x).encode()


@pytest.fixture(scope="module")
def announcement(example: bytes) -> Announcement:
    digest = hashlib.sha256(example).digest()
    cid = str(Cid.of(example))
    return Announcement(1, PUBLISHER, "did:nuwa:cap:hello@1.0.0", "1.0.0", cid, digest)


def test_the_signing_example_is_signed_as_the_protocol_says(example: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SECRET))
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    message = signing.signing_input(example, "did:nuwa:cap:hello@1.0.0")
    signature = signing.sign_ed25519(private, message)
    value = signing.encode_signature(signature)
    without = example.replace(value.encode(), b"")
    said = {
        "secret": SECRET,
        "bytes left": f"file without the value: bytes | {len(without)} |",
        "digest left": hashlib.sha256(without).hexdigest(),
        "input": message.hex(),
        "input as text": f"```text\n{message.decode()}\n```",
        "key": public.hex(),
        "signature": signature.hex(),
        "value": f"signature: {value}\n",
        "size": f"signed file: bytes | {len(example)} |",
        "sha256": hashlib.sha256(example).hexdigest(),
        "cid": str(Cid.of(example)),
        "EIP-191": signing.sign_eip191(Account.from_key(DEV_SECRET), message).hex(),
    }
    assert [what for what, text in said.items() if text not in PROTOCOL] == []


def test_the_signing_example_is_verified(example: bytes, announcement: Announcement) -> None:
    judged = judge(announcement, example)
    assert isinstance(judged, VerifiedPackage)
    assert judged.problems == ()


@pytest.fixture(scope="module")
def first_log(announcement: Announcement) -> RawLog:
    """The first event of the registry in P13's example."""
    values = [1, announcement.cap_uri, announcement.semver, announcement.cid, announcement.sha256]
    data = eth_abi.encode(["uint64", "string", "string", "string", "bytes32"], values)
    account = bytes(12) + bytes.fromhex(PUBLISHER[2:])
    position = LogPosition(2, b"\x01" * 32, b"\x02" * 32, 0)
    return RawLog(bytes(20), (PUBLISHED, name_id("hello"), account), data, position)


def test_the_example_of_the_log_head_folds_to_the_word_said(first_log: RawLog) -> None:
    assert f"`0x{name_id('hello').hex()}`" in PROTOCOL
    assert f"`0x{LogHead().fold(first_log).word.hex()}`" in PROTOCOL


def test_the_examples_of_digests_are_those_of_their_leaves(
    first_log: RawLog, announcement: Announcement
) -> None:
    contract = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
    leaves = [
        deployment_leaf(1, contract, bytes(32), 3),
        event_leaf(1, first_log, Counts.RELEASE),
    ]
    judged = release_leaf(1, announcement.sha256, 2, "verified")
    said = [Frontier(leaves[:1]), Frontier(leaves), Frontier([judged])]
    assert [f"`0x{x.root().hex()}`" in PROTOCOL for x in said] == [True, True, True]


def test_the_versions_of_decoder_and_rules_are_those_of_the_code() -> None:
    digests = " ".join(PROTOCOL.partition("## P14")[2].partition("## P15")[0].split())
    said = [int(number) for number in re.findall(r"\((\d+) in this release\)", digests)]
    assert said == [DECODER_VERSION, RULES_VERSION]


def test_the_characters_of_the_protocol_are_those_of_the_code() -> None:
    def listed(row: str) -> set[int]:
        rows = rf"^      {row} +(.*(?:\n {{22}}[0-9a-f].*)*)"
        (found,) = re.findall(rows, PROTOCOL, re.MULTILINE)
        spans = re.findall(r"\b([0-9a-f]+)(?:-([0-9a-f]+))?\b", found.partition(", and")[0])
        return {x for a, b in spans for x in range(int(a, 16), int(b or a, 16) + 1)}

    def refused(behind: str, place: int) -> set[int]:
        """The code points of which, with a text behind, the character at `place` is refused."""
        parts = [f"{chr(x)}{behind}." for x in range(0x110000)]
        wrong = forbidden("".join(parts))
        return {at // len(parts[0]) for at in wrong if at % len(parts[0]) == place}

    planes = {plane << 16 | x for plane in range(17) for x in (0xFFFE, 0xFFFF)}
    never = listed("never") | planes | listed("unless needed")
    assert refused("", 0) == never
    for row, behind in (("emoji", "\ufe0f"), ("joining", "\u200c"), ("Mongolian", "\u180b")):
        assert refused(behind, 1) == set(range(0x110000)) - listed(row)
    needed = ["#\ufe0f\u20e3", "\u00a9\ufe0f\u200d\u00ae", "\u00a9\u200d\u00ae", "\u0620\u200d"]
    assert [x for x in needed if any(True for _ in forbidden(x))] == []


def test_the_hosts_and_headers_of_the_protocol_are_those_of_the_code() -> None:
    (rule,) = re.findall(r"^\* A header of a package MUST NOT .*?\. Fixed", PROTOCOL, re.M | re.S)
    names = set(re.findall(r"`([A-Za-z-]+)`", rule))
    assert {x.lower() for x in names} == http_header.CREDENTIALS | http_header.OWN
    assert set(re.findall(r"`([A-Za-z]+-)…`", rule)) == {
        x.title() for x in http_header.OWN_PREFIXES
    }
    (rule,) = re.findall(r"^\* A host is a name .*?\. If that", PROTOCOL, re.M | re.S)
    assert set(re.findall(r"`([a-z]+)`", rule)) == urls.LOCAL_NAMES
    (rule,) = re.findall(r"^\* An address is in none of .*?\. A caller", PROTOCOL, re.M | re.S)
    networks = [*urls.PRIVATE_V4, urls.GLOBAL_V6, *urls.PRIVATE_V6]
    assert re.findall(r"`([^`]+)`", rule) == [str(network) for network in networks]


def test_the_answers_shown_have_the_fields_of_the_schemas() -> None:
    _, resolution, results = (json.loads(text) for text in _block("json", PROTOCOL))
    _same_fields(resolution, schemas.RESOLUTION_SCHEMA)
    _same_fields(results, hit_schemas.RESULTS_SCHEMA | {"properties": {}})
    assert set(results) == set(hit_schemas.RESULTS_SCHEMA["required"])


def _same_fields(value: object, described: dict[str, Any]) -> None:
    properties = described.get("properties")
    if isinstance(value, dict) and isinstance(properties, dict) and properties:
        assert set(value) == set(described.get("required", properties))
        for key in value:
            _same_fields(value[key], properties[key])


def test_the_proof_shown_is_the_one_recorded() -> None:
    shown = json.loads(_block("json", PROTOCOL)[0])
    recorded = json.loads((ROOT / "tests/vectors/proofs/documents.json").read_text("utf-8"))
    document = recorded["documents"]["exact"]["document"]
    assert set(shown) == set(document)
    for key in ("schema", "kind", "chain_id", "contract", "block_number", "block_hash", "name",
                "semver", "index"):  # fmt: skip
        assert shown[key] == document[key]
    texts = [(shown["header"], document["header"])]
    texts += zip(shown["account_proof"], document["account_proof"], strict=True)
    for slot, whole in zip(shown["slots"], document["slots"], strict=True):
        assert (slot["key"], slot["value"]) == (whole["key"], whole["value"])
        texts += zip(slot["proof"], whole["proof"], strict=True)
    for text, whole_text in texts:
        assert whole_text.startswith(text.removesuffix("…"))


# operations, and all pages --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            PROTOCOL,
            f"At most {patterns.MAX_CANDIDATES} regexes with a text that is in the message run for"
            f" it, and {patterns.MAX_OPEN} that need none",
        ),
        (
            OPERATIONS,
            f"Streams (`/v1/changes/stream`) are at most {streams.MAX_STREAMS}, and"
            f" {streams.MAX_STREAMS_PER_CLIENT} for one client; one ends after"
            f" {change_stream.LIFETIME_S:.0f} s, or once its client reads nothing for"
            f" {streams.SEND_LIMIT_S:.0f} s.",
        ),
        (
            PROTOCOL,
            "whose values are counted over all pages: "
            + ", ".join(f"`{name}`" for name in FACETS[:-1])
            + f" and `{FACETS[-1]}`.",
        ),
        (OPERATIONS, f"knows the newest {MAX_DIGESTS} blocks that this process has shown"),
    ],
)
def test_bounds_that_sentences_name_are_those_of_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join(page.split())


def test_every_metric_is_documented_and_every_documented_metric_exists() -> None:
    source = (ROOT / "indexer/capdex_indexer/monitoring/metrics.py").read_text("utf-8")
    exported = set(re.findall(r'"(capdex_[a-z_]+)"', source))
    rows = _table(OPERATIONS, "| metric | says |")
    documented = {row.split("`")[1].partition("{")[0].removesuffix("_total") for row in rows}
    assert documented == {name.removesuffix("_total") for name in exported}


def test_every_option_of_the_node_is_documented() -> None:
    options = [x for x in node_command.params if isinstance(x, Option) and x.help]
    assert len(options) > 25
    rows = "".join(_table(OPERATIONS, "| option | means |"))
    rows += "".join(_table(OPERATIONS, "| option | limits | default |"))
    assert [x.opts for x in options if f"`{(x.secondary_opts or x.opts)[0]}`" not in rows] == []


def test_every_command_is_told_of_on_a_page() -> None:
    text = "".join(x.read_text("utf-8") for x in PROSE if x.name != "architecture.md")
    names = [name for name in program.entries if not re.search(rf"(capdex |`){name}\b", text)]
    assert (len(program.entries) > 50, names) == (True, [])


def test_the_changelog_has_this_version_or_this_version_is_still_developed() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first, *entries = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    assert first == "Unreleased"
    assert [Version(x) for x in entries] == sorted(map(Version, entries), reverse=True)
    version = Version(__version__)
    assert version > Version(entries[0]) if version.is_devrelease else str(version) == entries[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = page.parent / target if target else page
        known = file.exists() and (not anchor or anchor in _anchors(file))
        broken += [] if known else [link]
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """The anchors that a forge gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/adr/*.md")), ids=lambda page: page.stem)
def test_a_decision_has_its_number_and_its_parts(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert {"## Question", "## Decision", "## Consequences"} <= set(text.split("\n"))


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_no_paragraph_is_longer_than_700_characters(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"\n(?:\s*\n|(?=(?:[*-]|\d+\.) ))", text)
    is_data = re.compile(r"[|<]|    ")  # a table, or a block of code
    assert [part[:60] for part in parts if len(part) > 700 and not is_data.match(part)] == []
