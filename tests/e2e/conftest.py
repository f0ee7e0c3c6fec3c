"""The whole product as people run it: commands as processes, on real parts, in a folder of theirs.

Nothing here sleeps for a fixed time: `eventually` asks again until a deadline far away.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from tests.e2e.forks import Started, Warm, wait_until

T = TypeVar("T")

REPOSITORY = Path(__file__).resolve().parents[2]
CHAIN_ID = 31337


def load(name: str) -> ModuleType:
    """A module beside the tests: they are no packages, so they cannot import one another."""
    full = f"tests_{name.replace('/', '_')}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, REPOSITORY / "tests" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@dataclass
class Process:
    """A command that runs, in a process group of its own; what it said is kept in files."""

    popen: Started
    out: Path
    err: Path

    @property
    def stdout(self) -> str:
        return self.out.read_text("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.err.read_text("utf-8", "replace")

    def wait_for(self, condition: Callable[[], T], what: str) -> T:
        """As `wait_until`, and fails at once when the process ends."""

        def unless_ended() -> T:
            ended = self.popen.poll() is not None  # looked at first: it may end meanwhile
            value = condition()
            if not value and ended:
                pytest.fail(f"{self.popen.args!r} ended before {what}:\n{self.stderr[-3000:]}")
            return value

        return wait_until(unless_ended, what)

    def url(self) -> str:
        """Where a `capdex node` listens, once it says so."""

        def announced() -> str:
            for line in self.stderr.splitlines():
                if '"event":"listening"' in line.replace(" ", ""):
                    return str(json.loads(line)["url"])
            return ""

        return self.wait_for(announced, "it listened")

    def stop(self, number: int = signal.SIGINT, within: float = 30.0) -> int:
        """Signal the command alone, as Ctrl-C does, and give back its exit code."""
        self.popen.send_signal(number)
        return self.popen.wait(within)

    def kill(self) -> None:
        """SIGKILL to the whole process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.kill()  # a fork that does not lead its group yet
        self.popen.wait()


@dataclass
class Shell:
    """A folder to type `capdex …` in; streams are no terminals."""

    folder: Path
    env: dict[str, str]
    warm: Warm
    processes: list[Process] = field(default_factory=list)

    def __call__(self, *args: str, code: int | None = 0, **env: str) -> Any:
        """Run a command to its end; `code` is the exit code it must have (None: any)."""
        done = self.warm(args, self.folder, os.environ | self.env | env)
        said = f"capdex {' '.join(args)} → {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code is None or done.returncode == code, said
        assert "Traceback" not in done.stderr, said
        return done

    def json(self, *args: str, **env: str) -> Any:
        """The one JSON document on stdout of a command that succeeded."""
        return json.loads(self(*args, "--json", code=0, **env).stdout)

    def error(self, *args: str, code: int, **env: str) -> dict[str, Any]:
        """What a command that fails says, read from the three lines people see."""
        done = self(*args, code=code, **env)
        assert done.stdout == "", "a failure prints no result"
        return three_lines(done.stderr)

    def start(self, *args: str, **env: str) -> Process:
        """Start a command that runs until it is stopped."""
        number = len(self.processes)
        out, err = self.folder / f".out-{number}", self.folder / f".err-{number}"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            started = self.warm.start(
                args, self.folder, os.environ | self.env | env, stdout, stderr, session=True
            )
        self.processes.append(Process(started, out, err))
        return self.processes[-1]

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


def three_lines(said: str) -> dict[str, Any]:
    """The error a command ended with: its code, and what happened, why, and what to do."""
    lines = said.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("error[")), None)
    assert at is not None, f"no error is told:\n{said}"
    code, _, what = lines[at].removeprefix("error[").partition("]: ")
    told = {"code": code, "what": what}
    for line in lines[at + 1 :]:
        word, _, rest = line.strip().partition(": ")
        told[word] = rest
    for part in ("what", "why", "fix"):
        assert told.get(part) or told["code"] == "NOT_FOUND", f"no {part!r} is told:\n{said}"
    return told


@pytest.fixture
def open_shell(tmp_path: Path, warm: Warm) -> Iterator[Callable[..., Shell]]:
    """Make a shell in a folder of its own; whatever it started is killed at the end."""
    shells: list[Shell] = []

    def make(name: str = "here", **env: str) -> Shell:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        shells.append(Shell(folder, {"CAPDEX_HOME": str(folder / "home"), **env}, warm))
        return shells[-1]

    yield make
    for shell in shells:
        for process in shell.processes:
            process.kill()


@pytest.fixture
def shell(open_shell: Callable[..., Shell]) -> Shell:
    """One shell."""
    return open_shell()


