"""Pages of commands: every console block of a page, run word for word beside a `capdex up`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def console_blocks(text: str) -> list[tuple[str, list[str]]]:
    """Every command of every console block, with the lines shown below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def run_page(text: str, up: Path, *path: Path) -> None:
    """Run a page's commands in one shell; each must print what the page shows.

    `up` is the folder of a running network, `path` are folders of further programs.
    """
    commands = console_blocks(text)
    script = "set -e\n" + "".join(f"{command}\necho '<end>'\n" for command, _ in commands)
    env = {key: value for key, value in os.environ.items() if not key.startswith("CAPDEX_")}
    env |= {
        "HOME": str(up),
        "XDG_DATA_HOME": str(up / "data"),
        "XDG_CONFIG_HOME": str(up / "config"),
        "PATH": os.pathsep.join(map(str, [up / ".venv" / "bin", *path, env["PATH"]])),
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=up,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (command, shown), printed in zip(commands, done.stdout.split("<end>\n"), strict=False):
        assert fits(shown, printed.splitlines()), f"$ {command}\n{printed}"


def fits(shown: list[str], printed: list[str]) -> bool:
    """Whether output is as shown; `…` stands for anything, and a line of it for any lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None
