"""The README's console blocks, run word for word beside a `capdex up`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text("utf-8")
START_S = 120.0


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


def test_the_readme_has_commands_to_run() -> None:
    commands = [command.split()[0:2] for command, _ in console_blocks(README)]
    for verb in ("init", "validate", "sign", "publish", "resolve", "search", "get"):
        assert ["capdex", verb] in commands


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Path]:
    """A directory in which `capdex up` runs, with `.venv/bin/capdex` as the README has it."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    command = [sys.executable, "-m", "capdex", "up", "--port", "0", "--rpc-port", "0"]
    process = subprocess.Popen(
        [*command, "--examples", str(REPOSITORY / "examples")],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + START_S
        while not (tmp_path / ".capdex" / "up.json").exists():
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline, "capdex up was never ready"
            time.sleep(0.05)
        yield tmp_path
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_every_command_of_the_readme_does_what_it_shows(up: Path) -> None:
    commands = console_blocks(README)
    script = "set -e\n" + "".join(f"{command}\necho '<end>'\n" for command, _ in commands)
    env = {key: value for key, value in os.environ.items() if not key.startswith("CAPDEX_")}
    env |= {
        "HOME": str(up),
        "XDG_DATA_HOME": str(up / "data"),
        "XDG_CONFIG_HOME": str(up / "config"),
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


def test_the_readmes_snippets_for_agent_hosts_are_json() -> None:
    snippets = re.findall(r"^```json\n(.*?)^```", README, re.M | re.S)
    assert len(snippets) == 2
    for snippet in snippets:
        assert "capdex" in json.loads(snippet)["mcpServers"]
