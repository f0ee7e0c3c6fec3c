"""Exchange of objects by file: export on one machine, import or merge on another.

The file is lines of JSON: a header `{"format": "capdex-state/1", "owner": …}`, an object a line
(`scope`, `schema_uri`, `id` and, unless it was erased, its `document` in base64), and an end with
the number of objects and the sha256 of all before it. The hash shows accidents; the file is not
signed: merge only what comes from a machine of yours.
"""

from __future__ import annotations

import hashlib
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from capdex.errors import Code, InvalidInput
from capdex.net.files import overwriting, saying
from capdex_router.state import rows
from capdex_router.state.object import MAX_BLOB_BYTES, StateObject
from capdex_router.state.rows import DELETED, ERASED, LIVE, Run, Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import Model

FORMAT: Final = "capdex-state/1"
MAX_FILE_BYTES: Final = 1024**3
MAX_LINE_BYTES: Final = MAX_BLOB_BYTES // 3 * 4 + 4_096
# To read one object. Loro takes 10 s and 500 MB for 5 000 marks of a text, which are 46 KB, and a
# value that is nested 20 000 deep overflows its stack.
OBJECT_CPU_S: Final = 5
OBJECT_MEMORY_BYTES: Final = 256 * 1024 * 1024
_FILE: Final = "see that the path is right, who owns it, and that the disk is not full"


_Word = Annotated[str, Meta(min_length=1, max_length=rows.MAX_WORD_CHARS)]


class SyncEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An object for another installation; `document` is None for an erased one."""

    scope: _Word
    schema_uri: _Word
    id: _Word
    document: bytes | None = None


class Merged(NamedTuple):
    """The result of a merge: objects that were new, changed, and left as they were."""

    new: int
    changed: int
    same: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    owner: _Word


class _End(msgspec.Struct, forbid_unknown_fields=True):
    objects: int
    sha256: str


_decode: Final = msgspec.json.Decoder(SyncEntry).decode


def export(store: ObjectStore, owner: str, path: Path, *, public: bool = False) -> int:
    """Write the objects of an owner to a file for its user alone; return how many there are.

    `public` takes those alone whose schema says that they are public, for a file to pass on. Raises
    InvalidInput NOT_FOUND if nothing is kept of the owner: an older export stays then; UsageError
    UNREADABLE if the file cannot be written.
    """
    with store.database.reading() as run:
        if not _holds(run, owner):
            fix = "capdex state list shows what is kept"
            raise InvalidInput(f"nothing is kept of {owner}", Code.NOT_FOUND, fix=fix)
    found = entries(store, owner, public=public)
    with overwriting(path, 0o600) as stream, closing(found):
        return _write(stream, owner, found)


def merge(store: ObjectStore, path: Path, *, empty: bool = False) -> tuple[str, Merged]:
    """Merge the objects of a file, all or none; return their owner and the result.

    `empty` demands that the owner has no objects yet. Raises InvalidInput for a file that is
    truncated, altered or too large, and for a document that cannot be read or shares a peer number
    with one here; UsageError UNREADABLE.
    """
    with saying(f"{path.name} cannot be used", _FILE), path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size > MAX_FILE_BYTES:
            raise InvalidInput(
                "the file is too large",
                Code.TOO_LARGE,
                fix=f"a file of state has at most {MAX_FILE_BYTES} bytes: export fewer objects",
            )
        owner, objects = read(stream)
        return owner, merge_entries(store, owner, objects, empty=empty)


def judge(path: Path) -> None:
    """Read the objects of a file in a process of its own, which a hostile one ends.

    Raises InvalidInput TOO_LARGE for an object over the limits; what else is wrong, `merge` says.
    """
    command = (sys.executable, "-P", "-m", __name__, path.absolute())
    if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:  # noqa: S603 - ours
        raise InvalidInput(
            "the file of state has an object that cannot be read within bounds",
            Code.TOO_LARGE,
            why=f"one object has {OBJECT_CPU_S} s and {OBJECT_MEMORY_BYTES >> 20} MiB to be read",
            fix="nothing was changed: ask whoever sent the file to export it again",
        )


def main(path: str) -> None:
    """Read each object of a file on its own, within the limits of one."""
    _lower(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        held = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        _lower(resource.RLIMIT_AS, held * resource.getpagesize() + OBJECT_MEMORY_BYTES)
    with suppress(InvalidInput, OSError), Path(path).open("rb") as stream:
        for entry in read(stream)[1]:
            _lower(resource.RLIMIT_CPU, math.ceil(time.process_time()) + OBJECT_CPU_S)
            if entry.document is not None:
                StateObject.load(Model(entry.schema_uri), 1, entry.document).read_all()


def _lower(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (limit if hard < 0 else min(limit, hard), hard))


def entries(store: ObjectStore, owner: str, *, public: bool = False) -> Generator[SyncEntry]:
    """Yield all objects of an owner that have not expired, deleted and erased ones too.

    A deleted one of `public` is as an erased one: its content is not passed on.
    """
    with store.database.reading() as run:
        cursor = run(
            "SELECT scope, schema_uri, o.id, state, blob FROM collections"
            " JOIN objects o ON o.collection = number"
            " LEFT JOIN documents d ON d.collection = number AND d.id = o.id"
            " WHERE owner = ?1 AND (NOT ?2 OR visibility = 'public')"
            " AND NOT (state = 0 AND changed <= ?3 - ttl_s) IS TRUE"
            " ORDER BY scope, schema_uri, o.id",
            (owner, public, store.clock()),
        )
        for scope, uri, id_, state, blob in cursor:
            document = None
            if state == LIVE or (state == DELETED and not public):
                with _naming(id_):
                    document = StateObject.load(Model(uri), rows.new_peer(), blob).exported()
            yield SyncEntry(scope, uri, id_, document)


def merge_entries(
    store: ObjectStore, owner: str, objects: Iterable[SyncEntry], *, empty: bool = False
) -> Merged:
    """Merge objects, all or none; what `objects` raises passes upward, and nothing is merged.

    Nothing is refused for breaking a schema: such an object is served as not valid.
    """
    counts = {"new": 0, "changed": 0, "same": 0}
    now = store.clock()
    with store.database.writing() as run:
        if empty and _holds(run, owner):
            raise InvalidInput(f"{owner} has objects here", fix="use: capdex state merge")
        for entry in objects:
            with _naming(entry.id):
                counts[_merge(run, owner, entry, now)] += 1
    return Merged(**counts)


def _holds(run: Run, owner: str) -> bool:
    held = "SELECT 1 FROM objects JOIN collections ON collection = number WHERE owner = ?"
    return run(held, (owner,)).fetchone() is not None


def _merge(run: Run, owner: str, entry: SyncEntry, now: float) -> str:
    model, number = rows.collection(run, Space(owner, entry.scope), entry.schema_uri)
    state, blob, peer = run(
        "SELECT state, blob, peer FROM objects LEFT JOIN documents USING (collection, id)"
        " WHERE (collection, id) = (?, ?)",
        (number, entry.id),
    ).fetchone() or (None, None, None)
    if state == ERASED or (state == DELETED and entry.document is None):
        return "same"
    if state is None and entry.document is None:
        rows.erase(run, number, entry.id)
        return "new"
    peer = peer or rows.new_peer()
    document = StateObject(model, peer)
    if blob is not None:
        document.merge(blob)
    before = document.exported()
    if entry.document is None:
        # A file does not decide what goes for good: that is left to a purge here.
        document.delete(now)
    else:
        document.foreign(entry.document)
        document.merge(entry.document)
    if state is None and not document.deleted and document.changed <= rows.horizon(model, now):
        return "same"
    if state is not None and document.exported() == before:
        return "same"
    rows.put(run, number, entry.id, peer, document)
    return "new" if state is None else "changed"


@contextmanager
def _naming(id_: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise replace(error, message=f"object {id_[:64]!r}: {error.message}") from None


def _write(stream: IO[bytes], owner: str, objects: Iterable[SyncEntry]) -> int:
    hashed = hashlib.sha256()
    count = 0

    def line(value: msgspec.Struct) -> None:
        data = msgspec.json.encode(value) + b"\n"
        hashed.update(data)
        stream.write(data)

    line(_Header(FORMAT, owner))
    for entry in objects:
        line(entry)
        count += 1
    line(_End(count, hashed.hexdigest()))
    return count


def read(stream: IO[bytes]) -> tuple[str, Iterator[SyncEntry]]:
    """Return the owner and the objects of a file, which is checked to its end as they are taken.

    Raises InvalidInput, also from the iterator, for anything that `export` does not write.
    """
    first = _line(stream)
    try:
        header = msgspec.json.decode(first, type=_Header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad(f"its first line is not a header: {str(error)[:200]}") from None
    if header.format != FORMAT:
        raise _bad(f"its format is {header.format[:64]!r}, not {FORMAT}")
    return header.owner, _entries(stream, first)


def _entries(stream: IO[bytes], first: bytes) -> Iterator[SyncEntry]:
    hashed = hashlib.sha256(first)
    count = 0
    while True:
        data = _line(stream)
        if data.startswith(b'{"objects":'):
            break
        try:
            entry = _decode(data)
        except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
            raise _bad(f"object {count} cannot be read: {str(error)[:200]}") from None
        yield entry
        hashed.update(data)
        count += 1
    try:
        end = msgspec.json.decode(data, type=_End)
    except (msgspec.DecodeError, RecursionError):
        raise _bad("its last line cannot be read") from None
    if (end.objects, end.sha256) != (count, hashed.hexdigest()) or stream.read(1):
        raise _bad("its content is not what was exported")


def _line(stream: IO[bytes]) -> bytes:
    data = stream.readline(MAX_LINE_BYTES + 1)
    if len(data) > MAX_LINE_BYTES:
        raise InvalidInput(
            "the file of state has an object that is too large",
            Code.TOO_LARGE,
            fix="ask whoever sent the file to export it again",
        )
    if not data.endswith(b"\n"):
        raise _bad("it was cut off")
    return data


def _bad(why: str) -> InvalidInput:
    return InvalidInput("the file of state cannot be merged", why=why, fix="export it again")


if __name__ == "__main__":
    main(sys.argv[1])
