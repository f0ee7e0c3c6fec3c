"""Publishing into the network of the containers, by the commands that docs/operations.md gives.

No engine is needed: Anvil, Kubo, the deployment and the node run as processes, and the ports of the
page stand for theirs.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from .pages import REPOSITORY, console_blocks

pytestmark = pytest.mark.real

PAGE = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")
COMPOSE = (REPOSITORY / "docker-compose.yml").read_text("utf-8")
SECTION = PAGE.split("### In containers\n")[1].split("\n## ")[0]
# Anvil unlocks its accounts, and the service `deploy` signs with the first.
FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def test_the_page_publishes_into_the_containers_with_capdex_alone(
    shell: Any, anvil: Any, kubo: Any, http: Callable[..., Any]
) -> None:
    chain = {"CAPDEX_RPC_URL": anvil.url, "CAPDEX_CHAIN_ID": "31337"}
    signer = {"CAPDEX_SIGNER": anvil.url, "CAPDEX_SIGNER_ADDRESS": FIRST}
    assert FIRST in COMPOSE
    shell("deploy", "--dir", "volume", "--yes", **chain, **signer)
    node = shell.start(
        "node", "--db", "sqlite:///index.db", "--blocks", "blocks", "--ipfs", kubo.api,
        "--port", "0", "--log-format", "json",
        CAPDEX_DEPLOYMENT="volume/31337.json", CAPDEX_RPC_URL=anvil.url,
    )  # fmt: skip
    url = node.url()
    secret = shell / "passphrase"
    secret.write_text("correct horse battery staple\n", "utf-8")
    secret.chmod(0o600)
    shell.env["CAPDEX_PASSPHRASE_FILE"] = str(secret)

    real = {"8545": anvil.url, "8765": url, "5001": kubo.api}
    used = set()
    for command, _ in console_blocks(SECTION):
        for port, address in real.items():
            assert f":-{port}}}:{port}" in COMPOSE
            command = command.replace(f"http://127.0.0.1:{port}", address)
        program, *words = shlex.split(command)
        used.add(program)
        if program == "capdex":
            shell(*words)
        elif program == "export":
            shell.env |= dict(word.split("=", 1) for word in words)
        elif words[:2] == ["compose", "cp"]:
            assert words[2:] == ["node:/deployments/31337.json", "."]
            assert "deployments:/deployments" in COMPOSE
            shutil.copy(shell / "volume/31337.json", shell / "31337.json")
    assert used == {"cp", "docker", "export", "capdex"}
    status, answer = http(f"{url}/c/tea-timer.json")
    assert status == 200
    assert re.search(rb'"verdict": ?"verified"', answer)
