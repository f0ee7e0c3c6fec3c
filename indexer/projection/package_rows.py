"""What judging a package found, as its rows have it: the words and values that search needs, too.

A report is a function of the announcement and the bytes alone, so the process that judges makes it:
the writer has a few texts to store, and not the package to take apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from capdex.manifest.manifest import Manifest
from capdex.manifest.triggers import Trigger
from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.problems import Reason, Verdict
from capdex.registry.events import Announcement
from indexer.projection.event_rows import MAX_REASON_CHARS, visible
from indexer.projection.tokenizer import fold

MAX_FACET_CHARS: Final = 256  # an index row of PostgreSQL holds no more than 2.7 KB
# Facets that people write in any case; names, tools, permissions and DIDs are exact.
FOLDED: Final = frozenset({"tag", "domain", "language", "license", "publisher"})

Document = dict[str, Any]

_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_ESCAPE = re.compile(r"\\.")  # of a regex: what follows the backslash is no word


class Report(NamedTuple):
    """A verdict with its reason, and what came to light of the package; JSON as text.

    What only a manifest says is None where there is none.
    """

    verdict: Verdict
    reason: Reason | None
    message: str
    signer: str | None
    checks: str
    problems: str
    metadata: str | None = None
    document: str | None = None
    schema_uri: str | None = None
    memory_scope: str | None = None

    @classmethod
    def of(cls, judged: VerifiedPackage | RejectedPackage) -> Report:
        """The report of a package that was judged."""
        rejected = judged if isinstance(judged, RejectedPackage) else None
        report = cls(
            judged.verdict,
            rejected.reason if rejected else None,
            visible(rejected.message, MAX_REASON_CHARS) if rejected else "",
            judged.signer,
            json_text([check.to_json() for check in judged.checks]),
            json_text([problem.to_json() for problem in judged.problems]),
        )
        if (manifest := judged.manifest) is None:
            return report
        announcement = judged.announcement
        return report._replace(
            metadata=json_text(manifest.metadata),
            document=json_text(document(manifest, announcement.publisher, announcement.chain_id)),
            # NIP-7 has incompatible schemas take another version: all are one capability's
            schema_uri=manifest.schema_uri.partition("#")[0],
            memory_scope=manifest.memory_scope,
        )


def report(announcement: Announcement, data: bytes) -> Report:
    """Judge the bytes of a release, and report; never raises on content."""
    return Report.of(judge(announcement, data))


def json_text(value: Any) -> str:
    """A JSON value as ASCII: NUL and lone surrogates stay escaped, as PostgreSQL needs."""
    return _encode(value)


def document(manifest: Manifest, publisher: str, chain_id: int) -> Document:
    """What search needs of a package: its words by field, and the values its filters answer to."""
    parameters = (f"{x.name} {x.description} {_words(x.parameters)}" for x in manifest.tools)
    words = {
        "name": manifest.uri.name,
        "title": manifest.title,
        "description": manifest.description,
        "summary": manifest.summary,
        "tags": "\n".join(manifest.tags),
        "triggers": "\n".join(map(_trigger_words, manifest.triggers)),
        "tools": "\n".join(parameters),
    }
    facets = sorted(set(_facets(manifest, publisher, chain_id)))
    return {"words": {k: v or "" for k, v in words.items()}, "facets": facets}


def facet_value(key: str, value: str) -> str:
    """A filter's value as it is stored and compared."""
    value = (fold(value) if key in FOLDED else value).replace("\0", "\N{SYMBOL FOR NULL}")
    return value.encode("utf-8", "replace").decode("utf-8")[:MAX_FACET_CHARS]


def _facets(manifest: Manifest, publisher: str, chain_id: int) -> Iterator[tuple[str, str]]:
    values: list[tuple[str, Iterable[str | None]]] = [
        ("name", [manifest.uri.name]),
        ("tag", manifest.tags),
        ("domain", [manifest.domain]),
        ("language", manifest.languages),
        ("license", [manifest.license]),
        ("publisher", [publisher, f"eip155:{chain_id}:{publisher}"]),
        ("permission", manifest.permissions),
        ("tool", [tool.name for tool in manifest.tools]),
        ("binding", [str(x.get("type", "")) for x in manifest.bindings.values()]),
    ]
    if manifest.author:  # the DID URL as it stands, and the DID alone
        values.append(("author", [manifest.author, manifest.author.partition("#")[0]]))
    for key, some in values:
        yield from ((key, facet_value(key, value)) for value in some if value)


def _trigger_words(trigger: Trigger) -> str:
    if trigger.model is not None:
        return ""  # sign bits, not words
    return _ESCAPE.sub(" ", trigger.value) if trigger.type == "regex" else trigger.value


def _words(schema: Any) -> str:
    """The words of a tool's parameters: their names and what is said of them."""
    found: list[str] = []
    open_ = [schema]
    while open_:
        part = open_.pop()
        if isinstance(part, list):
            open_ += part
        elif isinstance(part, dict):
            found += part["properties"] if isinstance(part.get("properties"), dict) else ()
            found.append(part["description"] if isinstance(part.get("description"), str) else "")
            open_ += part.values()
    return " ".join(map(str, found))
