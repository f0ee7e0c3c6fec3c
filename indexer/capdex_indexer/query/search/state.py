"""What a reader's search answers from: an engine, and the state of the index that it holds."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.routing import TriggerSet
from capdex.search import Engine


@dataclass(frozen=True, slots=True)
class State:
    """An engine, the revision of the index that it holds, and the key that signs cursors.

    `encoder` is the identity of the encoder that its vectors are of; None: it has none.
    `triggers` are those of the same packages; None until they have been read.
    """

    engine: Engine
    revision: int
    key: bytes
    encoder: str | None = None
    triggers: TriggerSet | None = None
