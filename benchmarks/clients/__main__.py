"""python benchmarks/clients --into DIR [--loop] [--docs] [--only NAME …]: what clients hand on.

Every client lists and calls all tools of a node (over HTTP) and of a router (over stdio) beside a
`capdex up` with the example packages and a few of its own. Those with a model have one by script,
whose requests tell what reached it. Prints the tables of docs/conformance.md and
docs/benchmarks.md, or puts them there, too (--docs), and writes the answers to DIR/answers.json.
Environments stay under DIR, one a framework, made by uv; hosts are those of `make hosts`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
import frameworks
import hosts
import loop
import network
import sdks
import tables
import tried

LOOPED = ("pydantic-ai", "openai-agents", "LangChain")


def attempt(name: str, what: Callable[[], tried.Tried]) -> tried.Tried:
    """Return what came of a client; one that cannot be had is a row, too."""
    print(name, file=sys.stderr, flush=True)
    try:
        return what()
    except (OSError, subprocess.CalledProcessError) as error:
        none = tried.Asked(failure=str(error))
        return tried.Tried(name, "–", "–", none, none)


def main() -> None:
    """Try all that was asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="where environments are made")
    parser.add_argument("--loop", action="store_true", help="run the agent loops, too")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/")
    parser.add_argument("--only", nargs="*", default=[], help="names of clients")
    options = parser.parse_args()
    if options.docs and options.only:
        parser.error("the tables of the docs are of all clients: leave --only out")
    into = options.into.resolve()
    named = {x.name for x in (*sdks.all_of_them(into), *frameworks.FRAMEWORKS, *hosts.HOSTS)}
    if unknown := sorted({*options.only} - named):
        parser.error(
            f"no client is named {', '.join(unknown)}; there are {', '.join(sorted(named))}"
        )
    shutil.rmtree(into / "run", ignore_errors=True)

    with network.running(into / "run" / "network") as net:
        home = tried.install_all(net)

        def by_framework(framework: frameworks.Framework) -> tried.Tried:
            python = frameworks.install(framework, into)
            return asyncio.run(tried.through(framework, python, net, home))

        clients: list[tuple[str, Callable[[], tried.Tried]]] = [
            *((x.name, partial(sdks.through, x, net, home)) for x in sdks.all_of_them(into)),
            *((x.name, partial(by_framework, x)) for x in frameworks.FRAMEWORKS),
            *((x.name, partial(hosts.through, x, net, home)) for x in hosts.HOSTS),
        ]
        rows = [attempt(*x) for x in clients if not options.only or x[0] in options.only]
        days = {}
        looped = [x for x in frameworks.FRAMEWORKS if options.loop and x.name in LOOPED]
        for number, framework in enumerate(looped):
            print("loop", framework.name, file=sys.stderr, flush=True)
            python = frameworks.install(framework, into)
            days[framework.name] = asyncio.run(loop.day(number, framework, python, net))
    (into / "answers.json").write_text(tables.dump(rows), "utf-8")
    made = {
        ("conformance", "clients"): tables.clients(rows),
        ("benchmarks", "tokens of models"): tables.models(rows),
        ("benchmarks", "agent loops"): tables.loops(days) if days else [],
    }
    for (page, name), lines in made.items():
        if lines:
            print(*lines, "", sep="\n")
        if lines and options.docs:
            path = network.ROOT / "docs" / f"{page}.md"
            tables.put(path, name, [tables.machine(), "", *lines])


if __name__ == "__main__":
    main()
