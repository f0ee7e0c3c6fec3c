"""The workflow of docs/publishing-from-ci.md, run step by step as CI would, from a clean home."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from capdex_cli.main import program

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "publishing-from-ci.md").read_text("utf-8")
WORKFLOW: dict[str, Any] = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
PASSPHRASE = "correct horse battery"  # noqa: S105 - what must not be printed
SEPOLIA = ("--chain-id", "11155111")

on_sepolia = pytest.mark.parametrize("anvil", [SEPOLIA], indirect=True)


@dataclass
class Ci:
    """A repository, its settings, and a runner without anything of the one before."""

    rpc_url: str
    folder: Path
    secrets: dict[str, str]
    variables: dict[str, str]

    def run(self, job: str, runner: Path, **extra: str) -> subprocess.CompletedProcess[str]:
        """The steps of a job, until one fails; `runner` becomes its home."""
        runner.mkdir()
        output = ""
        for step in WORKFLOW["jobs"][job]["steps"]:
            if "run" not in step or step["name"] == "Install":
                continue
            given = {**WORKFLOW["env"], **step.get("env", {})}
            env = {
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(runner),
                "TMPDIR": str(runner),
                "CI": "true",
                "PAUSE_S": "0",
                **{key: self._filled(str(value)) for key, value in given.items()},
                **extra,
            }
            script = runner / "step.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["sh", "-e", str(script)],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            output += done.stdout
            if done.returncode:
                break
        assert PASSPHRASE not in done.stdout + done.stderr
        assert not [
            path for path in runner.rglob("*") if path.name in ("account.json", "passphrase")
        ]
        return subprocess.CompletedProcess(job, done.returncode, output, done.stderr)

    def _filled(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            return {"secrets": self.secrets, "vars": self.variables}[match[1]][match[2]]

        return re.sub(r"\$\{\{ (\w+)\.(\w+) \}\}", value, text)

    def capdex(self, *args: str) -> str:
        """The author, at home."""
        done = CliRunner().invoke(
            program,
            [*args, "--network", "sepolia", "--json"],
            env={
                "CAPDEX_HOME": str(self.folder.parent / "author"),
                "CAPDEX_RPC_URL": self.rpc_url,
                "CAPDEX_PASSPHRASE_FILE": str(self.folder.parent / "phrase"),
            },
        )
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def call(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        request = urllib.request.Request(  # noqa: S310
            self.rpc_url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            return json.load(reply)["result"]

    @contextmanager
    def passing_time(self) -> Iterator[None]:
        """Blocks come by themselves, half a minute apart, as on a chain in a hurry."""
        done = Event()

        def pass_on() -> None:
            while not done.wait(0.2):
                self.call("evm_increaseTime", 30)
                self.call("evm_mine")

        thread = Thread(target=pass_on)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    @property
    def nonce(self) -> int:
        """How many transactions the account has sent."""
        return int(self.call("eth_getTransactionCount", self.address, "latest"), 16)

    @property
    def address(self) -> str:
        return str(json.loads(self.secrets["CAPDEX_KEYSTORE"])["address"])


@pytest.fixture
def ci(anvil: Any, tmp_path: Path) -> Ci:
    """A repository with two packages, signed at home for the account that CI publishes with."""
    folder = tmp_path / "repository"
    (folder / "packages").mkdir(parents=True)
    phrase = tmp_path / "phrase"
    phrase.touch(0o600)
    phrase.write_text(PASSPHRASE)
    ci = Ci(anvil.url, folder, {"CAPDEX_RPC_URL": anvil.url, "CAPDEX_PASSPHRASE": PASSPHRASE}, {})
    ci.variables = {
        "CAPDEX_IPFS": f"dir:{tmp_path / 'blocks'}",
        "CAPDEX_GATEWAY_URL": "",
    }
    made = json.loads(ci.capdex("account", "new", "--light", "--out", str(tmp_path / "ci.json")))
    ci.secrets["CAPDEX_KEYSTORE"] = (tmp_path / "ci.json").read_text()
    ci.call("anvil_setBalance", made["address"], hex(10**20))
    ci.capdex("keygen", "--light")
    with ci.passing_time():
        ci.capdex(
            *("deploy", "--yes", "--keystore", str(tmp_path / "ci.json")),
            *("--dir", str(tmp_path / "deployments")),
        )
    for name in ("tea-timer", "egg-timer"):
        path = str(folder / "packages" / f"{name}.acp.yaml")
        ci.capdex(
            "init",
            name,
            "--kind",
            "prompt",
            "--out",
            path,
            "--description",
            "Says when it is done.",
            "--yes",
        )
        ci.capdex("sign", path, "--publisher", made["address"])
    return ci


def test_the_workflow_is_one_that_github_understands() -> None:
    text = WORKFLOW["jobs"]
    assert set(WORKFLOW) == {"name", True, "permissions", "defaults", "env", "jobs"}  # on: is true
    assert WORKFLOW["defaults"]["run"]["shell"] == "sh -e {0}"
    for job in text.values():
        install = next(x for x in job["steps"] if x.get("name") == "Install")
        assert install["run"] == 'pip install "$REQUIREMENT"'
        for step in job["steps"]:
            assert ("uses" in step) is not ("run" in step)
            assert "${{" not in step.get("run", "")  # a value there would be code
    secrets = set(re.findall(r"(?:secrets|vars)\.(\w+)", PAGE))
    assert all(re.search(rf"^\| .* \| `{name}` \| ", PAGE, re.MULTILINE) for name in secrets)


@pytest.fixture
def claimed(ci: Ci) -> Ci:
    """The names are claimed at home, and CI's account may publish them."""
    owner = json.loads(ci.capdex("account", "new", "--light"))["address"]
    ci.call("anvil_setBalance", owner, hex(10**20))
    with ci.passing_time():
        for name in ("tea-timer", "egg-timer"):
            ci.capdex("claim", name, "--yes")
            ci.capdex("maintainer", "add", name, ci.address, "--yes")
    return ci


