"""docs/settings.md lists every setting of the program, made from the code.

The page is written anew by: CAPDEX_GOLDEN=write pytest tests/cli/config/test_settings_page.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from capdex_cli.config.load import OTHER_VARIABLES, unused_variables
from capdex_cli.config.settings import TEMPLATES
from capdex_cli.config.sources import ACCOUNT_KEYS, ENVIRONMENT, NETWORK_KEYS, NOT_FROM_A_PROJECT

PAGE = Path(__file__).parents[3] / "docs/settings.md"
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment

KEYS = {
    "chain-id": "the chain, as a number",
    "rpc-url": "a JSON-RPC endpoint of the chain",
    "registry": "the address of the registry contract",
    "start-block": "the block of its deployment: indexing begins there",
    "node-url": "a node's address: `publish` waits until it serves",
    "mcp-url": "its MCP endpoint: `search`, `resolve`, `install` need it; "
    "without it `/mcp` of `node-url`",
    "gateway-url": "a trustless IPFS gateway: `get` needs it; without it `node-url`",
    "ipfs": "the storage that `publish` uploads to: a Kubo RPC, or `dir:PATH`",
    "votes": "the contract of the votes on the registry's names",
    "trust-rpc-url": "a second endpoint, whose block hashes proofs are checked against",
    "nodes": "further nodes, with spaces between them: `install` compares their answers",
    "confirmations": "blocks that a transaction waits for",
    "keystore": "the key file of the publishing account",
    "author-key": "the file of the signing key",
    "passphrase-file": "a file of mode 0600 with the passphrase of `keystore`",
    "author-passphrase-file": "the same for `author-key`",
    "signer": "an external signer: a JSON-RPC URL, or a command",
    "signer-address": "the account that it signs for",
    "fee-cap": "the most that a command may spend",
}
READ_ELSEWHERE = {
    "CAPDEX_HOME": "one directory for all files, in place of those of XDG",
    "CAPDEX_NETWORK": "the network, as `--network`",
    "CAPDEX_PASSPHRASE": "the passphrase of the account's key file; a file is safer",
    "CAPDEX_PRIVATE_KEY": "the account's private key, in hexadecimal, in place of a key file",
    "CAPDEX_ANVIL": "the Anvil that `capdex up` starts",
    "CAPDEX_PROXY_TOOLS": "1: [tools go through the proxy](install.md#a-network-with-a-proxy), too",
    "CAPDEX_DEPLOYMENT": "a file of `capdex deploy`: it sets chain, registry and start block",
    "CAPDEX_PUBLIC_BIND": "docker-compose.yml: the address that the node's port is bound to",
    "CAPDEX_PUBLIC_NAMES": "docker-compose.yml: the names by which others call the node",
    "CAPDEX_PUBLIC_PORT": "docker-compose.yml: the node's port on the host",
    "CAPDEX_STANDBY_PORT": "docker-compose.yml: the port of the standby",
    "CAPDEX_BALANCER_PORT": "docker-compose.yml: the port of the balancer",
}
HEAD = """# Settings

Every setting of the program. This page is made from the code, and a test compares the two.
`capdex config` shows the value of each on your machine, and where it comes from. In this order:

1. an option of the command;
2. a `CAPDEX_*` variable, then the file that `CAPDEX_DEPLOYMENT` names;
3. `capdex.toml` of the directory, or of one above, no further than the root of its git repository;
4. your own `config.toml`;
5. `.capdex/up.json`, while a `capdex up` runs in the directory or in one above;
6. the program itself.

## Networks and accounts

In a file these stand in `[networks.NAME]`, on the command line they are `--config KEY=VALUE`.
Those marked *own file* are not taken from a project's `capdex.toml`, since its author may be
somebody else. `default-network` in a file chooses a network. Where nothing chooses one,
variables and options alone make the network `custom`, to which a file adds by `[networks.custom]`;
`[networks.local]` adds to that of a running `capdex up`. The keys from `keystore` on may stand
above all sections of your own file as well, for every network but that one.
An empty variable is as one that is not set, but an error where it names a key file or its
passphrase file.

Known without a file: {known}.

"""
OPTIONS = """
## Options of single commands

A variable is read by the commands that have the option. One that takes several values has spaces
between them.

"""


def test_the_page_lists_every_setting_of_the_code(commands: dict[str, click.Command]) -> None:
    text = "\n".join(page(commands)) + "\n"
    if WRITE:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text("utf-8") == text


def test_every_variable_of_the_page_is_read(commands: dict[str, click.Command]) -> None:
    named = {*by_variable(commands), *READ_ELSEWHERE, *ENVIRONMENT}
    assert unused_variables(dict.fromkeys(named, "")) == []
    assert {f"CAPDEX_{name}" for name in OTHER_VARIABLES} <= named


def test_the_page_on_networks_says_what_a_project_may_not_set() -> None:
    text = (PAGE.parent / "networks.md").read_text("utf-8")
    said = text.partition("It may not set ")[2].partition(", so that")[0]
    assert tuple(said.split("`")[1::2]) == NOT_FROM_A_PROJECT


def by_variable(commands: dict[str, click.Command]) -> dict[str, list[tuple[str, click.Option]]]:
    """Return the options that read each variable, with their commands."""
    found: dict[str, list[tuple[str, click.Option]]] = {}
    for path, command in commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and isinstance(option.envvar, str):
                found.setdefault(option.envvar, []).append((path, option))
    return found


def page(commands: dict[str, click.Command]) -> Iterator[str]:
    """Return the lines of the page."""
    yield from HEAD.format(known=", ".join(f"`{name}`" for name in TEMPLATES)).splitlines()
    yield ""
    yield "| key | variable | sets | |"
    yield "| --- | --- | --- | --- |"
    for key in (*NETWORK_KEYS, *ACCOUNT_KEYS):
        variable = next(name for name, known in ENVIRONMENT.items() if known == key)
        own = "own file" if key in NOT_FROM_A_PROJECT else ""
        yield f"| `{key}` | `{variable}` | {KEYS[key]} | {own} |"
    yield from OPTIONS.splitlines()
    yield "| variable | option | commands | sets | default |"
    yield "| --- | --- | --- | --- | --- |"
    for variable, uses in sorted(by_variable(commands).items()):
        option = uses[0][1]
        if variable in ENVIRONMENT:
            continue
        names = sorted({path.removeprefix("capdex ") for path, _ in uses})
        shown = ", ".join(f"`{name}`" for name in names[:4])
        shown += f" and {len(names) - 4} more" if len(names) > 4 else ""
        default = 1 if option.default is True else option.default
        said = (
            f"`{default}`"
            if isinstance(default, (int, float, str)) and not isinstance(default, bool)
            else ""
        )
        meaning = " ".join((option.help or "").split()).replace("|", "\\|")
        yield f"| `{variable}` | `{option.opts[-1]}` | {shown} | {meaning} | {said} |"
    yield ""
    yield "## Read elsewhere"
    yield ""
    yield "| variable | sets |"
    yield "| --- | --- |"
    for variable, meaning in READ_ELSEWHERE.items():
        yield f"| `{variable}` | {meaning} |"
    yield ""
    yield "A `CAPDEX_*` variable that nothing reads is named in a warning."
    yield "`NO_COLOR` and `TERM=dumb` turn colours off."
