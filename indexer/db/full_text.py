"""The full-text documents of listed releases: FTS5 on SQLite, tsvector and GIN on PostgreSQL.

Both hold only the tokens of indexer/projection/tokenizer.py, so both find the same releases. A
better hit has a higher score; rarer words weigh more, longer documents less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, text

from indexer.projection.tokenizer import document_tokens

FIELDS: Final = ("name", "title", "description", "summary", "tags", "triggers", "tools")
MAX_FIELD_TOKENS: Final = 2048  # of 32 characters: a tsvector, 1 MB at most, holds two such fields

SATURATION: Final = 2.0  # BM25's k1; repeated words count for more than with the usual 1.2
LENGTH_WEIGHT: Final = 0.75  # BM25's b, which FTS5 has fixed
# FTS5 has fixed k1 at 1.2, too, but weighting each field's counts has the same effect.
_FTS5_RANK: Final = f"bm25({', '.join([str(1.2 / SATURATION)] * len(FIELDS))})"

_COLUMNS: Final = ", ".join(FIELDS)
_VALUES: Final = ", ".join(f":{field}" for field in FIELDS)


@dataclass(frozen=True, slots=True)
class Match:
    """A release with a matching document."""

    release_id: int
    score: float


def put(connection: Connection, documents: Mapping[int, Mapping[str, str]]) -> None:
    """Write the documents of releases; `documents` has their texts by release id and field."""
    if not documents:
        return
    if connection.dialect.name == "sqlite":
        insert = f"INSERT INTO document (rowid, {_COLUMNS}) VALUES (:release_id, {_VALUES})"  # noqa: S608
    else:
        insert = (
            f"INSERT INTO document (release_id, {_COLUMNS}, length, tokens) "  # noqa: S608
            f"VALUES (:release_id, {_VALUES}, :length, CAST(:tokens AS tsvector))"
        )
    rows = []
    for release_id, words in documents.items():
        fields = {x: document_tokens(words.get(x, ""))[:MAX_FIELD_TOKENS] for x in FIELDS}
        row: dict[str, Any] = {field: " ".join(tokens) for field, tokens in fields.items()}
        if connection.dialect.name != "sqlite":
            every = [token for tokens in fields.values() for token in tokens]
            row |= {"length": len(every), "tokens": _tsvector(every)}
        rows.append({"release_id": release_id} | row)
    connection.execute(text(insert), rows)


def remove(connection: Connection, release_ids: Iterable[int]) -> None:
    """Remove the documents of these releases."""
    key = "rowid" if connection.dialect.name == "sqlite" else "release_id"
    ids = ", ".join(str(int(release_id)) for release_id in release_ids)
    connection.execute(text(f"DELETE FROM document WHERE {key} IN ({ids})"))  # noqa: S608


def read(connection: Connection, release_ids: Iterable[int]) -> dict[int, dict[str, set[str]]]:
    """Return the tokens of these documents by field."""
    key = "rowid" if connection.dialect.name == "sqlite" else "release_id"
    ids = ", ".join(str(int(release_id)) for release_id in release_ids)
    rows = connection.execute(
        text(f"SELECT {key} AS release_id, {_COLUMNS} FROM document WHERE {key} IN ({ids})")  # noqa: S608
    )
    return {row.release_id: {x: set(getattr(row, x).split()) for x in FIELDS} for row in rows}


def find(
    connection: Connection,
    tokens: Sequence[str],
    *,
    where: str,
    values: Mapping[str, Any],
    exact: str,
    limit: int,
    offset: int,
) -> tuple[list[Match], int]:
    """Return a page of the listed releases with any of the tokens, best first, and their number.

    `where` is a condition on `listing` with its `values`; the release named `exact` comes first.
    """
    source, condition, terms = _matching(connection, tokens)
    if connection.dialect.name == "sqlite":
        condition += " AND document.rank MATCH :rank"
        score, ranks = "-document.rank", {"rank": _FTS5_RANK}
    else:
        score, ranks = _rank(connection, tokens)
    terms |= ranks
    body = f"FROM {source} WHERE {condition} AND {where}"
    rows = connection.execute(
        text(
            f"SELECT listing.release_id, {score} AS score, count(*) OVER () AS total {body} "
            "ORDER BY (listing.name = :exact) DESC, score DESC, listing.name "
            "LIMIT :limit OFFSET :offset"
        ),
        {**values, **terms, "exact": exact, "limit": limit, "offset": offset},
    ).all()
    return [Match(row.release_id, float(row.score)) for row in rows], rows[0].total if rows else 0


def count_facets(
    connection: Connection,
    tokens: Sequence[str],
    *,
    where: str,
    values: Mapping[str, Any],
    keys: Sequence[str],
    limit: int,
) -> dict[str, list[tuple[str, int]]]:
    """Return the commonest filter values among the matches of `find`, by key, with their numbers.

    Without tokens all listed releases that fulfil `where` are counted.
    """
    source, condition, terms = _matching(connection, tokens) if tokens else ("listing", "1 = 1", {})
    wanted = {f"facet{i}": key for i, key in enumerate(keys)}
    names = ", ".join(f":{name}" for name in wanted)
    rows = connection.execute(
        text(
            f"SELECT facet.key, facet.value, count(*) AS n FROM {source} "  # noqa: S608
            "JOIN facet ON facet.release_id = listing.release_id "
            f"WHERE {condition} AND {where} AND facet.key IN ({names}) "
            "GROUP BY facet.key, facet.value ORDER BY n DESC, facet.value"
        ),
        {**values, **terms, **wanted},
    )
    found: dict[str, list[tuple[str, int]]] = {key: [] for key in keys}
    for key, value, count in rows:
        if len(found[key]) < limit:
            found[key].append((value, count))
    return found


def _matching(connection: Connection, tokens: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Return source and condition of the listed releases with any of the tokens, and its terms."""
    if connection.dialect.name == "sqlite":
        source = "document JOIN listing ON listing.release_id = document.rowid"
        return source, "document MATCH :any", {"any": " OR ".join(map(_quote_fts5, tokens))}
    source = "document JOIN listing ON listing.release_id = document.release_id"
    condition = "document.tokens @@ CAST(:any AS tsquery)"
    return source, condition, {"any": " | ".join(map(_quote_lexeme, tokens))}


