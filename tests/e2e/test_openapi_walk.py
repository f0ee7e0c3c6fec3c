"""From an OpenAPI document with styles, two secrets and a PATCH to a call, by typed commands."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from capdex_router.policy.secrets import SecretFile, Secrets

pytestmark = pytest.mark.real

DOCUMENT = Path(__file__).with_name("labels.yaml")
API = "https://api.labelcase.dev"
INPUT = {
    "id": ["a/b", "c"],
    "tags": ["x y", "z"],
    "filter": {"size": "L"},
    "X-Options": {"dpi": 300},
    "body": {"street": "Ny Å 1", "floor": None},
}
SENT = (  # as the document says it
    "PATCH",
    "/v2/parcels/.a%2Fb,c/label?filter%5Bsize%5D=L&tags=x%20y%7Cz",
    {"street": "Ny Å 1", "floor": None},
)


@pytest.fixture
def echo() -> Iterator[tuple[str, list[Any]]]:
    """A server of this machine, and what it was sent."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.command, self.path, dict(self.headers), json.loads(body)))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"corrected": true}')

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", got
        server.shutdown()
        thread.join()


def test_what_arrives_is_what_the_document_says(
    network: Any, shell: Any, echo: Any, eventually: Callable[..., Any]
) -> None:
    assert network
    url, got = echo
    shell.env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    made = shell.json("init", "parcel-labels", "--from-openapi", str(DOCUMENT))
    assert not [row for row in made["notes"] if row["fate"] == "refused"]
    file = made["file"]
    path = shell / file
    text = re.sub(r'value: "parcel labels"', 'value: "correct a label"', path.read_text("utf-8"))
    path.write_text(text, "utf-8")

    (shown,) = shell.json("try", f"{file}#correctLabel", json.dumps(INPUT))["results"]
    assert shown["method"] == SENT[0]
    assert shown["url"] == f"{API}{SENT[1]}&api_key=[secret KEY]"
    assert shown["headers"]["X-Site-Id"] == "[secret SITE]"
    assert shown["headers"]["X-Options"] == "dpi=300"

    shell("sign", file)
    published = shell.json("publish", file, "--yes")

    def found() -> bool:
        hits = shell.json("search", "correct the label of my parcel")["results"]
        return bool(hits) and hits[0]["cap_uri"] == published["cap_uri"]

    eventually(found, "a hit for a wish in words")
    installed = shell("install", "parcel-labels", "--yes", "--format", "human")
    asked = installed.stdout + installed.stderr
    assert "api.labelcase.dev" in asked
    secrets = Secrets(SecretFile(Path(shell.env["CAPDEX_HOME"]) / "data/router/secrets.json"))
    for name, value in (("SITE", "site-of-nobody"), ("KEY", "key of/nobody")):
        secrets.set("parcel-labels", "127.0.0.1", name, value)
    call = ("call", "parcel-labels#correctLabel", json.dumps(INPUT), "--at", f"{API}={url}")
    question = shell(*call, code=4).stderr
    assert "PATCH" in question
    assert got == []
    assert shell.json(*call, "--yes")["output"] == {"corrected": True}
    [(method, target, headers, body)] = got
    assert (method, target, body) == (SENT[0], f"{SENT[1]}&api_key=key%20of%2Fnobody", SENT[2])
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert (headers["X-Site-Id"], headers["X-Options"]) == ("site-of-nobody", "dpi=300")
