"""Answers as small as a model needs them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from capdex.uri import CapabilityURI
from capdex_indexer import Index
from capdex_service.answers import brief


@pytest.mark.parametrize(
    ("instead", "status"),
    [
        ("memo", {"yanked": True, "deprecated": True, "replaced_by": "memo"}),
        ("", {"yanked": True, "deprecated": True, "name_deprecated": True}),
    ],
)
def test_a_name_to_use_instead_hides_no_flag_of_a_release(
    growing: Any, instead: str, status: dict[str, Any]
) -> None:
    making = growing.making
    growing.publish("note")
    growing.chain.mine(making.yanked("note", "1.0.0"), making.deprecated("note", "1.0.0", "old"))
    growing.chain.mine(making.name_deprecated("note", "", instead))
    growing.follow()
    with closing(Index(growing.url)) as index:
        release = index.resolve(CapabilityURI.parse("did:nuwa:cap:note@1.0.0"))
    assert brief.resolution(release, ())["status"] == status