def _rank(connection: Connection, tokens: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return BM25 as a PostgreSQL expression, and its parameters.

    For a word that occurs n times ts_rank is the sum of 1/i² up to n over its limit π²/6, which
    1 - 6/π² / (n + 0.5) approximates within 2 %. So n follows from ts_rank; to count it would
    unpack the vector of every document.
    """
    terms: dict[str, Any] = {f"term{i}": _quote_lexeme(x) for i, x in enumerate(tokens)}
    queries = [f"CAST(:{term} AS tsquery)" for term in terms]
    holding = ", ".join(f"count(*) FILTER (WHERE tokens @@ {query})" for query in queries)
    found = connection.execute(
        text(
            "SELECT (SELECT count(*) FROM document), (SELECT avg(length) FROM document), "  # noqa: S608
            f"{holding} FROM document WHERE tokens @@ CAST(:any AS tsquery)"
        ),
        terms | {"any": " | ".join(terms.values())},
    ).one()
    documents, average, *counts = found
    for i, count in enumerate(counts):
        terms[f"idf{i}"] = math.log(1 + (documents - count + 0.5) / (count + 0.5))
    terms["average"] = float(average or 1)
    rows = ", ".join(f"(CAST(:idf{i} AS float8), {query})" for i, query in enumerate(queries))
    k = f"({SATURATION} * (1 - {LENGTH_WEIGHT} + {LENGTH_WEIGHT} * document.length / :average))"
    share = f"1 - {k} * (1 - r) / ({6 / math.pi**2} + ({k} - 0.5) * (1 - r))"
    rank = "SELECT ts_rank('{1,1,1,1}', document.tokens, term.query) AS r OFFSET 0"
    return (
        f"(SELECT sum(term.idf * ({share})) FROM (VALUES {rows}) AS term (idf, query), "  # noqa: S608
        f"LATERAL ({rank}) AS ranked WHERE r > 0)",
        terms,
    )


def _quote_fts5(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def _quote_lexeme(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _tsvector(tokens: Sequence[str]) -> str:
    positions: dict[str, list[str]] = {}
    for position, token in enumerate(tokens, start=1):
        positions.setdefault(token, []).append(str(position))
    # PostgreSQL keeps 255 positions a word
    return " ".join(f"{_quote_lexeme(x)}:{','.join(at[:255])}" for x, at in positions.items())
