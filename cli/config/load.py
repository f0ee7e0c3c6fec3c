"""Reading the configuration: flag > CAPDEX_* > capdex.toml upward > config.toml > what is built in.

A file holds `default-network`, tables `[networks.NAME]`, and (the user's own file alone) the keys
of `OWN`; `cli.config.sources` reads each. With a live `.capdex/up.json` upward its network and its
keys are
used when no other was chosen. Public chains are known by name (`cli.config.networks`), and a name
never
means another chain.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from capdex.errors import Code, UsageError
from cli.config.directories import user_directories
from cli.config.local_network import live_up, up_layer
from cli.config.networks import TEMPLATES
from cli.config.settings import DEFAULT_FEE_CAP_WEI, Network, Settings
from cli.config.sources import (
    ENVIRONMENT,
    NETWORK_KEYS,
    OWN,
    Layer,
    find_project,
    read_environment,
    read_file,
    read_flags,
    unknown,
)

UP_NETWORK: Final = "local"
BUILT_IN: Final = "built-in"
NUMBERS: Final = ("chain-id", "start-block", "confirmations")
MAX_DIGITS: Final = 20  # chain ids and block numbers are below 2**64
ELSEWHERE: Final = (
    *("HOME", "PASSPHRASE", "PRIVATE_KEY", "ANVIL"),
    *("DB", "BLOCKS", "HOST", "PORT", "LOG_FORMAT", "ROLE", "STANDBY"),
)


def load(
    *,
    network: str | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """The settings of this call; raises UsageError (CONFIG) for anything unreadable or unknown.

    `overrides` are the values of `--config`: `key=value`, or a file that replaces both files.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    typed = Layer("--network", {"network": network} if network else {})
    layers = [typed, read_flags(overrides), read_environment(environ)]
    chosen_files = [Path(text) for text in overrides if "=" not in text]
    if chosen_files:
        layers += [read_file(path, own=True) for path in reversed(chosen_files)]
    else:
        project, user = find_project(cwd), user_directories(environ).config_file
        layers += [read_file(project, own=False)] if project else []
        layers += [read_file(user, own=True)] if user.is_file() else []
    built_in = {name: template.values() for name, template in TEMPLATES.items()}
    return _settle([*layers, Layer(BUILT_IN, networks=built_in)], live_up(cwd))


def _settle(layers: list[Layer], up: tuple[Path, dict[str, Any]] | None) -> Settings:
    """Take each value from the first layer that has it."""
    chosen, chosen_by = _first(layers, "network")
    known = sorted({name for layer in layers for name in layer.networks})
    if chosen is None and up is not None:
        chosen, chosen_by = UP_NETWORK, str(up[0])
    from_up = chosen == UP_NETWORK and up is not None and UP_NETWORK not in known
    if chosen is not None and not from_up and chosen not in known:
        raise unknown(chosen, known, f"no network is called {chosen!r}", chosen_by or "")
    # The keys of a local stack go with its network; a user's real account is never used there.
    own = [x for x in layers if x.origin in ("--config", "environment")] if from_up else layers
    tail = [up_layer(*up)] if from_up and up is not None else []
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    folders: dict[str, Path] = {}
    for key in (*NETWORK_KEYS, *OWN):
        for layer in [*(own if key in OWN else layers), *tail]:
            named = layer.networks.get(chosen or "", {})
            value = named.get(key, layer.values.get(key))
            if value is not None:
                values[key], origins[key] = value, layer.origin
                folders[key] = layer.folder  # a relative path is meant from where it is written
                break
    _check_pinned(chosen, values, origins)
    if origins.get("votes") == BUILT_IN != origins.get("registry"):
        del values["votes"], origins["votes"]  # they are of another registry
    settings_network = None
    if chosen is not None or any(key in values for key in NETWORK_KEYS):
        settings_network = _network(chosen or "custom", values)
        origins["network"] = chosen_by or "environment"
    return Settings(
        network=settings_network,
        keystore=_path("keystore", values, folders),
        author_key=_path("author-key", values, folders),
        passphrase_file=_path("passphrase-file", values, folders),
        signer=values.get("signer", ""),
        signer_address=values.get("signer-address", ""),
        fee_cap_wei=_wei(values["fee-cap"]) if "fee-cap" in values else DEFAULT_FEE_CAP_WEI,
        up=up[0] if from_up and up else None,
        origins=origins,
    )


