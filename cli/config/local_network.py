"""The local network of a live `capdex up`, as a layer of the configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.config.sources import NETWORK_KEYS, Layer


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
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
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


def up_layer(path: Path, stack: Mapping[str, Any]) -> Layer:
    """What a live stack says of its network, and the keys it brings."""
    names = {**{key: key.replace("-", "_") for key in NETWORK_KEYS}, "node-url": "http_url"}
    values = {key: str(stack[name]) for key, name in names.items() if stack.get(name)}
    keys = path.absolute().parent / "keys"
    for key, name in (("keystore", "account.json"), ("author-key", "author.json")):
        values[key] = str(keys / name)
    values["passphrase-file"] = str(keys / "passphrase")
    return Layer(str(path), values, folder=path.absolute().parent)
