"""Rows of a judged release: the verdict, its evidence, and the words and values that search needs.

A `Judgement` is a function of the announcement and the bytes alone, so the process that judges
makes its texts, and the writer only stores them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import InitVar, dataclass
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
import orjson
from msgspec import Meta

from capdex.json import list_of
from capdex.json_schema.keywords import words_of
from capdex.manifest.bindings.contacts import contacts
from capdex.manifest.manifest import Manifest
from capdex.manifest.prompt import placeholders
from capdex.manifest.triggers import Trigger
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.problems import Reason, Verdict
from capdex.registry.events import Announcement
from capdex.search.analyser import fold
from capdex_indexer.projection.event_rows import MAX_REASON_CHARS, storable

MAX_FACET_CHARS: Final = 256  # an index row of PostgreSQL holds no more than 2.7 KB
MAX_CLAIM_CHARS: Final = 2048  # of a signer, Schema URI or scope: the manifest's limits are lower
ROUTED: Final = ("keyword", "regex")  # types of triggers that a message is matched with
MAX_WINDOW: Final = 2**53  # tokens; larger numbers are no exact floats
MAX_JSON_CHARS: Final = 4 * 1024 * 1024  # of one JSON column: a package a few times over
# Facets that people write in any case; names, tools, permissions and DIDs are exact.
FOLDED: Final = frozenset(
    ["tag", "domain", "language", "license", "publisher", "host", "model_family", "kind", "verdict"]
)

Document = dict[str, Any]

_MINT: Final = object()  # known to this module alone: what makes a Judgement a proof
_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_ESCAPE = re.compile(r"\\.")  # of a regex: what follows the backslash is not a word


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one release as its rows hold it; JSON columns are text.

    Only `Judgement.of` (from a judged package) and `Judgement.read` (from a worker's answer) make
    one, so a stored verdict always comes from `capdex.package.judge`. Columns that only a manifest
    fills are None where the bytes hold no readable manifest.
    """

    verdict: Verdict
    reason: Reason | None
    message: str
    signer: str | None
    checks: str
    problems: str
    metadata: str | None
    document: str | None
    schema_uri: str | None
    memory_scope: str | None
    mint: InitVar[object]

    def __post_init__(self, mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only Judgement.of and Judgement.read make a Judgement")

    @classmethod
    def of(cls, judged: VerifiedPackage | RejectedPackage) -> Judgement:
        """Return the judgement of a package that `capdex.package.judge` has judged."""
        rejected = judged if isinstance(judged, RejectedPackage) else None
        metadata = words = schema_uri = memory_scope = None
        if (manifest := judged.manifest) is not None:
            announcement = judged.announcement
            metadata = json_text(manifest.metadata)
            words = json_text(document(manifest, announcement.publisher, announcement.chain_id))
            # NIP-7 gives incompatible schemas another version: all belong to one capability
            schema_uri = manifest.schema_uri.partition("#")[0]
            memory_scope = manifest.memory_scope
        return cls(
            judged.verdict,
            rejected.reason if rejected else None,
            storable(rejected.message, MAX_REASON_CHARS) if rejected else "",
            judged.signer,
            json_text([check.to_json() for check in judged.checks]),
            json_text([problem.to_json() for problem in judged.problems]),
            metadata,
            words,
            schema_uri,
            memory_scope,
            _MINT,
        )

    def to_json(self) -> bytes:
        """Return the columns as a JSON array, as a worker answers them."""
        return orjson.dumps([getattr(self, name) for name in _COLUMNS])

    @classmethod
    def read(cls, announcement: Announcement, data: bytes, answer: bytes) -> Judgement:
        """Return the judgement that a worker answered for these bytes.

        Raises ValueError or msgspec.DecodeError for an answer that `to_json` cannot have written,
        and for one that calls bytes verified whose digest was not announced: the worker has parsed
        hostile bytes.
        """
        named: dict[str, Any] = dict(zip(_COLUMNS, _decode(answer), strict=True))
        verdict, reason = named["verdict"], named["reason"]
        if (verdict is Verdict.VERIFIED) is not (reason is None):
            raise ValueError("a judgement has a reason unless it is verified")
        _check_json(named["checks"], list)
        _check_json(named["problems"], list)
        if named["document"] is not None or named["metadata"] is not None:
            _check_json(named["metadata"], dict)
            _check_json(named["document"], _Document)
            if named["schema_uri"] is None:
                raise ValueError("a manifest has a Schema URI")
        if verdict is Verdict.VERIFIED:
            if sha256(data).digest() != announcement.sha256:
                raise ValueError("bytes with another digest than announced are not verified")
            if named["document"] is None or named["signer"] is None:
                raise ValueError("a verified package has a manifest and a signer")
        return cls(**named, mint=_MINT)


_COLUMNS: Final = tuple(Judgement.__slots__)


class _Document(msgspec.Struct):
    words: dict[str, str]
    tools: list[tuple[str, str, str]]
    facets: list[tuple[str, Annotated[str, Meta(max_length=MAX_FACET_CHARS)]]]
    context_window: Annotated[int, Meta(ge=0)]
    triggers: list[tuple[str, str]]


_Claim = Annotated[str, Meta(max_length=MAX_CLAIM_CHARS)] | None
_Json = Annotated[str, Meta(max_length=MAX_JSON_CHARS)]
_Message = Annotated[str, Meta(max_length=MAX_REASON_CHARS)]
_decode: Final = msgspec.json.Decoder(
    tuple[
        Verdict, Reason | None, _Message, _Claim, _Json, _Json,
        _Json | None, _Json | None, _Claim, _Claim,
    ]
).decode  # fmt: skip


def _check_json(value: str | None, kind: object) -> None:
    """Raise ValueError unless a column is JSON in ASCII, of a value of that type."""
    if value is None or not value.isascii():
        raise ValueError("a JSON column is missing, or not ASCII")
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        parsed = json.loads(value)  # it also takes escaped lone surrogates
    msgspec.convert(parsed, kind)


def json_text(value: object) -> str:
    """A JSON value as ASCII: NUL and lone surrogates stay escaped, as PostgreSQL needs."""
    return _encode(value)


def document(manifest: Manifest, publisher: str, chain_id: int) -> Document:
    """Return the texts of a package for search, its filter values (facets) and numbers.

    `words` has a text for each field of the package, `tools` the name, description and parameters
    of each tool, `triggers` the type and value of those that messages are matched with.
    """
    said = (example.get("say") for example in manifest.examples)
    words = {
        "name": manifest.uri.name,
        "title": manifest.title,
        "description": manifest.description,
        "summary": manifest.summary or "",
        "tags": "\n".join(manifest.tags),
        "triggers": "\n".join([*map(_trigger_words, manifest.triggers), *filter(None, said)]),
        "memory_scope": manifest.memory_scope or "",
    }
    window = manifest.llm_requirements.get("min_context_window")
    return {
        "words": words,
        "tools": [[x.name, x.description, words_of(x.parameters)] for x in manifest.tools],
        "facets": sorted(set(_facets(manifest, publisher, chain_id))),
        "context_window": min(window, MAX_WINDOW) if isinstance(window, int) else 0,
        "triggers": [[x.type, x.value] for x in manifest.triggers if x.type in ROUTED],
    }


def facet_value(key: str, value: str) -> str:
    """A filter's value as it is stored and compared."""
    value = (fold(value) if key in FOLDED else value).replace("\0", "\N{SYMBOL FOR NULL}")
    return value.encode("utf-8", "replace").decode("utf-8")[:MAX_FACET_CHARS]


def _facets(manifest: Manifest, publisher: str, chain_id: int) -> Iterator[tuple[str, str]]:
    families = list_of(manifest.llm_requirements.get("model_family"))
    values: list[tuple[str, Iterable[str | None]]] = [
        ("name", [manifest.uri.name]),
        ("kind", _kinds(manifest)),
        ("tag", manifest.tags),
        ("domain", [manifest.domain]),
        ("language", manifest.languages),
        ("license", [manifest.license]),
        ("publisher", [publisher, f"eip155:{chain_id}:{publisher}"]),
        ("permission", manifest.permissions),
        ("tool", [tool.name for tool in manifest.tools]),
        ("binding", [str(x.get("type", "")) for x in manifest.bindings.values()]),
        ("section", ["prompt"] if manifest.prompt else []),
        ("placeholder", placeholders(manifest.prompt or "")),
        ("host", contacts(manifest.bindings)),
        ("model_family", [x for x in families if isinstance(x, str)]),
        ("memory_scope", [manifest.memory_scope]),
    ]
    if manifest.author:  # the DID URL as it stands, and the DID alone
        values.append(("author", [manifest.author, manifest.author.partition("#")[0]]))
    for key, some in values:
        yield from ((key, facet_value(key, value)) for value in some if value)


def _kinds(manifest: Manifest) -> Iterator[str]:
    """What a package is: a skill has files or a prompt alone, and tools are to be called."""
    if manifest.resources or (manifest.prompt and not manifest.tools):
        yield "skill"
    if manifest.tools:
        yield "tools"


def _trigger_words(trigger: Trigger) -> str:
    if trigger.model is not None:
        return ""  # sign bits, not words
    return _ESCAPE.sub(" ", trigger.value) if trigger.type == "regex" else trigger.value