def _check_pinned(name: str | None, values: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Refuse a public chain's name for another chain: money would go where nobody meant it to."""
    template = TEMPLATES.get(name or "")
    if template is not None and values["chain-id"] != str(template.chain_id):
        raise UsageError(
            f"{name} is chain {template.chain_id}, not {values['chain-id']!r}",
            Code.CONFIG,
            why=f"set by {origins['chain-id']}",
            fix="give a network of your own a name of its own",
        )


def stray(environ: Mapping[str, str]) -> list[str]:
    """Words about each CAPDEX_* variable that nothing reads: most are a slip of the finger."""
    from difflib import get_close_matches

    known = (*ENVIRONMENT, *(f"CAPDEX_{name}" for name in ELSEWHERE))
    words = []
    for name in sorted(environ):
        if name.startswith("CAPDEX_") and name not in known:
            near = get_close_matches(name, known, n=1)
            words.append(f"nothing reads {name}" + (f"; did you mean {near[0]}?" if near else ""))
    return words


def _first(layers: Sequence[Layer], key: str) -> tuple[str | None, str | None]:
    return next(((x.values[key], x.origin) for x in layers if key in x.values), (None, None))


def _network(name: str, values: Mapping[str, str]) -> Network:
    return Network(
        name,
        chain_id=_number("chain-id", values["chain-id"]) if "chain-id" in values else None,
        start_block=_number("start-block", values.get("start-block", "0")),
        confirmations=_number("confirmations", values["confirmations"])
        if "confirmations" in values
        else None,
        **{
            key.replace("-", "_"): values[key].rstrip("/") if "url" in key else values[key]
            for key in NETWORK_KEYS
            if key not in NUMBERS and key in values
        },
    )


def _path(key: str, values: Mapping[str, str], folders: Mapping[str, Path]) -> Path | None:
    if key not in values:
        return None
    try:
        return folders[key] / Path(values[key]).expanduser()
    except RuntimeError as error:  # ~somebody
        raise UsageError(f"{key} names no path", Code.CONFIG, why=str(error)) from None


def network_names(
    environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, str]:
    """Each network that can be chosen, and where it comes from; broken files are left out."""
    cwd = Path.cwd() if cwd is None else cwd
    project, user = find_project(cwd), user_directories(environ).config_file
    found: dict[str, str] = {UP_NETWORK: str(up[0])} if (up := live_up(cwd)) else {}
    for path, own in ((project, False), (user, True)):
        with suppress(UsageError):
            if path is not None and path.is_file():
                for name in read_file(path, own=own).networks:
                    found.setdefault(name, str(path))
    return found | {name: BUILT_IN for name in TEMPLATES if name not in found}


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise UsageError(f"{key} must be a whole number, not {text[:40]!r}", Code.CONFIG)
    return int(text)


def _wei(text: str) -> int:
    """ETH as text (`0.01`) in wei."""
    try:
        wei = Decimal(text) * 10**18
    except ArithmeticError:
        wei = Decimal(-1)
    if not wei.is_finite() or not 0 <= wei < 10**30 or wei != int(wei):
        raise UsageError(
            f"the fee cap is not an amount: {text[:40]!r}",
            Code.CONFIG,
            why="it is in ETH, to the wei, and not below zero",
            fix="write it like 0.01 (--fee-cap, or fee-cap in your config.toml)",
        )
    return int(wei)
