"""Events of a subscription."""

from __future__ import annotations

import pytest
from mcp.shared.subscriptions import ResourceUpdated

from capdex.errors import InvalidInput
from capdex_service.mcp.subscriptions.interest import Interest, notification

CHANGES = "capdex://registry/changes"


def test_a_change_of_a_name_is_one_of_each_of_its_uris() -> None:
    uris = ["capdex://note", "capdex://note/1.0.0/tools", "capdex://weather/latest/package"]
    interest = Interest.of(uris)
    assert list(interest.events(["other", "note"])) == [ResourceUpdated(x) for x in uris[:2]]
    assert list(interest.events([])) == []
    assert list(Interest.of([]).events(["note"])) == []


def test_everything_new_hears_of_every_name() -> None:
    interest = Interest.of([CHANGES])
    assert list(interest.events(["a-name"])) == [ResourceUpdated(CHANGES)]
    assert list(interest.events([])) == []


@pytest.mark.parametrize("uri", ["", "capdex://", "file:///etc/passwd", "capdex://note/x"])
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(InvalidInput):
        Interest.of([uri])


def test_notifications_have_no_empty_members() -> None:
    made = notification(ResourceUpdated("capdex://note"))
    assert made.model_dump(by_alias=True, mode="json", exclude_none=True) == {
        "method": "notifications/resources/updated",
        "params": {"uri": "capdex://note"},
    }
