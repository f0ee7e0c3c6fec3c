"""An author without ether publishes by a sponsor: three commands, on a network of `capdex up`."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from capdex.ipld.cid import Cid
from capdex_publisher.sponsor.request import SponsorRequest

pytestmark = pytest.mark.real


@pytest.fixture
def author(shell: Any) -> dict[str, str]:
    """The variables of an author whose account was never sent anything."""
    (shell / "pass.txt").write_text("not a secret of anybody\n")
    (shell / "pass.txt").chmod(0o600)
    keys = {
        "CAPDEX_KEYSTORE": str(shell / "poor.json"),
        "CAPDEX_PASSPHRASE_FILE": str(shell / "pass.txt"),
        "CAPDEX_AUTHOR_KEY": str(shell / "did.json"),
        "CAPDEX_AUTHOR_PASSPHRASE_FILE": str(shell / "pass.txt"),
    }
    secret = ("--light", "--passphrase-file", "pass.txt")
    shell("account", "new", "--out", "poor.json", *secret)
    shell("keygen", "--out", "did.json", *secret)
    return keys


def serve(shell: Any, *options: str) -> tuple[Any, str]:
    process = shell.start("sponsor", "serve", "--port", "0", *options)
    return process, process.url()


def test_an_author_without_ether_publishes(
    network: Any, shell: Any, author: dict[str, str], http: Callable[..., tuple[int, bytes]]
) -> None:
    assert network
    address = json.loads((shell / "poor.json").read_text())["address"]
    process, url = serve(shell, "--allow", f"0x{address}", "--budget", "0.05")
    shell("init", "tea-timer", "--description", "Times how long tea steeps.", "--kind", "prompt")
    package = shell / "tea-timer.acp.yaml"
    text, key = package.read_text("utf-8"), "8f14e45fceea167a5a36dedd4bea2543"
    package.write_text(
        text.replace("prompt: |", f"prompt: |\n  Send api_key={key} along."), "utf-8"
    )
    refused = shell.error("sponsor", "sign", package.name, code=1, **author)
    assert "--allow-secret-like 'prompt'" in refused["fix"]
    assert shell.error("sponsor", "sign", "-", code=2, **author)["fix"] == "add --out FILE"
    allowed = "--allow-secret-like", "prompt"
    request = shell.json("sponsor", "sign", package.name, "--hours", "2", *allowed, **author)
    assert Path(request["file"]).name == "tea-timer.publication.json"

    sent = shell.json("sponsor", "send", request["file"], "--to", url)  # needs no key
    assert sent["cap_uri"] == "did:nuwa:cap:tea-timer@0.1.0"
    assert sent["served_after_s"] is not None
    shown = shell.json("show", "tea-timer")
    assert shown["name"] == "tea-timer"

    again = shell.json("sponsor", "send", request["file"], "--to", url)
    assert again["already"]
    whole = shell.json("sponsor", "send", package.name, "--to", url, *allowed, **author)
    assert (whole["already"], whole["cid"]) == (True, sent["cid"])
    (shell / request["file"]).unlink()
    signed = shell.json("sponsor", "sign", package.name, *allowed, **author)
    assert signed == whole
    assert not (shell / request["file"]).exists()
    status, body = http(url)
    told = json.loads(body)
    assert status == 200
    assert int(told["spent_wei"]) == sent["fee_wei"] > 0

    text = package.read_text("utf-8").replace("tea-timer@0.1.0", "tea-timer@0.1.1")
    package.write_text(text.replace("require: []", "require: [state.read]"), "utf-8")
    error = shell.error("sponsor", "sign", package.name, *allowed, code=1, **author)
    assert error["code"] == "STEP_TOO_SMALL"

    assert process.stop() == 130
    _, url = serve(shell, "--allow", f"0x{address}", "--budget", "0.05")
    assert json.loads(http(url)[1])["spent_wei"] == told["spent_wei"]  # over a restart


def test_a_sponsor_answers_each_refusal_with_its_code(
    network: Any, shell: Any, author: dict[str, str], http: Callable[..., tuple[int, bytes]]
) -> None:
    nobody = "0x" + "11" * 20
    first, url = serve(shell, "--allow", nobody, "--budget", "0.05")
    shell("init", "tea-timer", "--description", "Times how long tea steeps.", "--kind", "prompt")
    error = shell.error("sponsor", "send", "tea-timer.acp.yaml", "--to", url, code=4, **author)
    assert error["code"] == "PERMISSION_DENIED"
    assert "--allow" in error["fix"]
    kind = {"Content-Type": "application/json"}
    status, body = http(f"{url}/publications", b"{}", **kind)
    assert (status, json.loads(body)["code"]) == (400, "INVALID_INPUT")
    for status, path in ((405, "/publications"), (404, "/mcp")):
        found, body = http(f"{url}{path}")
        assert found == status
        assert "POST /publications takes" in json.loads(body)["details"]["fix"]
    account = "0x" + json.loads((shell / "poor.json").read_text())["address"]
    first.stop()
    _, url = serve(shell, "--allow", account, "--budget", "0.0000001")
    error = shell.error("sponsor", "send", "tea-timer.acp.yaml", "--to", url, code=4, **author)
    assert error["code"] == "FEE_OVER_CAP"
    assert "--budget" in error["fix"]
    assert network


def test_what_only_the_sponsor_says_is_told_as_that(shell: Any) -> None:
    """It answers as if it had sent, and has no chain at all."""
    shell("init", "tea-timer", "--description", "Times how long tea steeps.", "--kind", "prompt")
    package = (shell / "tea-timer.acp.yaml").read_bytes()
    account = "0x" + "11" * 20
    request = SponsorRequest(31337, account, account, 0, 0, package, signature=bytes(65))
    (shell / "tea.publication.json").write_text(json.dumps(request.to_json()))
    release = {
        "cap_uri": "did:nuwa:cap:tea-timer@0.1.0",
        "cid": str(Cid.of(package)),
        "sha256": hashlib.sha256(package).hexdigest(),
        "already": False,
        "tx_hash": "0x" + "22" * 32,
    }

    class Liar(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(release).encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = shell("sponsor", "send", "tea.publication.json", "--to", url)
        server.shutdown()
    assert "says the sponsor" in done.stderr
    assert "only the sponsor says so" in done.stderr


def test_a_sponsor_for_nobody_does_not_start(network: Any, shell: Any) -> None:
    assert network
    error = shell.error("sponsor", "serve", "--budget", "1", code=2)
    assert "--allow" in error["fix"]
    error = shell.error("sponsor", "serve", "--allow", "0x" + "11" * 20, "--budget", "lots", code=2)
    assert "the budget is not an amount" in error["what"]