@pytest.fixture
def network(shell: Any) -> dict[str, Any]:
    """A network of `capdex up` in the shell's folder."""
    (shell / "none").mkdir()
    ports = ("--port", "0", "--rpc-port", "0")
    process = shell.start("up", "--ipfs", "dir", "--examples", "none", *ports)

    def ready() -> Any:
        return json.loads(process.stdout) if process.stdout.endswith("}\n") else None

    found: dict[str, Any] = process.wait_for(ready, "it was ready")
    return found


@pytest.fixture
def examples_up(tmp_path: Path, warm: Warm) -> Iterator[Path]:
    """A directory in which `capdex up` runs, with `.venv/bin/capdex` as the README has it."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "capdex").symlink_to(warm.capdex)
    examples = ("--examples", str(REPOSITORY / "examples"))
    process = Shell(tmp_path, {}, warm).start("up", "--port", "0", "--rpc-port", "0", *examples)
    try:
        process.wait_for((tmp_path / ".capdex" / "up.json").exists, "it was ready")
        yield tmp_path
        process.stop()
    finally:
        process.kill()


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """As `wait_until`."""
    return wait_until


def fetch(url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """The status and body of one HTTP request."""
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture(scope="session")
def http() -> Callable[..., tuple[int, bytes]]:
    """`http(url)` gives the status and the body."""
    return fetch


@pytest.fixture(scope="session")
def rpc() -> Callable[..., Any]:
    """`rpc(url, method, *params)` calls a chain."""

    def call(url: str, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        status, answer = fetch(
            url, json.dumps(body).encode(), **{"Content-Type": "application/json"}
        )
        reply = json.loads(answer)
        assert status == 200, reply
        assert "error" not in reply, reply
        return reply["result"]

    return call


@pytest.fixture(scope="session")
def making() -> Any:
    """The builders of signed packages (tests/indexer/making.py)."""
    return load("indexer/making")


@dataclass
class Author:
    """A person with keys, money, a registry and a package folder; `shell` is set up for them."""

    shell: Shell
    address: str
    did: str
    registry: str
    rpc_url: str
    ipfs: str

    def start_node(self, db: str, *args: str) -> tuple[Process, str]:
        """A node over this registry, and its URL, which the shell uses from then on."""
        node = self.shell.start(
            "node", "--rpc-url", self.rpc_url, "--chain-id", str(CHAIN_ID), "--registry",
            self.registry, "--db", db, "--ipfs", self.ipfs, "--blocks", "node-blocks",
            "--port", "0", "--log-format", "json", *args,
        )  # fmt: skip
        url = node.url()
        self.shell.env |= {
            "CAPDEX_NODE_URL": url,
            "CAPDEX_MCP_URL": f"{url}/mcp",
            "CAPDEX_GATEWAY_URL": url,
        }
        return node, url

    def write(self, name: str, *, version: str = "0.1.0", description: str = "Tells it.") -> Path:
        """A package file of this author, not signed yet."""
        self.shell("init", name, "--kind", "prompt", "--description", description)
        path = self.shell / f"{name}.acp.yaml"
        path.write_text(path.read_text("utf-8").replace("@0.1.0", f"@{version}"), "utf-8")
        return path


@pytest.fixture
def begin(anvil: Any, rpc: Callable[..., Any]) -> Callable[..., Author]:
    """`begin(shell, ipfs)`: from nothing to an author who can publish, by the commands alone."""

    def go(shell: Shell, ipfs: str, *, funded: bool = True) -> Author:
        secret = shell / "passphrase"
        secret.write_text("correct horse battery staple\n", encoding="utf-8")
        secret.chmod(0o600)
        phrase = ("--passphrase-file", "passphrase", "--light")
        address = shell.json("account", "new", *phrase)["address"]
        did = shell.json("keygen", *phrase)["did"]
        shell.env |= {
            "CAPDEX_PASSPHRASE_FILE": str(secret),
            "CAPDEX_RPC_URL": anvil.url,
            "CAPDEX_CHAIN_ID": str(CHAIN_ID),
            "CAPDEX_IPFS": ipfs,
        }
        rpc(anvil.url, "anvil_setBalance", address, hex(10**18))
        deployment = shell.json("deploy", "--yes")
        shell.env |= {
            "CAPDEX_REGISTRY": deployment["registry"],
            "CAPDEX_START_BLOCK": str(deployment["block_number"]),
        }
        if not funded:
            rpc(anvil.url, "anvil_setBalance", address, "0x0")
        return Author(shell, address, did, deployment["registry"], anvil.url, ipfs)

    return go


@pytest.fixture(scope="session")
def chains() -> Any:
    """`chains.Registry.deploy(url)`: a registry to be filled fast (tests/e2e/chain.py)."""
    return load("e2e/chain")


@pytest.fixture(scope="session")
def indexes() -> Any:
    """What an index holds (tests/soak/contents.py)."""
    return load("soak/contents")


@pytest.fixture(scope="session")
def tampering() -> Any:
    """Every way to tamper with a proof document (tests/capdex/tampering.py)."""
    return load("capdex/tampering")
