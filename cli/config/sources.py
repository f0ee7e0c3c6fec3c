"""The places that set values, each read as one layer: options, environment, files.

A project's file may not set what is in `NOT_FROM_A_PROJECT`: a cloned repository must not choose
keys, spend money, or say whom to trust. Unknown keys are errors with a suggestion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from capdex.errors import Code, UsageError
from cli.config.directories import user_directories
from cli.config.settings import Network

PROJECT_FILE: Final = "capdex.toml"
NETWORK_KEYS: Final = tuple(f.name.replace("_", "-") for f in fields(Network) if f.name != "name")
OWN: Final = (
    *("keystore", "author-key", "passphrase-file"),
    *("signer", "signer-address", "fee-cap"),
)
# A second endpoint makes a proof worth something only when the first one's author did not name it.
NOT_FROM_A_PROJECT: Final = (*OWN, "trust-rpc-url")
ENVIRONMENT: Final = {
    **{f"CAPDEX_{key.upper().replace('-', '_')}": key for key in (*NETWORK_KEYS, *OWN)},
    "CAPDEX_NETWORK": "network",
}


@dataclass(slots=True)
class Layer:
    """One place that sets values: its name for people, its flat values, its networks."""

    origin: str
    values: dict[str, str] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)
    folder: Path = Path()


def read_flags(overrides: Sequence[str]) -> Layer:
    """The values of `--config key=value`."""
    layer = Layer("--config", folder=Path.cwd())
    for text in overrides:
        key, equals, value = text.partition("=")
        if equals:
            _known(key, ("network", *NETWORK_KEYS, *OWN), "--config")
            layer.values[key] = value
    return layer


def read_environment(environ: Mapping[str, str]) -> Layer:
    """The values of CAPDEX_* variables."""
    values = {key: environ[name] for name, key in ENVIRONMENT.items() if environ.get(name)}
    return Layer("environment", values, folder=Path.cwd())


def read_file(path: Path, *, own: bool) -> Layer:
    """Read one TOML file; `own` says whether it may name keys and money."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read {path}", Code.CONFIG, why=str(error.strerror), fix="check the path"
        ) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5000 digits, …
        raise UsageError(
            f"{path} is not TOML", Code.CONFIG, why=str(error), fix="mend it at the place named"
        ) from None
    layer = Layer(str(path), folder=path.absolute().parent)
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


def find_project(cwd: Path) -> Path | None:
    """The nearest capdex.toml upward, no further than the repository's root."""
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / ".git").exists():
            return None
    return None


def _allowed(key: str, known: Sequence[str], path: Path, *, own: bool) -> None:
    if key in NOT_FROM_A_PROJECT and not own:
        raise UsageError(
            f"{path} may not set {key}",
            Code.CONFIG,
            why="a project's file comes with the project: it must not choose keys, spend money, "
            "or say whom to trust",
            fix=f"set {key} in {user_directories().config_file}, "
            f"or CAPDEX_{key.upper().replace('-', '_')}",
        )
    _known(key, known, str(path))


def _known(key: str, known: Sequence[str], where: str) -> None:
    if key not in known:
        raise unknown(key, known, f"unknown key {key!r}", where)


def unknown(key: str, known: Sequence[str], message: str, where: str) -> UsageError:
    """The error for a word that is none of `known`, with the nearest of them."""
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(message, Code.CONFIG, why=f"set by {where}" if where else "", fix=hint)


def _text(path: Path, key: str, value: object) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{path}: {key} must be text or a whole number", Code.CONFIG)
