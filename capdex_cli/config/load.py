"""Load the configuration: options > CAPDEX_* > capdex.toml upward > config.toml > built-in values.

A file holds `default-network`, tables `[networks.NAME]`, and (only the user's own file) the keys of
`ACCOUNT_KEYS`. If no network is chosen and a `capdex up` runs here or above, its network and its
keys are used. The name of a public chain (`TEMPLATES`) never means another chain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from capdex.errors import Code, UsageError
from capdex_cli.config.settings import (
    DEFAULT_FEE_CAP_WEI,
    TEMPLATES,
    TYPED,
    Directories,
    Network,
    Settings,
    user_directories,
    wrong,
)
from capdex_cli.config.sources import (
    ACCOUNT_KEYS,
    ENVIRONMENT,
    LOCAL,
    NETWORK_KEYS,
    PATH_KEYS,
    PROJECT,
    Layer,
    configuration_files,
    find_local_network,
    read_deployment,
    read_environment,
    read_file,
    read_options,
    unknown,
)

BUILT_IN: Final = "built-in"
CUSTOM: Final = "custom"  # the network of variables and options, where none is chosen
NUMBERS: Final = ("chain-id", "start-block", "confirmations")
PROXIES: Final = [f(f"{x}_proxy") for x in ("http", "https", "all", "no") for f in (str, str.upper)]
_WAY: Final = (*PROXIES, "CAPDEX_PROXY_TOOLS", "SSL_CERT_FILE")
# All that `variables` may return.
CARRIED: Final = (
    *(*_WAY, "CAPDEX_HOME", "CAPDEX_NETWORK"),
    *(f"XDG_{name.upper()}_HOME" for name in Directories._fields),
    *(f"CAPDEX_{key.upper().replace('-', '_')}" for key in NETWORK_KEYS),
)
# Variables that are read elsewhere, by options of single commands and for secrets, and what they
# mean. docker-compose.yml reads some; an env_file hands them to the node as well.
OTHER_VARIABLES: Final = {
    "HOME": "one directory for configuration, keys, state and cache",
    "PASSPHRASE": "the passphrase itself; gives a warning, since other programs may read it",
    "PRIVATE_KEY": "the account's key itself; gives a warning: for test chains only",
    "DEPLOYMENT": "the file of capdex deploy that names chain, registry and block",
    "ANVIL": "the Anvil binary that up starts",
    "DB": "the database of node and mcp",
    "BLOCKS": "the node's directory of verified packages",
    "HOST": "the address the node listens on",
    "PORT": "the port the node listens on",
    "LOG_FORMAT": "auto, logfmt or json",
    "ROLE": "the role of a node: writer, reader or both",
    "STANDBY": "1: a node waits while another writes its index",
    "WORKERS": "the number of processes that answer clients of a node",
    "SEMANTIC": "1: search by meaning, too; 0: by words alone",
    "EXPLORER": "0: a node serves no pages for people",
    "MAX_CONNECTIONS": "the connections that each process of a node has open",
    "MAX_CONNECTIONS_PER_CLIENT": "of these, the connections from one address",
    "CLIENT_TIMEOUT": "seconds to send a head, to send a body, and to read an answer",
    "KEEP_ALIVE": "seconds between two requests on a connection",
    "RATE": "requests a second that one client of a node may send",
    "LIMIT_LOOPBACK": "1: clients on the node's machine are limited, too",
    "TRUSTED_PROXY": "addresses of proxies whose X-Forwarded-For and -Proto a node believes",
    "TOKEN_FILE": "the file of the bearer tokens that a node answers",
    "RPC_URLS": "endpoints of a node, with spaces between them; they fail over",
    "IPFS_SOURCES": "IPFS sources of a node, with spaces between them",
    "ALLOWED_HOSTS": "Host headers that a node accepts, with spaces between them",
    "PROXY_TOOLS": "1: tools of packages go through the environment's proxy, too",
    "PUBLIC_BIND": "docker-compose.yml: the address of this machine for the node's ports",
    "PUBLIC_NAMES": "docker-compose.yml: names by which clients reach the node",
    "PUBLIC_PORT": "docker-compose.yml: the node's port on this machine",
    "STANDBY_PORT": "docker-compose.yml: the second node's port on this machine",
    "BALANCER_PORT": "docker-compose.yml: the balancer's port on this machine",
    "KEEP_RESOURCES": "bytes on disk for files that packages name; 0 keeps none",
    "PROFILE": "the tools that MCP clients see: default or minimal",
}

_URL: Final = (re.compile("$|https?://[^/?#]"), "an http(s) URL", "http://127.0.0.1:8765")
_ADDRESS: Final = (re.compile("$|(0x)?[0-9a-fA-F]{40}$"), "an address", "0x and 40 hex digits")
_NUMBER: Final = (re.compile("[0-9]{1,20}$"), "a whole number", "at most 20 of the digits 0 to 9")
FORMS: Final = {  # of settings: a pattern, and what the user is told of it
    **dict.fromkeys(("node-url", "mcp-url", "nodes", "gateway-url"), _URL),
    **dict.fromkeys(("registry", "votes", "signer-address"), _ADDRESS),
    **dict.fromkeys(NUMBERS, _NUMBER),
}
FROM_NODE: Final = {"mcp-url": "/mcp", "gateway-url": ""}  # what a node's address alone says


def load(
    *,
    network: str | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
) -> Settings:
    """Return the settings of this call; raises UsageError (CONFIG) for unreadable or unknown ones.

    `overrides` are the values of `--config`: `key=value`, or a file that replaces both files.
    """
    cwd = Path.cwd() if cwd is None else cwd
    typed = Layer("--network", {"network": network} if network else {})
    layers = [typed, read_options(overrides), read_environment(environ), read_deployment(environ)]
    chosen_files = [Path(text) for text in overrides if "=" not in text]
    if chosen_files:
        own = user_directories(environ).config_file  # which `add-to` names before it is there
        layers += [read_file(x) for x in reversed(chosen_files) if x != own or _is_there(x)]
    else:
        files = configuration_files(environ, cwd).items()
        layers += [read_file(path, kind) for kind, path in files if _is_there(path)]
    built_in = {name: template.values() for name, template in TEMPLATES.items()}
    return _merge([*layers, Layer(BUILT_IN, networks=built_in)], find_local_network(cwd))


def _is_there(path: Path) -> bool:
    return path.is_file() or path.is_symlink()  # a link to nothing was meant to be read


def _merge(layers: list[Layer], local: Layer | None) -> Settings:
    """Take each value from the first layer that has it."""
    chosen, chosen_by, local = _chosen(layers, local)
    every = named = [*layers, local] if local else layers
    if local:  # which brings its own keys: the user's account is used there only if it is named
        named = [x for x in every if x is local or x.origin in (TYPED, "environment")]
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    for key in (*NETWORK_KEYS, *ACCOUNT_KEYS):
        for layer in named if key in ACCOUNT_KEYS else every:
            if (value := layer.value(key, chosen)) is not None:
                values[key], origins[key] = value, layer.origin
                break
    if node := values.get("node-url"):
        for key, path in FROM_NODE.items():
            origins.setdefault(key, origins["node-url"])
            values.setdefault(key, node.rstrip("/") + path)
    _check_chain(chosen, values, origins)
    _check_project(chosen, layers, values, origins)
    _check_forms(values, origins)
    if origins.get("votes") == BUILT_IN != origins.get("registry"):
        del values["votes"], origins["votes"]  # they are votes on another registry's names
    network = _network(chosen, values) if chosen else None
    if network:
        origins["network"] = chosen_by
    paths = {x.replace("-", "_"): Path(values[x]) for x in PATH_KEYS if x in values}
    cap = wei(values["fee-cap"], "fee-cap") if "fee-cap" in values else DEFAULT_FEE_CAP_WEI
    return Settings(
        network,
        **paths,
        signer=values.get("signer", ""),
        signer_address=values.get("signer-address", ""),
        fee_cap_wei=cap,
        up=Path(local.origin) if local else None,
        origins=origins,
    )


def _chosen(layers: list[Layer], local: Layer | None) -> tuple[str | None, str, Layer | None]:
    """Return the chosen network and what chose it, and the local network if it is this one."""
    known = sorted({name for layer in layers for name in layer.networks})
    choosing = next((x for x in (*layers, local) if x and "network" in x.values), None)
    if choosing is None:
        given = any(layer.values.keys() & set(NETWORK_KEYS) for layer in layers)
        return CUSTOM if given else None, "environment", None
    chosen = choosing.values["network"]
    if local and chosen == LOCAL:
        return chosen, choosing.origin, local
    if chosen == LOCAL not in known:
        raise wrong("no `capdex up` runs here", choosing.origin, "run it here, or change directory")
    if chosen not in (CUSTOM, *known):
        known += [LOCAL] if local else []
        raise unknown(chosen, known, f"no network is called {chosen!r}", choosing.origin)
    return chosen, choosing.origin, None


def _check_chain(name: str | None, values: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Refuse the name of a public chain for another chain: money would go to the wrong one."""
    template = TEMPLATES.get(name or "")
    if template is not None and values["chain-id"] != str(template.chain_id):
        message = f"{name} is chain {template.chain_id}, not {values['chain-id']!r}"
        fix = "give a network of your own another name"
        raise wrong(message, origins["chain-id"], fix)


