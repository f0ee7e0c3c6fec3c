"""Answers as bytes: rendered once, and joined with the block of the moment when they are sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.query.status import Position
from capdex_service.answers.release import as_of, split

_FINALITY: Final = (b'"head"', b'"finalized"')


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of the index that answers are of: its revision, block and finalized block.

    `as_of` is the JSON of the position in every answer.
    """

    revision: int
    finalized: int
    as_of: bytes

    @classmethod
    def of(cls, revision: int, position: Position) -> Moment:
        """Return the moment of a position."""
        finalized = -1 if position.finalized is None else position.finalized
        return cls(revision, finalized, orjson.dumps(as_of(position)))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to send: `body` is a JSON object, `text_json` the text for a model as JSON.

    `brief` is the JSON object for a model, of an answer of a tool.
    """

    body: bytes
    text_json: bytes
    brief: bytes = b""

    @property
    def text(self) -> str:
        """The text for a model."""
        return str(orjson.loads(self.text_json))

    @property
    def etag(self) -> str:
        """A strong ETag of the body."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def to_json(self) -> dict[str, Any]:
        """Return the body as values."""
        value: dict[str, Any] = orjson.loads(self.body)
        return value


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer without the finality of its releases and without `as_of`.

    The finality of the release at block `blocks[i]` belongs between `parts[i]` and `parts[i + 1]`;
    `as_of` follows the last part. `brief` is of a tool: the text ends with its `next`. `name` is
    that of its releases, if they have one.
    """

    parts: tuple[bytes, ...]
    blocks: tuple[int, ...]
    text_json: bytes
    brief: bytes = b""
    name: str = ""

    @classmethod
    def of(
        cls,
        body: Mapping[str, Any],
        text: str = "",
        brief: Mapping[str, Any] | None = None,
    ) -> Rendered:
        """Render an answer without releases; its body has a field at least."""
        return cls((orjson.dumps(body)[:-1],), (), *told(text, brief))

    def to_bytes(self) -> bytes:
        """Return it as bytes; JSON has no zero byte, so one stands between its parts."""
        head = orjson.dumps(self.blocks), self.text_json, self.brief, self.name.encode()
        return b"\0".join((*head, *self.parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> Rendered:
        """Return what `to_bytes` gave."""
        blocks, text_json, brief, name, *parts = data.split(b"\0")
        return cls(tuple(parts), tuple(orjson.loads(blocks)), text_json, brief, name.decode())

    def answer(self, moment: Moment, warning: str | None = None, like: str | None = None) -> Answer:
        """Join the parts with what the moment determines, and the older name that its name is like.

        What a name is like may change with other names, so it is in no part.
        """
        joined, brief, text_json = [self.parts[0]], self.brief, self.text_json
        for block, part in zip(self.blocks, self.parts[1:], strict=True):
            joined += (_FINALITY[block <= moment.finalized], part)
        if like is not None:
            joined.append(said := b',"like":' + orjson.dumps(like))
            brief = brief and brief[:-1] + said + b"}"
            text_json = orjson.dumps(f"like the older name {like} of another owner\n")[:-1]
            text_json += self.text_json[1:]
        joined += (b',"as_of":', moment.as_of, b"}")
        if warning is not None:
            said = b',"warning":' + orjson.dumps(warning)
            joined[-1:] = (b"}", b"}")
            joined[-3] = moment.as_of[:-1] + said
            brief = brief and brief[:-1] + said + b"}"
        return Answer(b"".join(joined), text_json, brief)


def render_name(
    head: Mapping[str, Any], releases: Iterable[tuple[IndexedRelease, Mapping[str, Any]]]
) -> Rendered:
    """Render the fields of a name, then its releases, each with further fields."""
    parts, blocks, comma = [orjson.dumps(head)[:-1] + b',"releases":['], [], b""
    for release, more in releases:
        parts[-1] += comma + b"".join(split(release, more))
        parts.append(b"}}")
        blocks.append(release.block_number)
        comma = b","
    parts[-1] += b"]"
    return Rendered(tuple(parts), tuple(blocks), b'""', name=str(head["name"]))


def render_release(
    release: IndexedRelease, more: Mapping[str, Any], text: str, brief: Mapping[str, Any] | None
) -> Rendered:
    """Render the answer that is one release with further fields; without `brief` it is whole."""
    before = b"".join(split(release, more))
    return Rendered((before, b"}"), (release.block_number,), *told(text, brief), str(release.name))


def told(text: str, brief: Mapping[str, Any] | None) -> tuple[bytes, bytes]:
    """Return a text that ends with the next step, and the brief structure, both as JSON."""
    if brief is None:
        return orjson.dumps(text), b""
    return orjson.dumps(f"{text}\nnext: {brief['next']}"), orjson.dumps(brief)
