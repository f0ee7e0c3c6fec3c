"""Agents of four frameworks call every tool; what is tested is what their models get to read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.forks import Warm

from .calls import CALLS
from .conftest import PYTHON_1, REPOSITORY
from .model import Step
from .scripts import AGENTS, Again, Heard

pytestmark = pytest.mark.real

FRAMEWORKS = ("fastmcp", "langchain", "openai_agents", "pydantic_ai")
STRANGER = Step("resolve_capability", {"cap_uri": "did:nuwa:cap:nothing-like-it"})
HIT_TOKENS, RELEASE_TOKENS, TASK_TOKENS = 100, 200, 250
AROUND_TOKENS = 40  # once around all hits: how many there are, and the next call
EXAMPLES = {path.name.split(".")[0] for path in (REPOSITORY / "examples").glob("*.acp.yaml")}
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"


# The optional arguments of each tool, which CrewAI, mcp-use and strict modes send as null.
NULLS = {
    "resolve_capability": ("include", "proof", "proof_block"),
    "search_capabilities": ("filters", "facets", "limit", "cursor", "detail"),
    "route_message": ("limit",),
    "capability_list": ("cursor",),
    "capability_describe": ("version",),
    "capability_browse": ("cursor",),
}


Ask = Callable[..., Awaitable[Heard]]


@pytest.fixture(params=FRAMEWORKS, scope="module")
def framework(request: pytest.FixtureRequest) -> str:
    """The name of each framework in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def ask(framework: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Let an agent of the framework follow a script to its end; all do in one process."""
    if not PYTHON_1.exists():
        pytest.fail("the frameworks are missing: run `make mcp1`", pytrace=False)
    errors = tmp_path_factory.mktemp("framework") / "stderr"
    again = Again(PYTHON_1, errors)

    async def ask(server: tuple[str, ...], *script: Step, **env: str) -> Heard:
        heard = await again(AGENTS / f"use_{framework}.py", server, script, env)
        assert heard.answered, heard.errors
        assert len(heard.handed) == len(script)
        return heard

    yield ask
    again.end()


async def test_a_framework_calls_every_tool_of_a_node_and_its_model_reads_the_answers(
    ask: Ask, node_url: str
) -> None:
    """Null for optional arguments gives the same answers."""
    steps = [Step(tool, given) for tool, (given, _) in CALLS.items()]
    nulls = [Step(tool, CALLS[tool][0] | dict.fromkeys(names)) for tool, names in NULLS.items()]
    heard = await ask((f"{node_url}/mcp",), *steps, STRANGER, *nulls)
    assert {function["name"] for function in heard.functions} == set(CALLS)
    answers = dict(zip(CALLS, heard.handed, strict=False))
    for tool, (_, word) in CALLS.items():
        assert word in answers[tool] or word.replace(" ", "@") in answers[tool]  # text or structure
    assert "NOT_FOUND" in heard.handed[len(steps)]
    assert list(heard.handed[len(steps) + 1 :]) == [answers[tool] for tool in NULLS]


async def test_hits_and_releases_are_small_as_a_framework_hands_them_on(
    ask: Ask, examples_url: str, count_tokens: Callable[[str], int]
) -> None:
    found, resolved = (
        await ask(
            (f"{examples_url}/mcp",),
            Step("search_capabilities", {"query_string": "city or country", "limit": 5}),
            Step("resolve_capability", {"cap_uri": "did:nuwa:cap:unit-converter"}),
        )
    ).handed
    hits = [name for name in EXAMPLES if name in found]
    assert len(hits) > 1
    assert count_tokens(found) <= HIT_TOKENS * len(hits) + AROUND_TOKENS
    assert count_tokens(resolved) <= RELEASE_TOKENS


async def test_a_framework_finds_describes_and_calls_through_a_router(
    ask: Ask, tmp_path: Path, count_tokens: Callable[[str], int], warm: Warm
) -> None:
    (tmp_path / "skills" / "plain").mkdir(parents=True)
    (tmp_path / "skills" / "plain" / "SKILL.md").write_text(SKILL)
    capdex = ("--", warm.capdex, "router", "--skills", str(tmp_path / "skills"))
    steps: dict[str, tuple[dict[str, Any], str]] = {
        "find": ({"want": "write plainly"}, "skill:plain"),
        "describe": ({"uri": "skill:plain"}, "Write plainly."),
        "call": ({"uri": "skill:plain", "input": {}}, "Use short words."),
        "route": ({"message": "/switch plain"}, "skill:plain"),
        "manage": ({"action": "list"}, "skill:plain"),
    }
    heard = await ask(
        capdex,
        *(Step(tool, given) for tool, (given, _) in steps.items()),
        Step("call", {"uri": "nothing-like-it", "input": {}}),
        CAPDEX_HOME=str(tmp_path / "home"),
    )
    assert [function["name"] for function in heard.functions] == list(steps)
    for (_, word), text in zip(steps.values(), heard.handed, strict=False):
        assert word in text
    assert "NOT_FOUND" in heard.handed[-1]
    given = [json.dumps(given) for given, _ in steps.values()]
    assert sum(map(count_tokens, [*given[:3], *heard.handed[:3]])) <= TASK_TOKENS
