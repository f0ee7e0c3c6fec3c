"""What is fuzzed: how an input is made, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"


@dataclass(frozen=True)
class Target:
    """`make` gives an input, the same for the same `Random`. `check` says in a word what became of
    it, and raises for whatever must not be: any error but a typed one, or a wrong answer."""

    name: str
    share: int
    make: Callable[[Random], bytes]
    check: Callable[[bytes], str]
