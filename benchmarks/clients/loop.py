"""One user's day through an agent loop: every kind of step once, with a model by script.

Where a framework can ask a person, that person agrees. Where it cannot, the answer names a command,
which the person runs, and the model repeats its call. An answer without its expected word ends the
run: the figures are of loops that came to their end.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from frameworks import QUIET, Framework, Installed
from network import HOST, KEY, Network
from tried import spent

from tests.mcp_service.clients.model import Step
from tests.mcp_service.clients.scripts import run

COMMAND = re.compile(r"capdex ((?:install|upgrade|learn) [^\n`;\"]+)")
DIARY = "did:nuwa:state:diary#v1"
PERMISSIONS = ("state.delete", "state.update", "state.query", "state.create")
ENTRY = {"schema_uri": DIARY, "object": {"text": "It rained."}}


@dataclass
class Loop:
    """What is asked, by part of the day; `words` are those that the answers must have."""

    network: Network
    env: dict[str, str]
    elicits: bool
    number: int  # of the day: each widens the package once more
    parts: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def ask(self, part: str, word: str, tool: str, before: Any = None, **given: Any) -> None:
        """Add a call of a tool."""
        self.parts.append(part)
        self.steps.append(Step(tool, given, before))
        self.words.append(word)

    def agree(self, part: str, word: str, command: str, before: Any = None, **given: Any) -> None:
        """Add a call that a person must agree to."""
        if self.elicits:
            self.ask(part, word, "manage", before, **given)
            return
        self.ask(part, command, "manage", before, **given)
        self.ask(part, word, "manage", lambda: self.person(command), **given)

    def person(self, *args: str, given: str = "") -> None:
        """Run a command as the person at this machine."""
        words = shlex.split(args[0]) if len(args) == 1 else args
        self.network.run(*words, *(() if given else ("--yes",)), env=self.env, given=given)


def planned(loop: Loop) -> Loop:
    """Write the day down."""
    net = loop.network
    (net.project / "poem.txt").write_text("one\ntwo\nthree\n")
    part = "wish, find, install, call"
    loop.ask(part, "local-weather", "find", want="weather of a city")
    loop.agree(
        part, "local-weather", "install local-weather", action="install", target="local-weather"
    )
    loop.ask(part, "subject", "describe", uri="local-weather#ask")
    loop.ask(part, "12.5", "call", uri="local-weather#ask", input={"subject": "Oslo"})
    part = "a wider upgrade"

    version = f"0.{loop.number + 2}.0"

    def wider() -> None:
        net.publish("local-weather", version, PERMISSIONS[: loop.number + 1])

    loop.agree(
        part, version, "upgrade local-weather", wider, action="upgrade", target="local-weather"
    )
    loop.ask(part, f"local-weather@{version}", "manage", action="list")
    part = "a secret"
    loop.agree(part, "tea-timer", "install tea-timer", action="install", target="tea-timer")
    loop.ask(part, "capdex secret", "call", uri="tea-timer#ask", input={"subject": "sencha"})
    loop.ask(
        part,
        "12.5",
        "call",
        lambda: loop.person("secret", "tea-timer", HOST, KEY, given="s3cr3t-of-tea\n"),
        uri="tea-timer#ask",
        input={"subject": "sencha"},
    )
    part = "a state object"
    loop.agree(part, "diary", "install diary", action="install", target="diary")
    loop.ask(part, "id", "call", uri="diary#state.create", input=ENTRY)
    loop.ask(part, "It rained.", "call", uri="diary#state.query", input={"schema_uri": DIARY})
    part = "a learned program"
    loop.agree(part, "learned:wc", "learn wc", action="learn", target="wc")
    loop.ask(part, "wc#", "find", want="count the lines of a file")
    loop.ask(part, "3", "call", uri="learned:wc#count-lines", input={"file": "poem.txt"})
    part = "switch and back"
    loop.ask(part, "local-weather", "route", message="What will the weather be in Oslo?")
    loop.ask(part, "tea-timer", "route", message="/switch tea-timer")
    loop.ask(part, "local-weather", "route", message="/back")
    return loop


@dataclass(frozen=True)
class Part:
    """What a part of the day took: turns of the model, and tokens of arguments and answers."""

    name: str
    turns: int
    tokens: int


async def day(number: int, framework: Framework, python: Installed, network: Network) -> list[Part]:
    """Run the loop in a framework; raises SystemExit where an answer is another than expected."""
    env = network.home(f"loop-{framework.package}")
    loop = planned(Loop(network, env, framework.elicits, number))
    heard = await run(
        python.python,
        framework.agent,
        network.router,
        loop.steps,
        QUIET | env | {"ANSWER": "accept"},
        folder=network.project,
    )
    for step, word, text in zip(loop.steps, loop.words, heard.handed, strict=False):
        if word not in text:
            raise SystemExit(f"{framework.name}: {step.name} {step.given}: no {word!r} in {text}")
    if len(heard.handed) < len(loop.steps) or not heard.answered:
        raise SystemExit(f"{framework.name} ended early:\n{heard.errors}")
    costs = [spent(step, text) for step, text in zip(loop.steps, heard.handed, strict=True)]
    return [
        Part(
            name,
            loop.parts.count(name),
            sum(cost for part, cost in zip(loop.parts, costs, strict=True) if part == name),
        )
        for name in dict.fromkeys(loop.parts)
    ]
