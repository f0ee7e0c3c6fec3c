"""A name by the chain, joined with what a node says of its releases."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_publisher.registry.audit import NameAudit

ON_CHAIN: dict[str, Any] = {
    "complete": True,
    "releases": [{"semver": "1.0.0", "sha256": "00", "status": {"yanked": False}}],
}


@pytest.mark.parametrize("semver", [None, 1, ["1.0.0"], {"1.0.0": 1}], ids=repr)
def test_a_release_of_a_node_without_a_version_in_words_is_passed_over(semver: object) -> None:
    releases = [{"semver": semver}, {"semver": "1.0.0", "sha256": "00", "of": "node"}]
    audited = NameAudit("weather", ON_CHAIN, {"releases": releases, "as_of": {}}, ())
    assert [x["of"] for x in audited.releases] == ["node"]
