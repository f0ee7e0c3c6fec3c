"""Files of packages that this node keeps within a budget: blocks, and a record for each file.

They lie beside the blocks of packages, in `files/`. The record is written before the blocks and
removed after them, so a killed process leaves no block that nothing counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final

import msgspec

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.manifest.resources import Resource
from capdex.net.files import unusable
from capdex.net.ipfs.block_store import BlockDirectory, files_of

DISK_BLOCK: Final = 4096  # bytes that the smallest file takes on common file systems


class KeptFile(msgspec.Struct, frozen=True):
    """The record of a file, kept for the package of a name; `blocks` has bytes by CID."""

    root: str
    owner: str
    name: str
    sha256: bytes
    blocks: dict[str, int]

    @property
    def size(self) -> int:
        """Bytes on disk, with the record."""
        sizes = (len(msgspec.json.encode(self)), *self.blocks.values())
        return sum(-(-max(x, 1) // DISK_BLOCK) * DISK_BLOCK for x in sizes)


class KeptFiles:
    """Files up to `budget` bytes on disk; the oldest of the owner who has the most goes first.

    All methods block, and may be called from any thread; they raise UsageError UNREADABLE.
    """

    def __init__(self, packages: BlockDirectory, budget: int) -> None:
        self.budget, self.blocks = budget, files_of(packages)
        self.bytes = 0
        self._records = self.blocks.path / "kept"
        self._kept: dict[str, KeptFile] = {}  # by root, the oldest first
        self._uses: Counter[str] = Counter()  # by block: files that share it
        self._owners: Counter[str] = Counter()  # bytes
        self._lock = Lock()

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._kept)

    def holds(self, root: Cid) -> bool:
        """True if the file of a CID is kept."""
        return root.text in self._kept

    def load(self) -> None:
        """Read the records, remove what is incomplete or in no record, and keep to the budget."""
        if not self.blocks.path.exists():
            return
        with self._changing():
            self._records.mkdir(exist_ok=True)
            for place in sorted(self._records.iterdir(), key=lambda x: x.stat().st_mtime_ns):
                try:
                    file = msgspec.json.decode(place.read_bytes(), type=KeptFile)
                    whole = all(self.blocks.holds(Cid.parse(x)) for x in file.blocks)
                except (msgspec.DecodeError, InvalidInput):  # cut off by a crash
                    whole = False
                if whole and file.root == place.name:
                    self._count(file, 1)
                else:
                    place.unlink()
            for place in self.blocks.path.glob("??/*"):
                if place.name not in self._uses:
                    place.unlink()
            self._make_room(0, "")

    def keep(
        self, owner: str, name: str, resource: Resource, blocks: Mapping[Cid, bytes], *, evict: bool
    ) -> bool:
        """Keep a checked file; False if it does not fit, with `evict` False into what is free."""
        sizes = {cid.v1.text: len(data) for cid, data in blocks.items()}
        file = KeptFile(resource.cid.text, owner, name, resource.sha256, sizes)
        with self._changing():
            if file.size + (0 if evict else self.bytes) > self.budget:
                return False
            if file.root not in self._kept:
                self._make_room(file.size, owner)
                self._records.mkdir(parents=True, exist_ok=True)
                (self._records / file.root).write_bytes(msgspec.json.encode(file))
                self._count(file, 1)
                try:
                    self.blocks.keep_many(list(blocks.items()))
                except BaseException:
                    self._remove(file)
                    raise
        return True

    def drop(self, unwanted: Callable[[KeptFile], bool]) -> None:
        """Remove the files for which `unwanted` is true."""
        with self._changing():
            for file in [x for x in self._kept.values() if unwanted(x)]:
                self._remove(file)

    def _make_room(self, size: int, owner: str) -> None:
        while self._kept and self.bytes + size > self.budget:
            has = self._owners + Counter({owner: size})
            largest = max(self._owners, key=lambda x: has[x])
            self._remove(next(x for x in self._kept.values() if x.owner == largest))

    def _remove(self, file: KeptFile) -> None:
        self._count(file, -1)
        for cid in file.blocks.keys() - self._uses.keys():
            self.blocks.remove(Cid.parse(cid))
        (self._records / file.root).unlink(missing_ok=True)

    def _count(self, file: KeptFile, by: int) -> None:
        """Count a file once more, or with `by` -1 no longer."""
        self.bytes += by * file.size
        self._owners[file.owner] += by * file.size
        self._uses.update(dict.fromkeys(file.blocks, by))
        if by > 0:
            self._kept[file.root] = file
            return
        del self._kept[file.root]
        for counter, keys in ((self._uses, file.blocks), (self._owners, (file.owner,))):
            for key in keys:
                if not counter[key]:
                    del counter[key]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except OSError as error:
            message = f"files of packages cannot be kept in {self.blocks.path}"
            fix = "check that it is writable and that the disk is not full"
            raise unusable(message, error, fix) from error
