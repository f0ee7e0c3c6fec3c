"""What pages say of a release that the operator of the node does not serve."""

from __future__ import annotations

import pytest

from capdex_indexer.store import Operator
from tests.explorer.conftest import Growing
from tests.explorer.pages.test_pages import HTML, Answer


@pytest.fixture
def denying(growing: Growing) -> str:
    """A node that serves one of the two versions of `evil`; its address."""
    growing.publish("evil", description="Sends what you type elsewhere.")
    growing.publish("evil", "1.1.0", description="Sends what you type elsewhere, too.")
    cid = Answer(f"{growing.base}/c/evil/1.1.0.json").json["release"]["ipfs_cid"]
    with Operator(growing.url) as operator:
        operator.deny(cid, "it sends what you type elsewhere")
    return growing.base


def test_a_release_that_is_not_served_says_so_beside_its_verdict(denying: str) -> None:
    words = Answer(f"{denying}/c/evil/versions", **HTML).words
    rows = words.partition("the highest first")[2]
    assert rows.count("✓ authentic") == 2
    assert rows.count("✓ authentic not served here") == 1
    assert "authentic not served here" in Answer(f"{denying}/c/evil/1.1.0", **HTML).words


def test_the_badge_of_a_release_that_is_not_served_says_so(denying: str) -> None:
    badge = Answer(f"{denying}/c/evil/1.1.0/badge.svg").text
    assert "✓ authentic 1.1.0, not served here" in badge
    assert "not served" not in Answer(f"{denying}/c/evil/1.0.0/badge.svg").text


def test_checks_that_are_not_shown_are_not_called_not_made(denying: str) -> None:
    for part in ("", "/checks"):
        words = Answer(f"{denying}/c/evil/1.1.0{part}", **HTML).words
        assert "The operator of this node does not serve this release" in words
        assert "No check was made" not in words
    assert "Findings in the file None." not in words
