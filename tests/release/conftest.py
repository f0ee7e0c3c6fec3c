"""What `make dist` builds, and environments outside the checkout in which it is installed.

Both are made once, and shared by the processes of pytest-xdist.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ)  # as it was: tests see a cleaned one, but uv needs its cache
BIN = Path(sys.executable).parent


def build(folder: Path, **env: str) -> Path:
    """Run what `make dist` runs, into a folder."""
    if not (REPOSITORY / ".tools/dist/.done").exists():
        reason = "cyclonedx-py is missing: run `make .tools/dist/.done`"
        if ENVIRONMENT.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    command = [sys.executable, str(REPOSITORY / "release/build.py"), str(folder)]
    subprocess.run(command, check=True, env={**ENVIRONMENT, **env}, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`once(name, make)` is a folder that `make(folder)` fills, in one process of the run alone."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in ENVIRONMENT else base

    def get(name: str, make: Callable[[Path], Any]) -> Path:
        folder = shared / "release" / name
        folder.parent.mkdir(exist_ok=True)
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                draft = folder.with_suffix(".draft")
                shutil.rmtree(draft, ignore_errors=True)
                make(draft)
                draft.rename(folder)
        return folder

    return get


@pytest.fixture(scope="session")
def dist(once: Callable[..., Path]) -> Path:
    """The folder of a release."""
    return once("dist", build)


@pytest.fixture(scope="session")
def rebuild() -> Callable[..., Path]:
    """`rebuild(folder, **env)` builds a release again."""
    return build


@dataclass
class Installation:
    """A capdex that is installed, and a folder to use it in."""

    python: Path
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of a person who has nothing but this installation."""
        return {
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "CAPDEX_SEMANTIC": "0",
        }

    def __call__(self, *args: str, code: int = 0, **env: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [self.python.parent / "capdex", *args],
            cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def run_python(self, text: str) -> str:
        """What a program in this environment prints."""
        return subprocess.run(
            [self.python, "-c", text],
            cwd=self.folder, env=self.env, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip


@pytest.fixture(scope="session")
def environment(once: Callable[..., Path], dist: Path) -> Callable[[str], Path]:
    """`environment(extras)`: the Python of an environment with capdex, by the constraints."""
    [wheel] = dist.glob("*.whl")
    [constraints] = dist.glob("*-constraints.txt")
    version = wheel.name.split("-")[1]

    def install(folder: Path, extras: str) -> None:
        uv = str(BIN / "uv")
        command = [
            *(uv, "pip", "install", "--quiet", "--python", str(folder / "bin/python")),
            *("--find-links", str(dist), "--refresh-package", "capdex"),
            *("--constraint", str(constraints), f"capdex{extras}=={version}"),
        ]
        venv = [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(folder)]
        subprocess.run(venv, check=True, env=ENVIRONMENT)
        subprocess.run(command, check=True, env=ENVIRONMENT)

    def get(extras: str) -> Path:
        name = f"with{extras.strip('[]').replace(',', '-')}" if extras else "base"
        return once(name, lambda folder: install(folder, extras)) / "bin" / "python"

    return get


@pytest.fixture
def whole(environment: Callable[[str], Path], tmp_path: Path) -> Installation:
    """`capdex[node,local]` in an empty home."""
    (tmp_path / "whole").mkdir()
    return Installation(environment("[node,local]"), tmp_path / "whole")


@pytest.fixture
def base(environment: Callable[[str], Path], tmp_path: Path) -> Installation:
    """`capdex` without any extra."""
    (tmp_path / "base").mkdir()
    return Installation(environment(""), tmp_path / "base")
