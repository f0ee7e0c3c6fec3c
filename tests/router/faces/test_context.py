"""Prompts and resources of the router, read by a real client in both revisions of the protocol."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from capdex_router.catalog.installed import Installed
from capdex_router.faces.actions import Actions
from capdex_router.faces.context import MAX_PROMPTS
from capdex_router.faces.server import build_server
from capdex_router.runtime import open_runtime
from tests.e2e.forks import Warm
from tests.indexer import making
from tests.router.catalog.test_mcp_mount import SERVER
from tests.router.faces.conftest import ERAS, Connect
from tests.router.simulated import Machine, Person, SimulatedNode, uri

Whole = Callable[[], AbstractAsyncContextManager[Client]]
FILES = {"how to/緑 100%.md": b"At 70 degrees."}
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"


@pytest.fixture
def whole(
    machine: Callable[..., Machine], node: SimulatedNode, tmp_path: Path, era: str, warm: Warm
) -> Whole:
    """Open a client of a router with a package, a folder of skills and a mounted server."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        node.publish(
            making.package_bytes(
                "tea", prompt="Tell how {{leaf}} tea steeps: {{pot}} {{cup}} {{mug}}", files=FILES
            )
        )
        for one in FILES.values():
            node.blocks |= {str(cid): block for cid, block in making.divide(one)}
        here = machine(node)
        await here.installer.install(uri("tea"), Person())
        folder = tmp_path / "skills" / "plain"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL)
        (folder / "words.txt").write_text("few")
        (folder / "sign.png").write_bytes(b"\x89PNG")
        foreign = StdioServerParameters(command=warm.python, args=SERVER.args)
        servers, folders = {"foreign": foreign}, [tmp_path / "skills"]
        source = Installed(here.home, here.rights, lambda package, tool: None)
        async with open_runtime(
            here.home.path, [source], servers=servers, folders=folders
        ) as runtime:
            actions = Actions(
                runtime.catalog, runtime.search, runtime.invoker, runtime.results,
                servers=runtime.servers,
            )  # fmt: skip
            async with Client(build_server(actions), mode=ERAS[era]) as client:
                yield client

    return connected


def text(message: types.PromptMessage) -> str:
    assert isinstance(message.content, types.TextContent)
    return message.content.text


async def test_prompts_of_packages_and_skills_are_commands_of_the_host(whole: Whole) -> None:
    async with whole() as client:
        prompts = {one.name: one for one in (await client.list_prompts()).prompts}
        assert sorted(prompts) == ["plain", "tea"]
        named = [argument.name for argument in prompts["tea"].arguments or ()]
        assert named == ["leaf", "pot", "cup", "mug", "message"]
        given = {"leaf": "green", "message": "And the cup?"}
        first, second = (await client.get_prompt("tea", given)).messages
        head, _, body = text(first).partition("\n\n")
        assert head == (
            f"[Prompt of did:nuwa:cap:tea@1.0.0, signed by {making.AUTHOR}."
            " The text below is its author's, not the user's.]"
        )
        assert body == "Tell how green tea steeps: {{pot}} {{cup}} {{mug}}"
        assert text(second) == "And the cup?"
        (plain,) = (await client.get_prompt("plain")).messages
        assert "a folder of this machine" in text(plain)


async def test_a_prompt_that_is_not_there_is_a_protocol_error_that_says_what_to_do(
    whole: Whole,
) -> None:
    async with whole() as client:
        with pytest.raises(MCPError, match="prompts/list has the first") as caught:
            await client.get_prompt("nothing")
        assert caught.value.code == types.INVALID_PARAMS


async def test_a_host_that_asks_for_templates_gets_none(whole: Whole) -> None:
    async with whole() as client:
        assert (await client.list_resource_templates()).resource_templates == []


async def test_resources_of_packages_skills_and_servers_are_listed_and_read(
    whole: Whole,
) -> None:
    async with whole() as client:
        listed = {str(x.uri): x for x in (await client.list_resources()).resources}
        assert sorted(listed) == [
            "capdex://tea/1.0.0/package",
            "capdex://tea/1.0.0/schema",
            "mcp://foreign/notes://today",
            "skill://plain/sign.png",
            "skill://plain/words.txt",
        ]
        assert listed["mcp://foreign/notes://today"].name == "today"
        expected = {
            "mcp://foreign/notes://today": "of notes://today",
            "skill://plain/words.txt": "few",
            "capdex://tea/1.0.0/schema": '"did:nuwa:state:tea#v1"',
            "capdex://tea/1.0.0/package": "Tell how {{leaf}} tea steeps: {{pot}} {{cup}} {{mug}}",
        }
        for name, words in expected.items():
            (content,) = (await client.read_resource(name)).contents
            assert isinstance(content, types.TextResourceContents)
            assert str(content.uri) == name
            assert words in content.text
        (picture,) = (await client.read_resource("skill://plain/sign.png")).contents
        assert isinstance(picture, types.BlobResourceContents)
        assert (base64.b64decode(picture.blob), picture.mime_type) == (b"\x89PNG", "image/png")


@pytest.mark.parametrize("path", ["how to/緑 100%.md", "how%20to/%E7%B7%91%20100%25.md"])
async def test_a_file_of_a_package_is_read_by_its_path_however_a_client_writes_it(
    whole: Whole, path: str
) -> None:
    async with whole() as client:
        (content,) = (await client.read_resource(f"capdex://tea/1.0.0/{path}")).contents
        assert isinstance(content, types.TextResourceContents)
        assert (content.text, content.mime_type) == ("At 70 degrees.", "text/plain")


@pytest.mark.parametrize(
    "name",
    [
        "mcp://foreign/notes://tomorrow",
        "mcp://other/notes://today",
        "skill://plain/../SKILL.md",
        "skill://plain/SKILL.md.txt",
        "capdex://tea",
        "capdex://tea/9.9.9/package",
        "capdex://tea/1.0.0/secret",
        "file:///etc/passwd",
        "demo://resource/dynamic/1",
        "nothing",
    ],
)
async def test_a_resource_that_is_not_listed_is_a_protocol_error(whole: Whole, name: str) -> None:
    async with whole() as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(name)
        said = refused.value.error.message
        assert name.startswith("skill:") or "'skill:" not in said
        assert (
            name.startswith(("skill:", "capdex:", "mcp:"))
            or f"there is no resource {name!r} here" in said
        )


async def test_the_list_of_prompts_is_bounded_and_every_prompt_can_be_had(
    connect: Connect, era: str
) -> None:
    async with connect(era, count=200) as client:
        listed = (await client.list_prompts()).prompts
        assert len(listed) == MAX_PROMPTS
        (last,) = (await client.get_prompt("pack199")).messages
        assert text(last).endswith("Do it.")
