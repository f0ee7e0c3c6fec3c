"""The levels of CMP, made of the examples of this repository; each stays small."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from capdex.errors import InvalidInput
from capdex.manifest.manifest import Manifest, read
from capdex_service.answers import cmp
from capdex_service.answers.paging import MAX_PAGE_BYTES
from tests.indexer import making

POST = {"type": "http_post", "url": "https://api.example.org/post"}
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml"))


def package(name: str) -> Manifest:
    return read((EXAMPLES[0].parent / f"{name}.acp.yaml").read_bytes()).require()


def test_the_fullest_domain_comes_first() -> None:
    level = cmp.domains({"data": 1, "weather": 3, "other": 1})
    assert level == {
        "domains": ["weather", "data", "other"],
        "counts": {"weather": 3, "data": 1, "other": 1},
    }


def test_a_manifest_is_one_line() -> None:
    guide = package("repo-guide")
    assert cmp.manifest(guide.metadata, "repo-guide", "1.0.0") == {
        "name": "repo-guide",
        "summary": "Ask how a public GitHub repository works and get an answer from its "
        "documentation",
        "version": "1.0.0",
    }


def test_without_a_summary_the_description_is_cut_at_a_word() -> None:
    assert cmp.summary({"description": "one\n  two"}) == "one two"
    cut = cmp.summary({"description": "word " * 40})
    assert cut == ("word " * 23).strip() + "…"
    assert cmp.summary({"description": "x" * 200}) == "x" * 119 + "…"


def test_intents_are_the_triggers_and_one_for_each_tool() -> None:
    level, after = cmp.capabilities(package("repo-guide"))
    assert after is None
    own, topics, ask = level["intents"]
    assert own["patterns"][1:] == [
        r"re:(?i)\b(repo|repository|codebase)\b",
        "how does this open source project work inside",
    ]
    assert not own["confirm"]
    assert topics["command"] == "list_topics"
    assert topics["patterns"] == [
        "What is documented at github.com/simonw/datasette?",
        "list topics",
    ]
    assert ask["confirm"]  # nothing tells what the other side does with a question


def test_only_calls_that_read_or_keep_need_no_confirmation() -> None:
    level, _ = cmp.capabilities(package("weatherreporter"))
    assert {x.get("command"): x["confirm"] for x in level["intents"]} == {
        None: False,
        "get_current_weather": False,
        "send_notification": True,
    }
    level, _ = cmp.capabilities(package("note"))
    assert not next(x for x in level["intents"] if x.get("command") == "state.create")["confirm"]
    said = {"name": "post", "annotations": {"destructive": False}}
    bindings = {name: dict(POST) for name in ("post", "other")}
    data = making.package_bytes(tools=[said, {"name": "other"}], bindings=bindings)
    level, _ = cmp.capabilities(read(data).require())
    assert [x["confirm"] for x in level["intents"]] == [False, True]


def test_the_schema_level_lists_commands_and_then_gives_one_whole() -> None:
    guide = package("repo-guide")
    level, _ = cmp.schema(guide)
    assert level["commands"][1] == {
        "command": "ask_repository",
        "params": ["repoName", "question"],
        "required": ["repoName", "question"],
    }
    level, _ = cmp.schema(guide, "ask_repository")
    assert level["params"]["properties"]["question"]["minLength"] == 5
    with pytest.raises(InvalidInput):
        cmp.schema(guide, "sing")


def test_examples_are_of_all_tools_or_of_one() -> None:
    guide = package("repo-guide")
    assert len(cmp.examples(guide)[0]["examples"]) == 2
    assert cmp.examples(guide, "list_topics")[0] == {
        "tool": "repo-guide",
        "examples": [
            {
                "say": "What is documented at github.com/simonw/datasette?",
                "command": "list_topics",
                "input": {"repoName": "simonw/datasette"},
            }
        ],
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_level_of_every_example_is_bounded(path: Path) -> None:
    manifest = read(path.read_bytes()).require()
    for level in (cmp.capabilities, cmp.schema, cmp.examples):
        answer, after = level(manifest)
        assert after is None
        assert len(orjson.dumps(answer)) < MAX_PAGE_BYTES
