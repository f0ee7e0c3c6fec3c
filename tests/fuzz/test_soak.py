"""Fuzzing in small, and the fuzzer itself: what it must find, it finds and keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.load

SOAK = Path(__file__).with_name("soak.py")
COUNT = 20  # of each target
POISONED = 0.2  # below this, an input makes a target of `POISON` do what must not be

POISON = f"""
import os, signal
from target import Target

def spin():
    while True:
        pass

def eat():
    bytearray(1 << 30)

def crash():
    os.kill(os.getpid(), signal.SIGSEGV)

def fault():
    raise KeyError("not one of ours")

def of(what):
    def check(data):
        if float(data) < {POISONED}:
            what()
        return "fine"

    return Target(what.__name__, 1, lambda random: str(random.random()).encode(), check)

TARGETS = [of(spin), of(eat), of(crash), of(fault)]
"""
LEAK = """
from target import Target

held = []

def check(data):
    held.append(bytearray(100_000))
    return "held"

TARGETS = [Target("leak", 1, lambda random: b"", check)]
"""
SAID = {
    "spin": "it took more than 1 s of processor time",
    "eat": "MemoryError",
    "crash": "it ended the process (SIGSEGV)",
    "fault": "KeyError: 'not one of ours'",
}


def soak(*arguments: object, modules: Path) -> tuple[int, str]:
    """The exit status and the output of a run whose targets may come from `modules`."""
    run = subprocess.run(
        [sys.executable, str(SOAK), *map(str, arguments), "--blind"],
        env={**os.environ, "PYTHONPATH": str(modules)},
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    return run.returncode, run.stdout


def test_nothing_but_typed_errors_and_right_answers_comes_of_mutated_bytes(tmp_path: Path) -> None:
    seed = Random().randrange(2**32)  # noqa: S311 - the output names it
    status, output = soak(1000, "--keep", tmp_path, "--seed", seed, modules=tmp_path)
    assert (status, output.splitlines()[-1]) == (0, "1000 passed, 0 failed"), output


def test_whatever_takes_too_much_or_raises_what_it_must_not_is_found_and_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "poison.py").write_text(POISON)
    keep = tmp_path / "kept"
    status, output = soak(
        COUNT * len(SAID), "--keep", keep, "--targets", "poison", modules=tmp_path
    )
    poisoned = {
        f"{name}-1-{number}.bin": str(chance).encode()
        for name in SAID
        for number in range(COUNT)
        if (chance := Random(f"1/{name}/{number}").random()) < POISONED  # noqa: S311
    }
    assert {file.name: file.read_bytes() for file in keep.glob("*.bin")} == poisoned
    assert status == 1
    passed = COUNT * len(SAID) - len(poisoned)
    assert output.splitlines()[-1] == f"{passed} passed, {len(poisoned)} failed"
    for name, words in SAID.items():
        assert any(one.startswith(f"{name}-") for one in poisoned)
        assert output.count(words) == sum(one.startswith(f"{name}-") for one in poisoned)
    for file in poisoned:
        assert f"FAILED {keep / file}: " in output


def test_an_input_that_was_kept_fails_again(tmp_path: Path) -> None:
    (tmp_path / "poison.py").write_text(POISON)
    file = tmp_path / "input"
    again = ("--targets", "poison", "--again", "fault", file)
    file.write_bytes(b"0.1")
    assert soak(*again, modules=tmp_path)[0] != 0
    file.write_bytes(b"0.9")
    assert soak(*again, modules=tmp_path) == (0, "fine\n")


def test_memory_that_grows_with_the_inputs_is_found(tmp_path: Path) -> None:
    (tmp_path / "leak.py").write_text(LEAK)
    status, output = soak(1000, "--keep", tmp_path / "kept", "--targets", "leak", modules=tmp_path)
    assert status == 1
    assert "FAILED memory grew from" in output
    assert output.splitlines()[-1] == "999 passed, 1 failed"
