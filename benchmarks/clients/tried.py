"""The scripts of calls that every client carries out, and what is kept of each."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from frameworks import QUIET, Framework, Installed
from network import SERVICES, Network

from tests.mcp_service.clients.model import Step
from tests.mcp_service.clients.scripts import Heard, run

with warnings.catch_warnings(action="ignore"):  # it reads its data in a deprecated way
    import bpe_openai

    ENCODING = bpe_openai.get_encoding("o200k_base")

CONVERTER = "did:nuwa:cap:unit-converter"
UNKNOWN = {"cap_uri": "did:nuwa:cap:nothing-like-it"}
WANTS = ("weather of a city", "how long tea steeps", "next train", "price of a stamp", "etymology")
# Words of a right answer, whether the text or the structure is handed on.
NODE = (
    (Step("resolve_capability", {"cap_uri": f"{CONVERTER}@^1"}), "unit-converter"),
    (Step("search_capabilities", {"query_string": "convert miles to kilometres"}), "converter"),
    (Step("route_message", {"message": "convert 5 miles to km"}), "unit-converter"),
    (Step("get_capability", {"cap_uri": CONVERTER}), "unit-converter"),
    (Step("capability_list", {"kind": "skill", "limit": 2}), "did:nuwa:cap:"),
    (Step("capability_describe", {"capability_id": CONVERTER}), "unit-converter"),
    (Step("capability_browse", {"level": "manifests", "of": "data"}), "converter"),
)
ROUTER = (
    (Step("find", {"want": WANTS[0]}), "local-weather"),
    (Step("describe", {"uri": "local-weather#ask"}), "subject"),
    (Step("call", {"uri": "local-weather#ask", "input": {"subject": "Oslo"}}), "12.5"),
    (Step("route", {"message": "What will the weather be?"}), "local-weather"),
    (Step("manage", {"action": "list"}), "local-weather"),
)
INSTALLED = ("local-weather", "train-times", "stamp-prices", "word-origins")


def tokens(text: str) -> int:
    """Return the tokens of a text by o200k."""
    return len(ENCODING.encode_ordinary(text))


@dataclass
class Asked:
    """One server through one client: what it listed, and what its model got for each call."""

    connects: bool = False
    functions: int = 0
    definitions: int = 0
    handed: dict[str, str] = field(default_factory=dict)
    right: int = 0
    error: str = ""
    failure: str = ""

    @property
    def tells_the_error(self) -> bool:
        """Whether the model reads the code of an error."""
        return "NOT_FOUND" in self.error


@dataclass
class Tried:
    """A client that was tried: a node over HTTP, a router over stdio."""

    name: str
    version: str
    sdk: str
    node: Asked
    router: Asked
    task_tokens: int = 0


def keep(plan: Sequence[tuple[Step, str]], heard: Heard) -> Asked:
    """Return what a client did of a plan, whose last step is a call of something unknown."""
    pairs = list(zip(plan, heard.handed, strict=False))
    return Asked(
        connects=bool(heard.functions),
        functions=len(heard.functions),
        definitions=tokens(heard.definitions),
        handed={step.name: text for (step, _), text in pairs},
        right=sum(word in text and "INVALID" not in text for (_, word), text in pairs),
        error=heard.handed[len(plan)] if len(heard.handed) > len(plan) else "",
        failure="" if heard.answered else heard.errors.strip().rpartition("\n")[2],
    )


async def through(
    framework: Framework, python: Installed, network: Network, env: dict[str, str]
) -> Tried:
    """Let a framework's agent call every tool of the node and of a router, and do five tasks."""

    async def ask(server: Sequence[str], script: Sequence[Step]) -> Heard:
        return await run(
            python.python,
            framework.agent,
            server,
            script,
            QUIET | env,
            folder=network.project,
            fills=framework.fills,
        )

    of_node = [step for step, _ in NODE] + [Step("resolve_capability", UNKNOWN)]
    of_router = [step for step, _ in ROUTER] + [Step("call", {"uri": "nothing-like-it"})]
    node = keep(NODE, await ask((network.node,), of_node))
    router = keep(ROUTER, await ask(network.router, of_router))
    tried = Tried(framework.name, python.version, python.sdk, node, router)
    if router.right == len(ROUTER):
        tried.task_tokens = tasks(await ask(network.router, TASKS))
    return tried


TASKS = tuple(
    step
    for name, want in zip(SERVICES, WANTS, strict=False)
    if name in INSTALLED
    for step in (
        Step("find", {"want": want}),
        Step("describe", {"uri": f"{name}#ask"}),
        Step("call", {"uri": f"{name}#ask", "input": {"subject": "Oslo"}}),
    )
)


def tasks(heard: Heard) -> int:
    """Return the median of what a task took: arguments and answers of its three calls."""
    costs = [spent(step, text) for step, text in zip(TASKS, heard.handed, strict=False)]
    return round(median(sum(costs[at : at + 3]) for at in range(0, len(costs), 3)))


def spent(step: Step, handed: str) -> int:
    """Return the tokens of a call: its arguments, and what the model got for it."""
    return tokens(json.dumps(step.given)) + tokens(handed)


def install_all(network: Network) -> dict[str, str]:
    """Install the packages of ours for a home that all clients share."""
    home = network.home("clients")
    network.run("install", *INSTALLED, "--yes", env=home)
    return home
