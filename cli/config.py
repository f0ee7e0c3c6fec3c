"""Reading the configuration: flag > CAPDEX_* > capdex.toml upward > config.toml > what is built in.

A file holds `default-network`, tables `[networks.NAME]`, and (the user's own file alone) the keys
of `OWN`: a cloned repository must not spend money. Unknown keys are errors with a suggestion.
With a live `.capdex/up.json` upward its network and its keys are used when no other was chosen.
Public chains are known by name (`cli.networks`), their chain ids are pinned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.errors import Code, UsageError
from cli.networks import TEMPLATES
from cli.places import places
from cli.settings import DEFAULT_FEE_CAP_WEI, Network, NodeSettings, Settings, UpSettings

__all__ = ["Network", "NodeSettings", "Settings", "UpSettings", "live_up", "load"]

PROJECT_FILE: Final = "capdex.toml"
UP_NETWORK: Final = "local"
BUILT_IN: Final = "built-in"
NETWORK_KEYS: Final = tuple(f.name.replace("_", "-") for f in fields(Network) if f.name != "name")
OWN: Final = (  # never from a project's file
    *("keystore", "author-key", "passphrase-file"),
    *("signer", "signer-address", "fee-cap"),
)
NUMBERS: Final = ("chain-id", "start-block", "confirmations")
ENVIRONMENT: Final = {
    **{f"CAPDEX_{key.upper().replace('-', '_')}": key for key in (*NETWORK_KEYS, *OWN)},
    "CAPDEX_NETWORK": "network",
}
ELSEWHERE: Final = (
    *("HOME", "PASSPHRASE", "PRIVATE_KEY", "ANVIL"),
    *("DB", "BLOCKS", "HOST", "PORT", "LOG_FORMAT"),
)


@dataclass(slots=True)
class _Layer:
    """One place that sets values: its name for people, its flat values, its networks."""

    origin: str
    values: dict[str, str] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)
    folder: Path = Path()


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
    layers = [_flags(network, overrides), _environment(environ)]
    chosen_files = [Path(text) for text in overrides if "=" not in text]
    if chosen_files:
        layers += [_file(path, own=True) for path in reversed(chosen_files)]
    else:
        project, user = _find_project(cwd), places(environ).config_file
        layers += [_file(project, own=False)] if project else []
        layers += [_file(user, own=True)] if user.is_file() else []
    built_in = {name: template.values() for name, template in TEMPLATES.items()}
    return _settle([*layers, _Layer(BUILT_IN, networks=built_in)], live_up(cwd))


def _settle(layers: list[_Layer], up: tuple[Path, dict[str, Any]] | None) -> Settings:
    """Take each value from the first layer that has it."""
    chosen, chosen_by = _first(layers, "network")
    known = sorted({name for layer in layers for name in layer.networks})
    if chosen is None and up is not None:
        chosen, chosen_by = UP_NETWORK, str(up[0])
    from_up = chosen == UP_NETWORK and up is not None and UP_NETWORK not in known
    if chosen is not None and not from_up and chosen not in known:
        raise _unknown(chosen, known, f"no network is called {chosen!r}", chosen_by or "")
    # The keys of a local stack go with its network; a user's real account is never used there.
    own = [x for x in layers if x.origin in ("--config", "environment")] if from_up else layers
    tail = [_up_layer(*up)] if from_up and up is not None else []
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


def _first(layers: Sequence[_Layer], key: str) -> tuple[str | None, str | None]:
    return next(((x.values[key], x.origin) for x in layers if key in x.values), (None, None))


def _network(name: str, values: Mapping[str, str]) -> Network:
    return Network(
        name,
        chain_id=_number("chain-id", values["chain-id"]) if "chain-id" in values else None,
        start_block=_number("start-block", values.get("start-block", "0")),
        confirmations=_number("confirmations", values.get("confirmations", "1")),
        **{
            key.replace("-", "_"): values[key].rstrip("/") if "url" in key else values[key]
            for key in NETWORK_KEYS
            if key not in NUMBERS and key in values
        },
    )


def _path(key: str, values: Mapping[str, str], folders: Mapping[str, Path]) -> Path | None:
    return folders[key] / Path(values[key]).expanduser() if key in values else None


# the layers ---------------------------------------------------------------------------------


def _flags(network: str | None, overrides: Sequence[str]) -> _Layer:
    layer = _Layer("--config", folder=Path.cwd())
    for text in overrides:
        key, equals, value = text.partition("=")
        if equals:
            _known(key, ("network", *NETWORK_KEYS, *OWN), "--config")
            layer.values[key] = value
    if network:
        layer.values["network"] = network
    return layer


def _environment(environ: Mapping[str, str]) -> _Layer:
    values = {key: environ[name] for name, key in ENVIRONMENT.items() if environ.get(name)}
    return _Layer("environment", values, folder=Path.cwd())


def _file(path: Path, *, own: bool) -> _Layer:
    """Read one TOML file; `own` says whether it may name keys and money."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read {path}", Code.CONFIG, why=str(error.strerror), fix="check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not TOML", Code.CONFIG, why=str(error), fix="mend it at the place named"
        ) from None
    layer = _Layer(str(path), folder=path.absolute().parent)
    for key, value in document.items():
        if key == "networks":
            layer.networks = _networks(path, value, own=own)
        elif key == "default-network":
            layer.values["network"] = _text(path, key, value)
        else:
            _allowed(key, ("default-network", "networks", *OWN), path, own=own)
            layer.values[key] = _text(path, key, value)
    return layer