def _check_project(
    name: str | None, layers: Sequence[Layer], values: Mapping[str, str], origins: Mapping[str, str]
) -> None:
    """Refuse a project's file that says otherwise what a network is which this user knows.

    Else the endpoint that the user trusts would prove what stands in a stranger's contract.
    """
    place = next((place for place, x in enumerate(layers) if x.kind == PROJECT), len(layers))
    for key in ("chain-id", "registry", "votes"):
        for layer in layers[place + 1 :]:
            known = layer.networks.get(name or "", {}).get(key, values.get(key, ""))
            ours = origins.get(key) == layers[place].origin
            if ours and known.lower() != values[key].lower():
                message = f"{name} has another {key} than this project says"
                fix = "give the network of the project another name"
                raise wrong(message, origins[key], fix)


def _check_forms(values: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Refuse a setting that is no URL, address or number, where it has to be one."""
    for key in [x for x in FORMS if x in values]:
        pattern, what, like = FORMS[key]
        given = values[key].replace(",", " ").split() if key == "nodes" else [values[key]]
        for text in [x for x in given if not pattern.match(x)]:
            came = "" if FORMS[key] is _URL else f": {text[:40]!r}"  # a URL may hold a password
            raise wrong(f"{key} is not {what}{came}", origins[key], f"write it as {like}")


def variables(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables with which a program that starts elsewhere has these settings.

    They name the directories of this user, and what of the network is not in the user's own file.
    """
    directories = user_directories(environ)
    parents = zip(Directories._fields, (path.parent for path in directories), strict=True)
    exported = {f"XDG_{name.upper()}_HOME": str(path) for name, path in parents}
    if environ.get("CAPDEX_HOME"):
        exported = {"CAPDEX_HOME": str(directories.config.parent)}
    # Many hosts start their servers without the rest of the environment. No password is copied.
    exported |= {name: environ[name] for name in _WAY if "@" not in environ.get(name, "@")}
    network, own = settings.network, directories.config_file
    if network is None:
        return exported
    if settings.origins["network"] != str(own):
        lasting = {*TEMPLATES, *(read_file(own).networks if own.is_file() else ())}
        exported["CAPDEX_NETWORK"] = network.name if network.name in lasting else CUSTOM
    for key in NETWORK_KEYS:
        if settings.origins.get(key, BUILT_IN) not in (BUILT_IN, str(own)):
            name = key.replace("-", "_")
            exported[f"CAPDEX_{name.upper()}"] = str(getattr(network, name))
    return exported


def unused_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each CAPDEX_* variable that is never read: most are typing errors."""
    from difflib import get_close_matches

    known = (*ENVIRONMENT, *(f"CAPDEX_{name}" for name in OTHER_VARIABLES))
    warnings = []
    for name in sorted(environ):
        if name.startswith("CAPDEX_") and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.8)  # all begin with CAPDEX_
            hint = f"; did you mean {near[0]}?" if near else ""
            warnings.append(f"nothing reads {name}{hint}")
    return warnings


def network_names() -> dict[str, str]:
    """Return the origin of each network that can be chosen, by name; skip unreadable files."""
    local = find_local_network(Path.cwd())
    names = {LOCAL: local.origin} if local else {}
    for kind, path in configuration_files().items():
        with suppress(UsageError):
            names = dict.fromkeys(read_file(path, kind).networks, str(path)) | names
    return names | {name: BUILT_IN for name in TEMPLATES if name not in names}


def _network(name: str, values: Mapping[str, str]) -> Network:
    fields: dict[str, Any] = {}
    for key in [x for x in NETWORK_KEYS if x in values]:
        text = values[key].rstrip("/") if "url" in key else values[key]
        fields[key.replace("-", "_")] = int(text) if key in NUMBERS else text
    return Network(name, **fields)


def wei(text: str, key: str) -> int:
    """Convert an amount in ETH (`0.01`) to wei; `key` is the option without its dashes."""
    try:
        amount = Decimal(text) * 10**18
    except ArithmeticError:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount < 10**30 or amount != int(amount):
        also = f", CAPDEX_FEE_CAP, or {key} in your config.toml" if key == "fee-cap" else ""
        raise UsageError(
            f"the {key.replace('-', ' ')} is not an amount: {text[:40]!r}",
            Code.CONFIG,
            why="it is an amount in ETH of 0 or more, with at most 18 decimals",
            fix=f"write it like 0.01 (--{key}{also})",
        )
    return int(amount)
