"""A session: what is mounted and when, and who may pop it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from capdex.errors import Code, Unavailable
from capdex.json import Json
from capdex.manifest.triggers import Trigger
from capdex_router.catalog.catalog import Catalog, Fixed, Listed
from capdex_router.model.capability import Capability, Owner
from capdex_router.model.refs import CapabilityRef, InvokeResult
from capdex_router.routing.session import Session

WEATHER, NOTE = "did:nuwa:cap:weather", "did:nuwa:cap:note"
WORDS = {WEATHER: "weather", NOTE: "note"}
NEEDS = {
    "model_family": ["gpt-4"],
    "min_context_window": 16_000,
    "required_features": ["tool_use", "vision"],
}


class Triggered(Fixed):
    """Skills with a keyword each; their packages may be away."""

    away = False

    def listed(self) -> list[Listed]:
        return [
            Listed(
                x.ref, x.kind, x.name, x.description,
                triggers=(Trigger("keyword", WORDS[x.ref.capability_id], None),)
                if x.kind == "skill" else (),
                llm_requirements=NEEDS if x.ref.capability_id == WEATHER else {},
            )
            for x in super().listed()
        ]  # fmt: skip

    def load(self, ref: CapabilityRef) -> Capability:
        if self.away:
            raise Unavailable("no source has the package", Code.IPFS_UNAVAILABLE)
        return self._by_ref[ref]


def skill(name: str) -> Capability:
    ref = CapabilityRef(name, "1.0.0")
    return Capability(ref, "skill", name, "", {}, Owner("package", name, "aa"), prompt="Do it.")


def tool(name: str) -> Capability:
    ref = CapabilityRef(f"{name}#now", "1.0.0")
    return Capability(ref, "tool", "now", "", {}, Owner("package", name, "aa"))


def session(names: Iterable[str] = (WEATHER, NOTE)) -> tuple[Session, Triggered]:
    source = Triggered([make(name) for name in names for make in (skill, tool)])
    return Session(Catalog([source]), clock=lambda: 0.0), source


def done(output: Json) -> InvokeResult:
    return InvokeResult(output, None, 1)


def test_a_message_mounts_a_capability_once() -> None:
    found, _ = session()
    first = found.route("what will the weather be in Oslo?")
    assert first["capability"] == WEATHER
    assert first["tools"] == [f"{WEATHER}#now"]
    assert first["prompt_of_publisher"] == "Do it."
    again = found.route("and the weather tomorrow?")
    assert again["capability"] == WEATHER
    assert "prompt_of_publisher" not in again


def test_what_a_package_asks_of_the_model_is_a_warning() -> None:
    found, _ = session()
    assert found.route("weather")["warnings"] == [
        "made for gpt-4; the model here is unknown",
        "needs a context of 16000 tokens; that here is unknown",
        "asks for tool_use, vision; the model here is unknown",
    ]
    assert "warnings" not in found.route("/switch note")


def test_a_capability_whose_package_could_not_be_read_is_mounted_once_it_can() -> None:
    found, source = session()
    source.away = True
    with pytest.raises(Unavailable):
        found.route("what will the weather be in Oslo?")
    source.away = False
    assert found.route("and the weather in Rome?")["tools"] == [f"{WEATHER}#now"]


def test_switch_and_back() -> None:
    found, _ = session()
    found.route("weather")
    assert found.route("/switch note")["capability"] == NOTE
    assert found.route("/back")["capability"] == WEATHER
    assert found.route("/back")["fallback"] is True


def test_done_pops_the_capability_that_says_it_and_no_other() -> None:
    found, _ = session()
    found.route("weather")
    found.answered(tool(NOTE), done({"done": True}))
    found.answered(tool(WEATHER), done({"text": '{"done": true}', "more": {"done": True}}))
    assert "prompt_of_publisher" not in found.route("weather")
    found.answered(tool(WEATHER), done({"done": True}))
    assert "prompt_of_publisher" in found.route("weather")


def test_done_pops_the_capability_also_where_other_content_stands_beside_it() -> None:
    found, _ = session()
    found.route("weather")
    bye = {"content": [{"type": "text", "text": "Bye."}], "structuredContent": {"done": True}}
    found.answered(tool(WEATHER), done(bye))
    assert "prompt_of_publisher" in found.route("weather")


def test_what_is_removed_gets_no_message() -> None:
    found, source = session()
    found.route("weather")
    source.put([skill(NOTE)])
    assert found.route("weather")["fallback"] is True
