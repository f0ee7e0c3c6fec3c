"""The explorer of a whole network: a person finds a package, and has it proven by the chain."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

Http = Callable[..., tuple[int, bytes]]


def page(http: Http, url: str) -> str:
    """A page as a browser gets it."""
    status, body = http(url, Accept="text/html")
    assert status == 200, body[:500]
    return body.decode("utf-8")


def test_a_person_finds_a_package_and_has_it_proven(examples_up: Path, http: Http) -> None:
    base = json.loads((examples_up / ".capdex" / "up.json").read_text())["http_url"]
    home = page(http, f"{base}/")
    found = page(http, base + re.findall(r'href="(/search\?q=what[^"]+)"', home)[0])
    address = re.findall(r'<h2><a href="([^"]+)"', found)[0]
    package = page(http, base + address)
    assert address == "/c/city-weather/1.0.0"
    assert package.count("✓<span") == 6  # each step of the way of the bytes
    prove = re.findall(r'href="([^"]+proof=1)#proof"', package)[0]
    proven = page(http, base + prove)
    assert "<b>Proven.</b>" in proven
    assert "<b>Proven.</b>" in page(http, f"{base}/c/city-weather?proof")
    block_hash = re.findall(
        r'against the block hash <span class="mono">[^<]+</span> '
        r'<button[^>]+data-copy="(0x[0-9a-f]{64})"',
        proven,
    )
    assert len(block_hash) == 1
    node = page(http, f"{base}/node")
    assert "In step with the chain." in node, re.findall("Not ready.*", node)
    assert re.search('At block [0-9]+: <span class="mono">0x[0-9a-f]{64}<', node)


def test_the_commands_of_the_pages_run_where_nothing_is_set(
    examples_up: Path, http: Http, tmp_path_factory: pytest.TempPathFactory
) -> None:
    up = json.loads((examples_up / ".capdex" / "up.json").read_text())
    pages = ("/docs", "/c/city-weather", "/c/city-weather/1.0.0/checks")
    blocks = [
        re.findall("<pre[^>]*>(.*?)</pre>", page(http, up["http_url"] + x), re.S) for x in pages
    ]
    lines = html.unescape("\n".join(text for block in blocks for text in block)).splitlines()
    shown = [x for x in lines if re.match("(export|capdex|curl) ", x)]
    assert {"add-to", "install", "get", "resolve"} <= {x.split()[1] for x in shown}
    script = "\n".join(["set -ex", *shown]).replace("https://YOUR-ENDPOINT", up["rpc_url"])
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        ["bash", "-c", script.replace("\ncapdex ", "\ncapdex --yes ")],
        cwd=elsewhere,
        env={"HOME": str(elsewhere), "PATH": f"{examples_up}/.venv/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"proven"' in done.stdout


def test_a_publication_prints_the_address_of_its_page(
    shell: Any, network: dict[str, Any], http: Http
) -> None:
    shell(
        "init",
        "tea-timer",
        "--kind",
        "prompt",
        "--description",
        "Steeps a tea.",
        "--keyword",
        "tea",
    )
    shell("sign", "tea-timer.acp.yaml")
    told = shell("publish", "tea-timer.acp.yaml", "--yes", "--format", "human").stdout.splitlines()
    assert told[-1] == f"{network['http_url']}/c/tea-timer"
    assert "Steeps a tea." in page(http, told[-1])
    assert json.loads(http(told[-1], Accept="application/json")[1])["name"] == "tea-timer"


def test_the_explorer_can_be_off_and_every_process_of_a_node_has_it(
    shell: Any, network: dict[str, Any], http: Http
) -> None:
    reader = ("node", "--role", "reader", "--db", network["db_url"], "--port", "0")
    off = shell.start(*reader, "--log-format", "json", CAPDEX_EXPLORER="0").url()
    assert http(f"{off}/", Accept="text/html")[0] == 404
    assert http(f"{off}/status")[0] == 200
    proxied = ("--trusted-proxy", "127.0.0.1")
    both = shell.start(*reader, *proxied, "--workers", "2", "--log-format", "json")
    both.wait_for(lambda: "worker serves" in both.stderr, "the worker")
    for _ in range(20):  # the kernel chooses the process
        assert "State of this node" in page(http, f"{both.url()}/node")
    feed = http(f"{both.url()}/feed.atom", **{"X-Forwarded-Proto": "https"})[1].decode("utf-8")
    assert both.url().replace("http:", "https:") in feed
    assert both.url() not in feed
