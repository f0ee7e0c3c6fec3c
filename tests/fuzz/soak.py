"""soak.py COUNT [--seed SEED] [--keep FOLDER] [--only TARGET …]: fuzz what strangers send.

COUNT inputs are split over the targets by their shares. They run in a child process which the
kernel ends at an input that takes over 1 s of processor time or 256 MiB more memory; its place is
taken by another. Such an input, and one that raised what it must not, is kept in FOLDER as
TARGET-SEED-NUMBER.bin. A seed and a number make the same input again:

    soak.py --again TARGET FILE

Where atheris is installed, a tenth as many inputs follow that coverage guides. The last line is
`N passed, N failed`.
"""

# ruff: noqa: T201, S311, BLE001 - a script prints, random numbers here are not secret, every error is a finding

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import mmap
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from target import ROOT, Target

CPU_S = 1.0
MEMORY_BYTES = 256 * 1024 * 1024
GROWTH_BYTES = 24 * 1024 * 1024  # from a tenth of the inputs to the last one
MANY = 1000  # fewer inputs say nothing about growth
MAX_DEATHS = 20  # of children, a target: then it is given up
GUIDED = 10  # where atheris is installed, one more input in so many is guided by coverage
GUIDED_HEAD = struct.Struct("<QQ")  # inputs so far, and the length of the one that follows
MODULES = ("packages", "identifiers", "cars", "signatures", "chain")
NUMBER = struct.Struct("<Q")


@dataclass
class Outcome:
    """What became of a target's inputs."""

    words: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    memory: list[int] = field(default_factory=list)


def targets(modules: Sequence[str]) -> list[Target]:
    return [target for name in modules for target in importlib.import_module(name).TARGETS]


def make(target: Target, seed: int, number: int) -> bytes:
    return target.make(Random(f"{seed}/{target.name}/{number}"))


# the child ----------------------------------------------------------------------------------------


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - not a path of ours
        return int(statm.read().split()[1]) * resource.getpagesize()


