"""guided.py TARGET COUNT SEED FOLDER MODULE …: inputs that coverage guides, by atheris (libFuzzer).

Run by soak.py, within the same bound on processor time. Prints a JSON line for each fault; the
input that is looked at, and how many were before it, stand in FOLDER/TARGET.at.
"""

# ruff: noqa: T201, S311, BLE001 - a script prints, random numbers here are not secret, every error is a finding

from __future__ import annotations

import json
import mmap
import signal
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["capdex"], enable_loader_override=False):
    import soak

    TARGETS = soak.targets(sys.argv[5:])

from mutation import MAX_BYTES, mutate_bytes

HEAD = soak.GUIDED_HEAD
ROOM = HEAD.size + 2 * MAX_BYTES


def main() -> None:
    name, count, seed, folder = sys.argv[1:5]
    (target,) = (x for x in TARGETS if x.name == name)
    place = Path(folder) / f"{name}.at"
    place.write_bytes(bytes(ROOM))
    with place.open("r+b") as file:
        at = mmap.mmap(file.fileno(), ROOM)
    done = faults = 0

    def look(data: bytes) -> None:
        nonlocal done, faults
        HEAD.pack_into(at, 0, done, len(data))
        at[HEAD.size : HEAD.size + len(data)] = data
        done += 1
        signal.setitimer(signal.ITIMER_PROF, soak.CPU_S)
        try:
            target.check(data)
        except (Exception, MemoryError):
            signal.setitimer(signal.ITIMER_PROF, 0)
            faults += 1
            if faults <= soak.MAX_DEATHS:
                kept = Path(folder) / f"{name}-{seed}-guided-{faults}.bin"
                kept.write_bytes(data)
                said = {"file": str(kept), "fault": traceback.format_exc(-4)}
                print(json.dumps(said), flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def change(data: bytes, max_size: int, salt: int) -> bytes:
        random = Random(salt)
        match random.randrange(4):
            case 0:
                return target.make(random)[:max_size]
            case 1:
                return bytes(atheris.Mutate(data, max_size))
            case _:
                return mutate_bytes(random, bytes(data), target.make(random))[:max_size]

    limits = [f"-max_len={MAX_BYTES}", "-malloc_limit_mb=256", "-rss_limit_mb=1024", "-verbosity=0"]
    runs = [f"-runs={count}", f"-seed={seed}", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, *runs], look, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
