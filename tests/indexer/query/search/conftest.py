"""The weights of the encoder in a file, which takes seconds to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex_indexer.query.search.mapped_encoder import MappedEncoder


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file; tests copy what they change."""
    folder = tmp_path_factory.mktemp("written")
    MappedEncoder(folder).encode(["rain"])
    return folder
