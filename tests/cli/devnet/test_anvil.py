"""The Anvil of `capdex up`: fetched by npm from a registry, with one digest."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from capdex.errors import Code, UsageError, VerificationFailure
from capdex_cli.devnet import anvil
from capdex_cli.devnet.anvil import ARCHIVES, VERSION, Archive, fetched_anvil, ready_anvil
from capdex_cli.terminal.output import Output
from capdex_publisher.ethereum.anvil import platform_name, run_anvil

ROOT = Path(__file__).parents[3]
PACKAGE = f"@foundry-rs/anvil-{platform_name()}"
PROGRAM = b"#!/bin/sh\necho anvil\n"


def archive() -> bytes:
    """An archive of npm with an Anvil."""
    about = {"name": PACKAGE, "version": VERSION}
    files = {"package/package.json": json.dumps(about).encode(), "package/bin/anvil": PROGRAM}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def integrity(data: bytes) -> str:
    return f"sha512-{b64encode(hashlib.sha512(data).digest()).decode()}"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[bytes]:
    """A registry that npm asks, and which has one archive; nothing else of Anvil is here."""
    data = archive()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://{self.headers['Host']}"
            dist = {"tarball": f"{base}/archive.tgz", "integrity": integrity(data)}
            version = {"name": PACKAGE, "version": VERSION, "dist": dist}
            whole = {"name": PACKAGE, "versions": {VERSION: version}, "dist-tags": {}}
            body = data if self.path == "/archive.tgz" else json.dumps(whole).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
        yield data
        server.shutdown()


@pytest.fixture(autouse=True)
def no_anvil(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without an Anvil: none in a clone, on the PATH, or named."""
    monkeypatch.delenv("CAPDEX_ANVIL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("capdex_publisher.ethereum.anvil.BESIDE", tmp_path / "node_modules")


@pytest.fixture
def output() -> Output:
    return Output.open()


def test_the_digests_are_those_of_the_lock_file() -> None:
    locked = json.loads((ROOT / "package-lock.json").read_text("utf-8"))["packages"]
    for platform, one in ARCHIVES.items():
        entry = locked[f"node_modules/@foundry-rs/anvil-{platform}"]
        assert (entry["version"], entry["integrity"]) == (VERSION, one.integrity)


def test_anvil_is_fetched_once_into_the_data_directory(
    registry: bytes, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARCHIVES, platform_name(), Archive(integrity(registry), len(registry)))
    found = ready_anvil(output)
    assert found == fetched_anvil()
    assert (found.read_bytes(), found.stat().st_mode & 0o777) == (PROGRAM, 0o755)
    assert [x.name for x in found.parent.iterdir()] == ["anvil"]
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")  # nothing is asked again
    assert ready_anvil(output) == found


def test_other_bytes_than_those_of_the_digest_are_not_taken(
    registry: bytes, output: Output
) -> None:
    with pytest.raises(VerificationFailure, match="is not Anvil"):
        ready_anvil(output)
    assert list(fetched_anvil().parent.iterdir()) == []


def test_without_a_network_the_error_says_what_to_do(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    with pytest.raises(UsageError, match="could not be fetched") as refusal:
        ready_anvil(output)
    assert refusal.value.code is Code.MISSING_PART
    assert "ECONNREFUSED" in refusal.value.why
    assert "CAPDEX_ANVIL" in refusal.value.fix


def test_without_npm_the_error_names_the_extra(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anvil, "find_spec", lambda _: None)
    with pytest.raises(UsageError) as refusal:
        ready_anvil(output)
    assert (refusal.value.code, refusal.value.fix) == (
        Code.MISSING_PART,
        "pip install 'capdex[local]', which fetches it",
    )


def test_a_named_anvil_comes_before_a_fetched_one(
    output: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched_anvil().parent.mkdir(parents=True)
    fetched_anvil().touch()
    assert ready_anvil(output) == fetched_anvil()
    monkeypatch.setenv("CAPDEX_ANVIL", str(tmp_path / "own"))
    assert ready_anvil(output) == tmp_path / "own"


async def test_an_anvil_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    log, none = tmp_path / "log", tmp_path / "none"
    with pytest.raises(UsageError, match="none cannot be started") as refusal:
        async with run_anvil(state=tmp_path / "state", port=0, log=log, program=none):
            pass
    assert refusal.value.fix == "correct CAPDEX_ANVIL, or unset it"


def test_the_progress_is_a_bar_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(bytes(500_000))
    shown = anvil._progress(tmp_path, 1_000_000)
    assert shown == f"fetching Anvil {VERSION}: [############------------] 50% of 1 MB"
