"""The soaks in small, as people run them: real nodes, real chains, both databases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent


def soak(script: str, *arguments: object) -> None:
    """Run a script with a seed of its own; it says which where it fails."""
    seed = Random().randrange(2**32)  # noqa: S311 - the output names it
    command = [sys.executable, str(HERE / script), *map(str, arguments), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    said = f"--seed {seed}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, said
    passed, word, failed, _ = done.stdout.splitlines()[-1].split()
    assert (word, failed, int(passed) > 0) == ("passed,", "0", True), said


def test_killed_at_any_moment_a_node_loses_and_doubles_nothing(database: str) -> None:
    soak("kill.py", 4, "--releases", 100, "--db", database)


def test_after_any_reorganisation_an_index_is_the_one_built_from_nothing(database: str) -> None:
    soak("reorg.py", 3, "--db", database)


def test_killed_at_any_write_an_installation_is_the_old_or_the_new() -> None:
    soak("install.py", 10)


def test_killed_at_any_write_the_folder_of_a_skill_is_the_old_or_the_new() -> None:
    soak("skills.py", 10)


def test_lists_of_files_that_lie_cost_a_bounded_amount_and_no_one_else_a_file() -> None:
    soak("files.py", 20)


def test_two_unlike_nodes_have_the_same_digest_at_every_block() -> None:
    soak("two_nodes.py", 100)


@pytest.mark.load
def test_hostile_connections_keep_a_node_from_nothing() -> None:
    soak("connections.py", 1100)  # more than the node has descriptors


def test_endpoints_that_misbehave_delay_a_node_and_never_mislead_it() -> None:
    soak("rpc.py", 3, "--seconds", 1.5, "--only", "mixed")


def test_refusals_seen_in_public_delay_a_node_and_never_mislead_it() -> None:
    soak("rpc.py", 1, "--seconds", 5, "--only", "refused")


def test_objects_of_state_converge_and_survive_kills() -> None:
    soak("state.py", 100)


def test_killed_at_any_write_a_reader_answers_as_one_that_builds_its_search() -> None:
    soak("search.py", 4)
