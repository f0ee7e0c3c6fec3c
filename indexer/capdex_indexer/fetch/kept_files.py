"""Files of packages that this node keeps within a budget: blocks, and a record for each file.

They lie beside the blocks of packages, in `files/`. The record is written before the blocks and
removed after them, so a killed process leaves no block that nothing counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

from capdex.errors import Code, InvalidInput, UsageError
from capdex.ipld.cid import Cid
from capdex.manifest.resources import Resource
from capdex.net.ipfs.block_store import BlockDirectory

DISK_BLOCK: Final = 4096  # bytes that the smallest file takes on common file systems


def files_of(blocks: BlockDirectory) -> BlockDirectory:
    """Return the directory of the blocks of files, beside those of packages."""
    return BlockDirectory(blocks.path / "files")


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that is kept for the package of a name; `size` are bytes on disk, with its record."""

    root: Cid
    owner: str
    name: str
    sha256: bytes
    blocks: tuple[Cid, ...]
    size: int


class KeptFiles:
    """Files up to `budget` bytes on disk; the oldest of the owner who has the most goes first.

    All methods block, and may be called from any thread.
    """

    def __init__(self, packages: BlockDirectory, budget: int) -> None:
        self.budget, self.blocks = budget, files_of(packages)
        self.bytes = 0
        self._records = self.blocks.path / "kept"
        self._kept: dict[Cid, KeptFile] = {}  # the oldest first
        self._uses: Counter[Cid] = Counter()  # by block: files that share it
        self._owners: Counter[str] = Counter()  # bytes
        self._lock = Lock()

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._kept)

    def holds(self, root: Cid) -> bool:
        """True if the file of a CID is kept."""
        return root in self._kept

    def load(self) -> None:
        """Read the records, remove what is incomplete or in no record, and keep to the budget.

        Raises UsageError UNREADABLE.
        """
        if not self.blocks.path.exists():
            return
        with self._lock, _readable(self.blocks.path):
            self._records.mkdir(exist_ok=True)
            for place in sorted(self._records.iterdir(), key=lambda x: x.stat().st_mtime_ns):
                one = self._read(place)
                if one is None:
                    place.unlink()
                else:
                    self._count(one)
            counted = {cid.text for cid in self._uses}
            for place in self.blocks.path.glob("??/*"):
                if place.name not in counted:
                    place.unlink()
            self._make_room(0, "")

    def keep(
        self, owner: str, name: str, resource: Resource, blocks: Mapping[Cid, bytes], *, evict: bool
    ) -> bool:
        """Keep a checked file; False if it does not fit, with `evict` False into what is free.

        Raises UsageError UNREADABLE if the disk does not take it.
        """
        blocks = {_as_stored(cid): data for cid, data in blocks.items()}
        record = json.dumps(
            {
                "owner": owner,
                "name": name,
                "sha256": resource.sha256.hex(),
                "root": resource.cid.text,
                "blocks": {cid.text: len(data) for cid, data in blocks.items()},
            }
        )
        size = sum(_on_disk(len(x)) for x in (record, *blocks.values()))
        with self._lock, _readable(self.blocks.path):
            if size > self.budget or (not evict and self.bytes + size > self.budget):
                return False
            if resource.cid in self._kept:
                return True
            self._make_room(size, owner)
            self._records.mkdir(parents=True, exist_ok=True)
            place = self._records / resource.cid.text
            place.write_text(record, encoding="utf-8")
            one = KeptFile(resource.cid, owner, name, resource.sha256, tuple(blocks), size)
            self._count(one)
            try:
                self.blocks.keep_many(list(blocks.items()))
            except BaseException:
                self._remove(one)
                raise
        return True

    def drop(self, unwanted: Callable[[KeptFile], bool]) -> None:
        """Remove the files for which `unwanted` is true."""
        with self._lock, _readable(self.blocks.path):
            for one in [x for x in self._kept.values() if unwanted(x)]:
                self._remove(one)

    def _read(self, place: Path) -> KeptFile | None:
        try:
            said: Any = json.loads(place.read_bytes())
            root, sizes = Cid.parse(said["root"]), dict(said["blocks"])
            blocks = tuple(map(Cid.parse, sizes))
            size = sum(map(_on_disk, (place.stat().st_size, *sizes.values())))
            owner, name, sha256 = str(said["owner"]), str(said["name"]), said["sha256"]
            one = KeptFile(root, owner, name, bytes.fromhex(sha256), blocks, size)
        except (ValueError, KeyError, TypeError, InvalidInput):  # cut off by a crash
            return None
        whole = place.name == root.text and all(self.blocks.holds(x) for x in blocks)
        return one if whole else None

    def _count(self, one: KeptFile) -> None:
        self._kept[one.root] = one
        self._uses.update(one.blocks)
        self._owners[one.owner] += one.size
        self.bytes += one.size

    def _make_room(self, size: int, owner: str) -> None:
        while self._kept and self.bytes + size > self.budget:
            has = self._owners + Counter({owner: size})
            largest = max(self._owners, key=lambda one: has[one])
            self._remove(next(x for x in self._kept.values() if x.owner == largest))

    def _remove(self, one: KeptFile) -> None:
        del self._kept[one.root]
        self.bytes -= one.size
        self._owners[one.owner] -= one.size
        if not self._owners[one.owner]:
            del self._owners[one.owner]
        self._uses.subtract(one.blocks)
        for cid in one.blocks:
            if not self._uses[cid]:
                del self._uses[cid]
                self.blocks.remove(cid)
        (self._records / one.root.text).unlink(missing_ok=True)


def _on_disk(size: int) -> int:
    return -(-max(size, 1) // DISK_BLOCK) * DISK_BLOCK


def _as_stored(cid: Cid) -> Cid:
    return Cid.from_bytes(b"\x01\x70\x12\x20" + cid.digest) if cid.version == 0 else cid


class _readable:  # noqa: N801 - reads as a word of `with`
    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise UsageError(
                f"files of packages cannot be kept in {self._path}",
                Code.UNREADABLE,
                why=error.strerror or str(error),
                fix="check that it is writable and that the disk is not full",
            ) from error
