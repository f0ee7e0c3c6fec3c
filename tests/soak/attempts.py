"""What the soaks have in common: their arguments, and how an attempt and the whole are reported."""

# ruff: noqa: T201 - a script prints

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from nodes import Stuck

Attempt = Callable[[], tuple[str, list[str]]]


def arguments(doc: str) -> argparse.ArgumentParser:
    """COUNT, --seed and --verbose; a seed is drawn from the clock unless it is named."""
    parser = argparse.ArgumentParser(description=doc.split("\n", 1)[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbose", action="store_true")
    return parser


def attempt(work: Attempt, number: int, verbose: bool) -> bool:
    """Whether anything goes wrong in a piece of work that says what it did; it is printed."""
    try:
        what, wrong = work()
    except (Stuck, AssertionError) as stuck:
        what, wrong = "stuck", [str(stuck)]
    if wrong or verbose:
        print(f"{'FAILED' if wrong else 'ok'} {number}: {what}", *wrong, sep="\n    ", flush=True)
    return bool(wrong)


def conclude(count: int, failed: int) -> int:
    """Print the last line; the exit code."""
    print(f"{max(0, count - failed)} passed, {failed} failed")
    return 1 if failed else 0
