"""A network of `capdex up` in a folder, packages of ours beside the examples, and their service."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = "https://api.services.example"
HOST = "api.services.example"
KEY = "TEA_KEY"
PATIENCE_S = 120
CAPDEX = (sys.executable, "-m", "capdex")
PACKAGE = """
metadata:
  id: did:nuwa:cap:{name}@{version}
  name: {name}
  description: {does}
  triggers:
    - {{type: keyword, value: "{trigger}"}}
  memory_scope: sc:{name}
  permissions:
    require: {permissions}
schema: |
  {{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "did:nuwa:state:{name}#v1",
    "type": "object", "properties": {{"text": {{"type": "string"}}}}, "required": ["text"]}}
prompt: |
  Answer in one sentence.
tools:
  - type: function
    function:
      name: ask
      description: {does}
      parameters:
        type: object
        properties:
          subject: {{type: string, description: what it is asked about}}
        required: [subject]
{more}
tool_bindings:
  ask:
    type: http_get
    url: {origin}/{name}
{auth}
"""
STATE = """
  - type: function
    function:
      name: state.create
      description: Keep an entry.
      parameters:
        type: object
        properties:
          schema_uri: {type: string, enum: ["did:nuwa:state:diary#v1"]}
          object: {$ref: "#/schema"}
        required: [schema_uri, object]
  - type: function
    function:
      name: state.query
      description: Find entries.
      parameters:
        type: object
        properties:
          schema_uri: {type: string, enum: ["did:nuwa:state:diary#v1"]}
          filter: {type: object}
        required: [schema_uri]
"""
AUTH = f"    auth: {{type: header, secret: {KEY}, name: X-Key}}"
# name -> what it does, and the word by which messages are routed to it
SERVICES = {
    "local-weather": ("Tells the weather of a city.", "weather"),
    "tea-timer": ("Says how long a tea has to steep.", "steep"),
    "train-times": ("Tells when the next train leaves a station.", "train"),
    "stamp-prices": ("Tells what it costs to send a letter to a country.", "stamp"),
    "word-origins": ("Explains where a word comes from.", "etymology"),
    "diary": ("Keeps a diary of short entries.", "diary"),
}


class Service(BaseHTTPRequestHandler):
    """What all packages of ours ask; tea needs a key."""

    def do_GET(self) -> None:
        """Answer with JSON."""
        asked = urlsplit(self.path)
        known = asked.path != "/tea-timer" or self.headers.get("X-Key") == "s3cr3t-of-tea"
        subject = parse_qs(asked.query).get("subject", [""])[0]
        body = json.dumps({"subject": subject, "value": 12.5} if known else {"error": "no key"})
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@dataclass(frozen=True)
class Network:
    """A network that runs: the folder of its `capdex up`, its node, and the service's address."""

    folder: Path
    node: str
    service: str
    author: dict[str, str]

    def home(self, name: str) -> dict[str, str]:
        """Return an environment with another home: what is installed there is its own.

        It is HOME alone: clients hand no other variable of ours to the servers that they start.
        """
        home = self.folder.parent / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        return {"HOME": str(home)}

    @property
    def project(self) -> Path:
        """Where agents work: below the network's folder, without files of the router's own."""
        return self.folder / "project"

    @property
    def router(self) -> tuple[str, str]:
        """The command of a router: some clients start it in another folder than their own."""
        script = self.folder / "router"
        if not script.exists():
            command = shlex.join([*CAPDEX, "router", "--at", f"{ORIGIN}={self.service}"])
            script.write_text(f"#!/bin/sh\ncd {shlex.quote(str(self.project))} && exec {command}\n")
            script.chmod(0o700)
        return "--", str(script)

    def run(self, *args: str, env: dict[str, str], given: str = "") -> str:
        """Run a command to its end, as a person does."""
        done = subprocess.run(
            [*CAPDEX, *args],
            cwd=self.folder,
            env=os.environ | env,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"capdex {' '.join(args)}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def publish(self, name: str, version: str, permissions: tuple[str, ...] = ()) -> None:
        """Publish a version of a package of ours."""
        does, trigger = SERVICES[name]
        path = self.folder / f"{name}.acp.yaml"
        text = PACKAGE.format(
            name=name,
            version=version,
            does=does,
            trigger=trigger,
            permissions=json.dumps(permissions),
            origin=ORIGIN,
            more=STATE if name == "diary" else "",
            auth=AUTH if name == "tea-timer" else "",
        )
        path.write_text(text, "utf-8")
        self.run("publish", path.name, "--yes", env=self.author)


@contextmanager
def running(folder: Path) -> Iterator[Network]:
    """Run a network with the example packages and ours in an empty folder."""
    (folder / "project").mkdir(parents=True)
    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    author = {"HOME": str(folder)}
    options = ("--ipfs", "dir", "--examples", str(ROOT / "examples"))
    with (folder / "up.log").open("w") as log, (folder / "up.json").open("w") as out:
        up = subprocess.Popen(
            [*CAPDEX, "up", *options, "--port", "0", "--rpc-port", "0"],
            cwd=folder,
            env=os.environ | author,
            stdout=out,
            stderr=log,
        )
    try:
        urls = _ready(folder, up)
        address = f"http://127.0.0.1:{service.server_port}"
        network = Network(folder, urls["mcp_url"], address, author)
        for name in SERVICES:
            state = ("state.create", "state.query") if name == "diary" else ()
            network.publish(name, "0.1.0", state)
        yield network
    finally:
        up.terminate()
        up.wait()
        service.shutdown()
        service.server_close()


def _ready(folder: Path, up: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    while not (text := (folder / "up.json").read_text()).endswith("}\n"):
        if up.poll() is not None or time.monotonic() > deadline:
            raise SystemExit((folder / "up.log").read_text())
        time.sleep(0.1)
    found: dict[str, Any] = json.loads(text)
    return found