def bound_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        held = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def work(target: Target, seed: int, first: int, last: int, folder: Path) -> None:
    """Run the inputs from `first` up to `last`; one JSON line for each fault, one at the end."""
    words: Counter[str] = Counter()
    memory, slowest_s = [], 0.0
    with (folder / f"{target.name}.at").open("r+b") as file, mmap.mmap(file.fileno(), 8) as at:
        make(target, seed, first)  # what is built once is built before the bounds are set
        bound_memory()
        for number in range(first, last):
            data = make(target, seed, number)
            NUMBER.pack_into(at, 0, number)
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, CPU_S)  # SIGPROF ends the process
            try:
                words[target.check(data)] += 1
            except (Exception, MemoryError):
                signal.setitimer(signal.ITIMER_PROF, 0)
                words["FAULT"] += 1
                print(json.dumps({"number": number, "fault": traceback.format_exc(-4)}), flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            slowest_s = max(slowest_s, time.process_time() - started)
            if number in (first + (last - first) // 10, last - 1):
                memory.append(resident())
    print(json.dumps({"words": words, "slowest_s": slowest_s, "memory": memory}), flush=True)


# the parent ---------------------------------------------------------------------------------------


def soak(target: Target, modules: Sequence[str], seed: int, count: int, folder: Path) -> Outcome:
    """Run `count` inputs of a target, in as many child processes as it takes."""
    outcome = Outcome()
    first = deaths = 0
    place = folder / f"{target.name}.at"
    while first < count and deaths < MAX_DEATHS:
        place.write_bytes(bytes(8))
        command = [sys.executable, __file__, "0", "--child", target.name, str(first), str(count)]
        command += ["--seed", str(seed), "--keep", str(folder), "--targets", *modules]
        child = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
        finished = False
        for line in child.stdout.decode().splitlines():
            said = json.loads(line)
            if "fault" in said:
                note(outcome, target, seed, said["number"], said["fault"], folder)
            else:
                finished = True
                outcome.words.update(said["words"])
                outcome.slowest_s = max(outcome.slowest_s, said["slowest_s"])
                outcome.memory = said["memory"]
        if finished:
            break
        deaths += 1
        number = NUMBER.unpack(place.read_bytes())[0]
        outcome.words["passed before an end"] += max(0, number - first)
        note(outcome, target, seed, number, how_it_ended(child.returncode), folder)
        first = number + 1
    if len(outcome.memory) == 2 and count >= MANY:
        before, after = outcome.memory
        if after - before > GROWTH_BYTES:
            outcome.faults.append(f"memory grew from {before >> 20} to {after >> 20} MiB")
    return outcome


def guide(target: Target, modules: Sequence[str], seed: int, count: int, folder: Path) -> Outcome:
    """Run `count` inputs that coverage guides (guided.py), until one ends the process."""
    outcome = Outcome()
    command = [sys.executable, str(Path(__file__).with_name("guided.py")), target.name]
    command += [str(count), str(seed), str(folder), *modules]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    for line in child.stdout.decode().splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            outcome.faults.append(f"{said['file']}: {said['fault']}")
    place = (folder / f"{target.name}.at").read_bytes()
    done, length = GUIDED_HEAD.unpack_from(place)
    outcome.words["guided by coverage"] = done + 1
    if child.returncode:
        kept = folder / f"{target.name}-{seed}-guided.bin"
        kept.write_bytes(place[GUIDED_HEAD.size : GUIDED_HEAD.size + length])
        outcome.faults.append(f"{kept}: {how_it_ended(child.returncode)}")
    return outcome


def how_it_ended(status: int) -> str:
    if status == -signal.SIGPROF:
        return f"it took more than {CPU_S:g} s of processor time"
    return f"it ended the process ({signal.Signals(-status).name if status < 0 else status})"


def note(outcome: Outcome, target: Target, seed: int, number: int, why: str, folder: Path) -> None:
    kept = folder / f"{target.name}-{seed}-{number}.bin"
    kept.write_bytes(make(target, seed, number))
    outcome.faults.append(f"{kept}: {why}")


def report(target: Target, count: int, seed: int, outcome: Outcome, took_s: float) -> None:
    memory = " → ".join(str(size >> 20) for size in outcome.memory)
    print(
        f"{target.name:10s} {count} inputs, seed {seed}, {len(outcome.faults)} failed, "
        f"{took_s:.0f} s" + (f", slowest {outcome.slowest_s:.2f} s, {memory} MiB" if memory else "")
    )
    print("  " + ", ".join(f"{word} {n}" for word, n in outcome.words.most_common()))
    for fault in outcome.faults:
        print(f"  FAILED {fault}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--targets", nargs="+", default=list(MODULES))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--blind", action="store_true", help="no inputs guided by coverage")
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    chosen = {target.name: target for target in targets(given.targets)}
    if given.again:
        name, file = given.again
        print(chosen[name].check(Path(file).read_bytes()))
        return 0
    if given.child:
        name, first, last = given.child
        work(chosen[name], given.seed, int(first), int(last), given.keep)
        return 0
    folder = given.keep or Path(tempfile.mkdtemp(prefix="soak-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {name: x for name, x in chosen.items() if not given.only or name in given.only}
    whole = sum(target.share for target in chosen.values())
    passed = failed = 0
    for target in chosen.values():
        count = max(1, given.count * target.share // whole)
        runs = [(soak, count)]
        if importlib.util.find_spec("atheris") and not given.blind:
            runs.append((guide, -(-count // GUIDED)))
        for run, size in runs:
            started = time.monotonic()
            outcome = run(target, given.targets, given.seed, size, folder)
            report(target, size, given.seed, outcome, time.monotonic() - started)
            failed += len(outcome.faults)
            passed += max(0, size - len(outcome.faults))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