@on_sepolia
def test_a_pull_request_is_checked_and_a_push_is_published_once(
    claimed: Ci, tmp_path: Path
) -> None:
    ci = claimed
    before = ci.nonce
    checked = ci.run("check", tmp_path / "first")
    assert checked.returncode == 0, checked.stderr
    assert '"dry_run": true' in checked.stdout
    assert ci.nonce == before
    with ci.passing_time():
        published = ci.run("publish", tmp_path / "second")
        assert published.returncode == 0, published.stderr
        after = ci.nonce
        again = ci.run("publish", tmp_path / "third")
    assert again.returncode == 0, again.stderr
    assert ci.nonce == after > before
    for name in ("tea-timer", "egg-timer"):
        assert f"did:nuwa:cap:{name}@0.1.0" in published.stdout
        assert f"did:nuwa:cap:{name}@0.1.0" in again.stdout


@on_sepolia
def test_a_run_that_was_killed_is_continued_by_the_next(ci: Ci, tmp_path: Path) -> None:
    before = ci.nonce
    runner = tmp_path / "killed"
    runner.mkdir()
    keys = tmp_path / "keys"
    keys.mkdir()
    for name, text in (("a", ci.secrets["CAPDEX_KEYSTORE"]), ("p", PASSPHRASE)):
        (keys / name).touch(0o600)
        (keys / name).write_text(text)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "capdex", "publish", "--yes", "--network", "sepolia"),
            *("--keystore", str(keys / "a"), "--passphrase-file", str(keys / "p")),
            *map(str, sorted((ci.folder / "packages").iterdir())),
        ],
        env={
            **os.environ,
            "HOME": str(runner),
            "CAPDEX_RPC_URL": ci.rpc_url,
            "CAPDEX_IPFS": ci.variables["CAPDEX_IPFS"],
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while ci.nonce == before and process.poll() is None:
        time.sleep(0.05)
    process.kill()  # the names are reserved, nothing is published
    process.wait()
    reserved = ci.nonce
    assert reserved > before
    with ci.passing_time():
        done = ci.run("publish", tmp_path / "next")
        assert done.returncode == 0, done.stderr
    assert "did:nuwa:cap:tea-timer@0.1.0" in done.stdout


@on_sepolia
def test_other_bytes_under_a_published_version_stop_the_pull_request(
    claimed: Ci, tmp_path: Path
) -> None:
    ci = claimed
    with ci.passing_time():
        assert ci.run("publish", tmp_path / "first").returncode == 0
    path = ci.folder / "packages" / "tea-timer.acp.yaml"
    path.write_text(path.read_text().replace("Says when it is done.", "Says when it is ready."))
    ci.capdex("sign", str(path), "--publisher", ci.address)
    checked = ci.run("check", tmp_path / "second")
    assert checked.returncode == 1
    assert "VERSION_EXISTS" in checked.stderr


@on_sepolia
def test_only_what_is_unavailable_is_tried_again(ci: Ci, tmp_path: Path) -> None:
    down = ci.run("publish", tmp_path / "down", CAPDEX_RPC_URL="http://127.0.0.1:1")
    assert down.returncode == 3
    assert down.stderr.count("unavailable: try") == 4
    ci.call("anvil_setBalance", ci.address, "0x0")
    poor = ci.run("publish", tmp_path / "poor")
    assert poor.returncode == 4
    assert "unavailable: try" not in poor.stderr
    assert "EMPTY_ACCOUNT" in poor.stderr
