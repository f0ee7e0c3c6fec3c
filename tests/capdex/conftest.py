"""The builders beside these tests, which are no package and so cannot import one another."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

# For `make coverage`: what tests reach for certain, whatever examples are drawn.
settings.register_profile("explicit", deadline=None, phases=[Phase.explicit])


def load(name: str) -> ModuleType:
    """The module `name` in this folder."""
    full = f"capdex_tests_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).parent / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@pytest.fixture(scope="session")
def proving() -> Any:
    """Chains with a registry, built in memory (proving.py)."""
    return load("proving")


@pytest.fixture(scope="session")
def tampering() -> Any:
    """Every way to tamper with a proof document (tampering.py)."""
    return load("tampering")
