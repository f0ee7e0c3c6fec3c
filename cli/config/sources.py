"""The sources of settings, each read as one layer: options, environment, files, `capdex up`.

A project's capdex.toml may not set `NOT_FROM_A_PROJECT`: a cloned repository must not choose keys,
spend money, or choose a trusted endpoint. Unknown keys are errors with a suggestion.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.errors import Code, UsageError
from cli.config.directories import user_directories
from cli.config.settings import Network

PROJECT_FILE: Final = "capdex.toml"
NETWORK_KEYS: Final = tuple(f.name.replace("_", "-") for f in fields(Network) if f.name != "name")
ACCOUNT_KEYS: Final = (
    *("keystore", "author-key", "passphrase-file"),
    *("signer", "signer-address", "fee-cap"),
)
# A second endpoint checks the first one only if the author of the first one did not choose it.
NOT_FROM_A_PROJECT: Final = (*ACCOUNT_KEYS, "trust-rpc-url")
ENVIRONMENT: Final = {
    **{f"CAPDEX_{key.upper().replace('-', '_')}": key for key in (*NETWORK_KEYS, *ACCOUNT_KEYS)},
    "CAPDEX_NETWORK": "network",
}


@dataclass(slots=True)
class Layer:
    """Settings of one source: values for every network, and values by network."""

    origin: str  # shown by `capdex config`
    values: dict[str, str] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)
    folder: Path = Path()  # relative paths are relative to it


def read_options(overrides: Sequence[str]) -> Layer:
    """Return the values of `--config key=value`."""
    layer = Layer("--config", folder=Path.cwd())
    for text in overrides:
        key, equals, value = text.partition("=")
        if equals:
            _check_key(key, ("network", *NETWORK_KEYS, *ACCOUNT_KEYS), "--config")
            layer.values[key] = value
    return layer


def read_environment(environ: Mapping[str, str]) -> Layer:
    """Return the values of CAPDEX_* variables."""
    values = {key: environ[name] for name, key in ENVIRONMENT.items() if environ.get(name)}
    return Layer("environment", values, folder=Path.cwd())


def read_file(path: Path, *, project: bool = False) -> Layer:
    """Read one TOML file; `project` refuses the keys that a project may not set."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read {path}", Code.CONFIG, why=str(error.strerror), fix="check the path"
        ) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5000 digits, …
        raise UsageError(
            f"{path} is not TOML", Code.CONFIG, why=str(error), fix="correct it at that position"
        ) from None
    forbidden = NOT_FROM_A_PROJECT if project else ()
    layer = Layer(str(path), folder=path.absolute().parent)
    for key, value in document.items():
        if key == "networks":
            for name, table in value.items() if isinstance(value, dict) else ():
                if not isinstance(table, dict):
                    raise UsageError(f"{path}: networks.{name} is not a table", Code.CONFIG)
                for name_key in table:
                    _check_key(name_key, (*NETWORK_KEYS, *ACCOUNT_KEYS), str(path), forbidden)
                layer.networks[name] = {k: _text(path, f"{name}.{k}", v) for k, v in table.items()}
        else:
            _check_key(key, ("default-network", "networks", *ACCOUNT_KEYS), str(path), forbidden)
            layer.values["network" if key == "default-network" else key] = _text(path, key, value)
    return layer


def find_project(cwd: Path) -> Path | None:
    """Return the nearest capdex.toml upward, no further than the root of the repository."""
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / ".git").exists():
            return None
    return None


def find_local_network(cwd: Path) -> Layer | None:
    """Return the layer of the nearest `.capdex/up.json` upward whose process runs.

    Used only if this user owns the file and every address in it is of this machine: a cloned
    repository may contain such a file, too.
    """
    for folder in (cwd, *cwd.parents):
        path = folder / ".capdex" / "up.json"
        try:
            owner = path.stat().st_uid
            stack = json.loads(path.read_text(encoding="utf-8"))
            pid = int(stack["pid"])
            os.kill(pid, 0)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        ours = owner == os.geteuid() and pid > 0
        return _layer(path, stack) if ours and _is_local(stack) else None
    return None


def _is_local(stack: Mapping[str, Any]) -> bool:
    urls = [str(value) for key, value in stack.items() if key.endswith("_url") and key != "db_url"]
    return all(_is_loopback(urlsplit(url).hostname or "") for url in urls)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _layer(path: Path, stack: Mapping[str, Any]) -> Layer:
    """Return the settings of the network, and of the keys that `capdex up` made for it."""
    names = {**{key: key.replace("-", "_") for key in NETWORK_KEYS}, "node-url": "http_url"}
    values = {key: str(stack[name]) for key, name in names.items() if stack.get(name)}
    folder = path.absolute().parent
    values["keystore"] = str(folder / "keys" / "account.json")
    values["author-key"] = str(folder / "keys" / "author.json")
    values["passphrase-file"] = str(folder / "keys" / "passphrase")
    return Layer(str(path), values, folder=folder)


def unknown(word: str, known: Collection[str], message: str, origin: str) -> UsageError:
    """Return the error for a word that is not among `known`, with the nearest of them."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(message, Code.CONFIG, why=f"set by {origin}" if origin else "", fix=hint)


def _check_key(
    key: str, known: Collection[str], origin: str, forbidden: Collection[str] = ()
) -> None:
    if key in forbidden:
        raise UsageError(
            f"{origin} may not set {key}",
            Code.CONFIG,
            why="a project's file comes with the project: it must not choose keys, spend money, "
            "or choose a trusted endpoint",
            fix=f"set {key} in {user_directories().config_file}, "
            f"or CAPDEX_{key.upper().replace('-', '_')}",
        )
    if key not in known:
        raise unknown(key, known, f"unknown key {key!r}", origin)


def _text(path: Path, key: str, value: object) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{path}: {key} must be text or a whole number", Code.CONFIG)
