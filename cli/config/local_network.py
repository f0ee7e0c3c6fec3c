"""The local network of a running `capdex up`, as a layer of the configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.config.sources import NETWORK_KEYS, Layer


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