def _networks(path: Path, tables: object, *, own: bool) -> dict[str, dict[str, str]]:
    networks: dict[str, dict[str, str]] = {}
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: networks.{name} is not a table", Code.CONFIG)
        for key in table:
            _allowed(key, (*NETWORK_KEYS, *OWN), path, own=own)
        networks[name] = {key: _text(path, f"{name}.{key}", table[key]) for key in table}
    return networks


def live_up(cwd: Path) -> tuple[Path, dict[str, Any]] | None:
    """The nearest `.capdex/up.json` upward whose process lives, with its content.

    Believed only when the file is ours and every address in it is this machine's: a cloned
    repository may hold such a file too.
    """
    for folder in (cwd, *cwd.parents):
        path = folder / ".capdex" / "up.json"
        try:
            owner = path.stat().st_uid
            stack = json.loads(path.read_text(encoding="utf-8"))
            os.kill(int(stack["pid"]), 0)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError):
            return None
        ours = owner == os.geteuid() and int(stack["pid"]) > 0
        return (path, stack) if ours and _local(stack) else None
    return None


def _local(stack: Mapping[str, Any]) -> bool:
    urls = [str(value) for key, value in stack.items() if key.endswith("_url") and key != "db_url"]
    return all(_loopback(urlsplit(url).hostname or "") for url in urls)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _up_layer(path: Path, stack: Mapping[str, Any]) -> _Layer:
    names = {**{key: key.replace("-", "_") for key in NETWORK_KEYS}, "node-url": "http_url"}
    values = {key: str(stack[name]) for key, name in names.items() if stack.get(name)}
    keys = path.absolute().parent / "keys"
    for key, name in (("keystore", "account.json"), ("author-key", "author.json")):
        values[key] = str(keys / name)
    values["passphrase-file"] = str(keys / "passphrase")
    return _Layer(str(path), values, folder=path.absolute().parent)


def _find_project(cwd: Path) -> Path | None:
    """The nearest capdex.toml upward, no further than the repository's root."""
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / ".git").exists():
            return None
    return None


# values -------------------------------------------------------------------------------------


def _allowed(key: str, known: Sequence[str], path: Path, *, own: bool) -> None:
    if key in OWN and not own:
        raise UsageError(
            f"{path} may not set {key}",
            Code.CONFIG,
            why="a project's file comes with the project: it must not choose keys or spend money",
            fix=f"set {key} in {places().config_file}, or CAPDEX_{key.upper().replace('-', '_')}",
        )
    _known(key, known, str(path))


def _known(key: str, known: Sequence[str], where: str) -> None:
    if key not in known:
        raise _unknown(key, known, f"unknown key {key!r}", where)


def _unknown(key: str, known: Sequence[str], message: str, where: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(message, Code.CONFIG, why=f"set by {where}" if where else "", fix=hint)


def _text(path: Path, key: str, value: object) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{path}: {key} must be text or a whole number", Code.CONFIG)


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{key} must be a whole number, not {text!r}", Code.CONFIG)
    return int(text)


def _wei(text: str) -> int:
    """ETH as text (`0.01`) in wei."""
    try:
        wei = Decimal(text) * 10**18
    except InvalidOperation:
        wei = Decimal(-1)
    if not wei.is_finite() or wei < 0 or wei != int(wei):
        raise UsageError(f"fee-cap must be an amount in ETH like 0.01, not {text!r}", Code.CONFIG)
    return int(wei)
