"""The weights of the encoder are one file, which every process of a node maps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog

from capdex.search.encoder import SentenceEncoder
from capdex_indexer.query.search.mapped_encoder import FILE, MappedEncoder

TEXTS = ["Will it rain tomorrow?", "我想把美元换成欧元", ""]
MAPS = """
import sys
from pathlib import Path
from capdex_indexer.query.search.mapped_encoder import MappedEncoder

encoder = MappedEncoder(Path(sys.argv[1]))
encoder.encode(["rain"])
print(*[line for line in open("/proc/self/maps") if "weights" in line])
"""


@pytest.fixture(scope="module")
def expected() -> Any:
    """The vectors of the package itself."""
    return SentenceEncoder().encode(TEXTS)


def weights(encoder: MappedEncoder) -> list[Any]:
    """The arrays of the encoder's backend."""
    parts = vars(encoder._encoder._backend).values()
    several = [x for part in parts for x in (part if isinstance(part, list) else [part])]
    return [x for x in several if isinstance(x, np.ndarray)]


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None and not array.flags.writeable


def test_all_weights_are_a_read_only_map_and_give_the_vectors_of_the_package(
    tmp_path: Path, expected: Any
) -> None:
    for _ in range(2):  # the first one writes the file
        encoder = MappedEncoder(tmp_path / "search")
        assert np.array_equal(encoder.encode(TEXTS), expected)
        arrays = weights(encoder)
        assert sum(x.nbytes for x in arrays) > 70_000_000
        assert [x.shape for x in arrays if x.flags.writeable or not is_mapped(x)] == []


def test_two_processes_map_the_same_file(written: Path) -> None:
    def maps() -> list[str]:
        command = [sys.executable, "-c", MAPS, str(written)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()

    _, rights, _, _, inode, path = maps()
    assert (rights, path) == ("r--s", str(written / FILE))
    assert maps()[4] == inode == str((written / FILE).stat().st_ino)


@pytest.mark.parametrize("spoil", ["empty", "cut", "other array", "other version"])
def test_a_file_that_is_not_whole_or_of_another_version_is_written_again(
    tmp_path: Path, written: Path, expected: Any, spoil: str
) -> None:
    path = shutil.copy(written / FILE, tmp_path / FILE)
    if spoil == "empty":
        path.write_bytes(b"")
    elif spoil == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif spoil == "other array":
        np.save(path, np.zeros(1))
    else:
        older = MappedEncoder(tmp_path)
        older.identity = older.identity.replace(" 0", " 1")
        path.unlink()
        older.encode(TEXTS)
    assert np.array_equal(MappedEncoder(tmp_path).encode(TEXTS), expected)
    assert str(MappedEncoder(tmp_path).identity) in str(np.load(path)["identity"])


def test_where_the_file_cannot_be_written_the_weights_are_copied(
    tmp_path: Path, expected: Any
) -> None:
    (tmp_path / "file").touch()
    encoder = MappedEncoder(tmp_path / "file")
    with structlog.testing.capture_logs() as lines:
        assert np.array_equal(encoder.encode(TEXTS), expected)
    assert [line["event"] for line in lines] == ["the weights of the encoder are not shared"]
