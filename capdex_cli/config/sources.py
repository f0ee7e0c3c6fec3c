"""The sources of settings, each read as one layer: options, environment, files, `capdex up`.

A project's capdex.toml may not set `NOT_FROM_A_PROJECT`: a cloned repository must not choose keys,
spend money, or choose a trusted endpoint. Unknown keys are errors with a suggestion.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from capdex.errors import CapdexError, Code, UsageError
from capdex.json import object_of
from capdex.manifest.urls import is_loopback
from capdex_cli.config.settings import TYPED, Network, path_of, user_directories, wrong

LOCAL: Final = "local"  # the network of a running `capdex up`
PROJECT_FILE: Final = "capdex.toml"
PROJECT: Final = "project"  # kind of file
NETWORK_KEYS: Final = tuple(f.name.replace("_", "-") for f in fields(Network) if f.name != "name")
PATH_KEYS: Final = ("keystore", "author-key", "passphrase-file", "author-passphrase-file")
ACCOUNT_KEYS: Final = (*PATH_KEYS, "signer", "signer-address", "fee-cap")
# A second endpoint checks the first one only if the author of the first one did not choose it.
NOT_FROM_A_PROJECT: Final = (*ACCOUNT_KEYS, "trust-rpc-url")
MAX_STACK_BYTES: Final = 64 * 1024  # of up.json
_BROKEN: Final = (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError)
DEPLOYMENT: Final = "CAPDEX_DEPLOYMENT"
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
    kind: str = ""  # PROJECT, or another

    def value(self, key: str, network: str | None) -> str | None:
        """Return a setting of one network, else of every network; a path is made absolute."""
        text = self.networks.get(network or "", {}).get(key, self.values.get(key))
        if text is None or key not in PATH_KEYS:
            return text
        if not text.strip():
            name = f"CAPDEX_{key.upper().replace('-', '_')}"
            is_variable = self.origin == "environment"
            fix = f"unset {name}" if is_variable else f"give {key} the path of a file"
            raise wrong(f"{name if is_variable else key} is empty", self.origin, fix)
        return str(self.folder / path_of(text, key, self.origin))


def read_options(overrides: Sequence[str]) -> Layer:
    """Return the values of `--config key=value`, and of the options that are short for it."""
    layer = Layer(TYPED, folder=Path.cwd())
    for text in overrides:
        key, equals, value = text.partition("=")
        if equals:
            _check_key(key, ("network", *NETWORK_KEYS, *ACCOUNT_KEYS), "--config")
            layer.values[key] = value.strip()
    return layer


def read_environment(environ: Mapping[str, str]) -> Layer:
    """Return the values of CAPDEX_* variables; an empty one counts only where it names a file.

    There it is a mistake, such as a missing secret of a CI job, which is refused when it is read.
    """
    values = {
        key: environ[name].strip()  # files of variables may keep a space at the end
        for name, key in ENVIRONMENT.items()
        if environ.get(name, "").strip() or (key in PATH_KEYS and name in environ)
    }
    return Layer("environment", values, folder=Path.cwd())


def read_deployment(environ: Mapping[str, str]) -> Layer:
    """Return what the file of CAPDEX_DEPLOYMENT, which `capdex deploy` wrote, says of a network."""
    text = environ.get(DEPLOYMENT)
    if not text:
        return Layer(DEPLOYMENT)
    from capdex_publisher.deploy.deploy import read_deployment

    contract = read_deployment(path_of(text, DEPLOYMENT, "environment"))
    values = {
        "chain-id": str(contract.chain_id),
        "registry": contract.registry,
        "start-block": str(contract.block_number),
    }
    return Layer(DEPLOYMENT, values)


def read_file(path: Path, kind: str = "") -> Layer:
    """Read one TOML file; one of the kind `PROJECT` may not set `NOT_FROM_A_PROJECT`."""
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
    forbidden = NOT_FROM_A_PROJECT if kind == PROJECT else ()
    layer = Layer(str(path), folder=path.absolute().parent, kind=kind)
    for key, value in document.items():
        if key == "networks":
            for name, table in object_of(value).items():
                if not isinstance(table, dict):
                    raise UsageError(f"{path}: networks.{name} is not a table", Code.CONFIG)
                for name_key in table:
                    _check_key(name_key, (*NETWORK_KEYS, *ACCOUNT_KEYS), str(path), forbidden)
                layer.networks[name] = {k: _text(path, f"{name}.{k}", v) for k, v in table.items()}
        else:
            _check_key(key, ("default-network", "networks", *ACCOUNT_KEYS), str(path), forbidden)
            layer.values["network" if key == "default-network" else key] = _text(path, key, value)
    return layer


def configuration_files(
    environ: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> dict[str, Path]:
    """Return the files that are read, by kind, the strongest first; the user's may not exist.

    The project's file is the nearest capdex.toml upward, no further than the repository's root.
    """
    cwd = Path.cwd() if cwd is None else cwd
    files = {}
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            files[PROJECT] = folder / PROJECT_FILE
        if PROJECT in files or (folder / ".git").exists():
            break
    return files | {"user": user_directories(environ).config_file}


def find_local_network(cwd: Path) -> Layer | None:
    """Return the network and the keys of the nearest `capdex up` upward, if its process runs.

    Its file is used only if this user owns it and every address in it is of this machine: a cloned
    repository may contain such a file, too, or a link in its place.
    """
    from capdex.net.files import read_bounded

    for folder in (cwd, *cwd.parents):
        path = folder.absolute() / ".capdex" / "up.json"
        try:
            if (text := read_bounded(path, MAX_STACK_BYTES)) is None:
                continue
            owner = path.stat().st_uid
            stack = json.loads(text)
            pid = int(stack["pid"])
            os.kill(pid, 0)
            urls = [str(x) for key, x in stack.items() if key.endswith("_url") and key != "db_url"]
            if not str(stack.get("ipfs", "dir:")).startswith("dir:"):
                urls.append(str(stack["ipfs"]))
            hosts = [urlsplit(url).hostname or "" for url in urls]
            if owner != os.geteuid() or pid <= 0 or not all(map(is_loopback, hosts)):
                return None
        except (*_BROKEN, CapdexError):
            return None
        # Its MCP endpoint and gateway follow from its node: one that is named elsewhere has others.
        kept = set(NETWORK_KEYS) - {"mcp-url", "gateway-url", "nodes"}
        names = {**{key: key.replace("-", "_") for key in kept}, "node-url": "http_url"}
        values = {key: str(stack[name]) for key, name in names.items() if stack.get(name)}
        files = ("keys/account.json", "keys/author.json", *["keys/passphrase"] * 2)
        values |= {"network": LOCAL, **dict(zip(PATH_KEYS, files, strict=True))}
        return Layer(str(path), values, folder=path.parent)
    return None


def unknown(word: str, known: Collection[str], message: str, origin: str) -> UsageError:
    """Return the error for a word that is not among `known`, with the nearest of them."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return wrong(message, origin, hint)


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
        place = " outside of [networks.NAME]" if key in NETWORK_KEYS else ""
        raise unknown(key, known, f"unknown key {key!r}{place}", origin)


def _text(path: Path, key: str, value: object) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).strip()
    raise UsageError(f"{path}: {key} must be text, in quotes, or a whole number", Code.CONFIG)
