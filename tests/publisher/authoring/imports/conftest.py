"""What the tests of imports share: packages are read as a node reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capdex.manifest.manifest import Manifest, read
from capdex.problems import Severity
from capdex_publisher.authoring.imports.draft import Imported

ROOT = Path(__file__).parents[4]


@pytest.fixture
def manifest_of() -> Callable[[Imported], Manifest]:
    """Return the manifest of a package that was written, which has no error."""

    def manifest_of(imported: Imported) -> Manifest:
        reading = read(imported.text.encode())
        assert [x for x in reading.problems if x.severity is Severity.ERROR] == []
        return reading.require()

    return manifest_of


@pytest.fixture(scope="session")
def openapi_documents() -> dict[str, bytes]:
    """Public OpenAPI documents by name, from the npm package @readme/oas-examples."""
    folder = ROOT / "node_modules" / "@readme" / "oas-examples"
    return {
        "star-trek": (folder / "3.0" / "yaml" / "star-trek.yaml").read_bytes(),
        "train-travel": (folder / "3.1" / "json" / "train-travel.json").read_bytes(),
        "uspto": (folder / "3.0" / "json" / "uspto.json").read_bytes(),
        "petstore": (folder / "3.0" / "yaml" / "petstore.yaml").read_bytes(),
        "parameters": (folder / "3.0" / "yaml" / "parameters-extreme.yaml").read_bytes(),
        "circular": (folder / "3.0" / "yaml" / "schema-circular.yaml").read_bytes(),
    }
