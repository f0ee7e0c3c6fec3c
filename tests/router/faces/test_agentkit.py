"""agentkit's shapes: what stands behind an invocable of ours, and what a foreign one becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from capdex.ipld.cid import Cid
from capdex.json import Json
from capdex.manifest.manifest import read
from capdex.package import verify
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.authoring.validate import announcement_of
from capdex_publisher.keys.signer import LocalSigner
from capdex_router.catalog.packages import skill
from capdex_router.catalog.skill_folder import read_skill
from capdex_router.faces import agentkit
from capdex_router.faces.agentkit_adapters import RouterInvocable, RouterProvider, capabilities
from capdex_router.invoke.invoke import Caller
from capdex_router.policy.consent import Refuse
from tests.router.faces.demo import actions
from tests.router.simulated import Person

CONTEXT = agentkit.CapabilityContext("s", "t")


def provider(path: Path) -> RouterProvider:
    found = actions(path)
    skill = found.catalog.get("did:nuwa:cap:note")
    tools = [found.catalog.get(f"did:nuwa:cap:demo#{name}") for name in ("echo", "destroy")]
    return RouterProvider(skill, tools, found.invoker)


def test_a_package_is_a_provider_of_invocables_and_a_prompt(tmp_path: Path) -> None:
    found = provider(tmp_path)
    assert isinstance(found, agentkit.CapabilityProvider)
    assert all(isinstance(x, agentkit.Invocable) for x in found.invocables())
    assert all(isinstance(x, agentkit.PromptProvider) for x in found.prompts())
    assert [x.spec().name for x in found.invocables()] == ["echo", "destroy"]
    assert all(isinstance(x, agentkit.ResourceProvider) for x in found.resources())


async def test_files_of_a_package_are_resources_by_their_uri_and_its_own_parts_are_bytes(
    tmp_path: Path,
) -> None:
    row = {"path": "a.md", "cid": str(Cid.of(b"A")), "sha256": Cid.of(b"A").digest.hex()}
    text = scaffold("note", kind=PackageKind.PROMPT, description="Keeps notes.")
    text += "\nresources:\n  - " + json.dumps({**row, "size": 1, "media_type": "text/markdown"})
    signer = LocalSigner(b"\x11" * 32)
    data = await sign((text + "\n").encode(), signer, chain_id=31337)
    package = verify(announcement_of(read(data), chain_id=31337, publisher=signer.address), data)
    (found,) = RouterProvider(skill(package), (), actions(tmp_path).invoker).resources()
    named = {x.name: x for x in await found.list_resources()}
    assert list(named) == ["package", "schema", "a.md"]
    assert named["a.md"].mime_type == "text/markdown"
    own = await found.read_resource(named["package"].id, CONTEXT)
    assert own.data.data == data
    file = await found.read_resource(named["a.md"].id, CONTEXT)
    assert file.data == agentkit.DataRef(uri=f"ipfs://{row['cid']}")
    with pytest.raises(agentkit.CapabilityUnavailable):
        await found.read_resource("ipfs://other", CONTEXT)


async def test_files_in_the_folder_of_a_skill_are_resources_by_their_path(tmp_path: Path) -> None:
    text = "---\nname: note\ndescription: Keeps notes.\n---\nDo it.\n"
    (tmp_path / "note").mkdir()
    (tmp_path / "note/SKILL.md").write_text(text)
    (tmp_path / "note/a.md").write_text("A")
    note = read_skill(tmp_path / "note")
    (found,) = RouterProvider(note, (), actions(tmp_path).invoker).resources()
    (file,) = [x for x in await found.list_resources() if x.name == "a.md"]
    assert (await found.read_resource(file.id, CONTEXT)).data.data == b"A"
    with pytest.raises(agentkit.CapabilityUnavailable):
        await found.read_resource("other", CONTEXT)


async def test_an_invocable_takes_the_whole_pipeline(tmp_path: Path) -> None:
    echo, destroy = provider(tmp_path).invocables()
    result = await echo.invoke(agentkit.InvocableRequest({"text": "hi"}), CONTEXT)
    assert result.output == agentkit.Structured({"text": "hi"})
    with pytest.raises(agentkit.CapabilityInvalidInput):
        await echo.invoke(agentkit.InvocableRequest({}), CONTEXT)
    with pytest.raises(agentkit.CapabilityExecutionFailed) as refused:
        await destroy.invoke(agentkit.InvocableRequest({"text": "hi"}), CONTEXT)
    assert refused.value.metadata["code"] == "PERMISSION_DENIED"
    assert refused.value.metadata["reason"] == "CONFIRM_NEEDED"


async def test_a_capability_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    found = actions(tmp_path)
    one = found.catalog.get("did:nuwa:cap:demo#echo")
    empty = actions(tmp_path).invoker
    empty.catalog._sources[0].put([])  # type: ignore[attr-defined]
    with pytest.raises(agentkit.CapabilityUnavailable):
        await RouterInvocable(one, empty, Refuse()).invoke(
            agentkit.InvocableRequest({"text": "a"}), CONTEXT
        )


async def test_the_prompt_of_a_skill_is_rendered(tmp_path: Path) -> None:
    (prompts,) = provider(tmp_path).prompts()
    (described,) = await prompts.list_prompts()
    contents = await prompts.get_prompt(described.id, {}, CONTEXT)
    assert contents.items == (agentkit.Item("system", "You take notes."),)
    with pytest.raises(agentkit.CapabilityUnavailable):
        await prompts.get_prompt("other", {}, CONTEXT)


async def test_the_arguments_of_a_prompt_are_in_its_items(tmp_path: Path) -> None:
    here = provider(tmp_path)
    assert here.skill is not None
    skill = replace(here.skill, prompt="Write in {{language}}.")
    (prompts,) = replace(here, skill=skill).prompts()
    (described,) = await prompts.list_prompts()
    given = {"language": "French", "message": "A note on bread"}
    contents = await prompts.get_prompt(described.id, given, CONTEXT)
    assert contents.items == (
        agentkit.Item("system", "Write in French."),
        agentkit.Item("user", "A note on bread"),
    )
    with pytest.raises(agentkit.CapabilityInvalidInput):
        await prompts.get_prompt(described.id, {"language": "a" * 200_000}, CONTEXT)


@dataclass
class Foreign:
    """An invocable of another program."""

    output: Any
    reads: bool = False

    def spec(self) -> agentkit.InvocableSpec:
        return agentkit.InvocableSpec(
            "work", "works", {"type": "object"}, {"read_only": True} if self.reads else {}
        )

    async def invoke(
        self, request: agentkit.InvocableRequest, ctx: agentkit.CapabilityContext
    ) -> agentkit.InvocableResult:
        if isinstance(self.output, Exception):
            raise self.output
        return agentkit.InvocableResult(self.output)


@dataclass
class ForeignProvider:
    invocable: Foreign

    def invocables(self) -> list[Foreign]:
        return [self.invocable]

    def resources(self) -> list[Any]:
        return []

    def prompts(self) -> list[Any]:
        return []


async def called(path: Path, foreign: Foreign, asker: Any) -> Json:
    found = actions(path)
    source = found.catalog._sources[0]
    source.put(  # type: ignore[attr-defined]
        capabilities(ForeignProvider(foreign), name="other", version="1.0.0", digest="cc")
    )
    result = await found.invoker.invoke("other#work", "1.0.0", {}, Caller(asker))
    return result.to_json()


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (agentkit.Text("a"), {"text": "a"}),
        (agentkit.Structured({"a": 1}), {"a": 1}),
        (agentkit.Structured([1]), {"value": [1]}),
        (agentkit.Items((agentkit.Item("user", "a"),)), {"items": [{"role": "user", "text": "a"}]}),
        (agentkit.Data(agentkit.DataRef(uri="x:y")), {"uri": "x:y"}),
        (agentkit.Data(agentkit.DataRef(text="a")), {"text": "a"}),
    ],
    ids=str,
)
async def test_a_foreign_invocable_is_a_tool_of_the_runtime(
    tmp_path: Path, output: Any, shown: Json
) -> None:
    person = Person()
    assert (await called(tmp_path, Foreign(output), person))["output"] == shown
    assert person.asked[0].lines[0] == 'call "work" of the MCP service other'


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (agentkit.CapabilityUnavailable("off"), "EXECUTION_FAILED"),
        (agentkit.CapabilityInvalidInput("bad"), "INVALID_INPUT"),
        (agentkit.CapabilityExecutionFailed("broke"), "EXECUTION_FAILED"),
        (agentkit.Data(agentkit.DataRef(data=b"\0")), "EXECUTION_FAILED"),
    ],
    ids=str,
)
async def test_errors_of_a_foreign_invocable_keep_their_meaning(
    tmp_path: Path, error: Any, code: str
) -> None:
    assert (await called(tmp_path, Foreign(error), Person()))["error"]["code"] == code


async def test_a_foreign_tool_is_asked_for_unless_it_only_reads(tmp_path: Path) -> None:
    person = Person()
    await called(tmp_path, Foreign(agentkit.Text("a")), person)
    await called(tmp_path, Foreign(agentkit.Text("a"), reads=True), person)
    # The first yes was for a call that may destroy something: it lasts for that call alone.
    assert [asked.summary.startswith("It may destroy") for asked in person.asked] == [True, False]
