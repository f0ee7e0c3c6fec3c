"""One object as a CRDT document (Loro), in which each field merges by its strategy. Pure.

A dot is `peer:n` and names one write. The encodings, and the rules that NIP-8 leaves open:

    lww_register   map field -> JSON                the later write in Lamport order, ties by peer
    mv_register    map dot -> JSON                  a write deletes the dots that it saw; the value
                                                    shown is that of the lowest dot
    rga_text       text                             a change is one splice between the common ends
    grow_only_set  map canonical JSON -> true       sorted by canonical JSON; nothing is removed
    or_map         map [key, dot] -> JSON           an addition wins over a concurrent removal
    counter        map peer -> sum                  integers; a change adds the difference
    flag           map dot -> true                  true wins over a concurrent false
    log_rga        list                             appended to; nothing is edited or removed

Names of fields are escaped, since Loro panics at `/`, NUL and empty names. An empty field is shown
only where its mark says that it was written, so containers that only one replica made are equal to
missing ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import quote

import loro
import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.state import fields
from capdex_router.state.strategies import Model, Strategy

MAX_BLOB_BYTES: Final = 4 * 1024 * 1024  # of one object with its history
MAX_FOREIGN_WRITES: Final = 400_000  # more than an object has; as items of a list they take 3 s
_AGAIN: Final = "take an export of it anew, or delete the object for good (mode: hard)"
MAX_TIME_S: Final = 1e11  # since 1970


class StateObject:
    """A document of a model; `peer` is a 64-bit number that no other live writer of it has."""

    def __init__(self, model: Model, peer: int) -> None:
        self.model = model
        self._peer = peer
        self._doc = _new()
        self._doc.peer_id = peer
        self._dots = 0

    @classmethod
    def create(cls, model: Model, peer: int, value: Json, now: float) -> Self:
        """Return a new document with a value; raises InvalidInput for what a strategy refuses."""
        made = cls(model, peer)
        made._change({}, value, frozenset(value), now)
        return made

    @classmethod
    def load(cls, model: Model, peer: int, blob: bytes) -> Self:
        """Return the document of an export; raises InvalidInput for anything else."""
        made = cls(model, peer)
        made.merge(blob)
        return made

    @property
    def deleted(self) -> bool:
        """True once any replica deleted the object: that wins over every change."""
        with _guarded():
            return bool(fields.values(self._doc.get_map("meta")).get("deleted"))

    @property
    def changed(self) -> float:
        """The latest change by any replica, in seconds since 1970; time to live counts from it."""
        with _guarded():
            times = fields.values(self._doc.get_map("changed")).values()
        known = (float(x) for x in times if isinstance(x, int | float) and 0 <= x <= MAX_TIME_S)
        return max(known, default=0.0)

    def value(self) -> Json:
        """Return the merged value; content that no write of ours makes is left out."""
        merged: Json = {}
        with _guarded():
            registers = fields.values(self._doc.get_map("registers"))
            marks = fields.values(self._doc.get_map("marks"))
            for name, text in registers.items():
                if self.model.strategy(name) is Strategy.LWW_REGISTER:
                    merged[name] = fields.parsed(text)
            for name, strategy in self.model.strategies.items():
                if strategy is not Strategy.LWW_REGISTER:
                    shown = fields.SHOWN[strategy](self._root(name, strategy))
                    empty = strategy in fields.EMPTY and shown == fields.EMPTY[strategy]
                    merged[name] = fields.MISSING if empty and name not in marks else shown
        return {name: merged[name] for name in sorted(merged) if merged[name] is not fields.MISSING}

    def conflicts(self) -> dict[str, list[Any]]:
        """Return the values of each multi-value register that has several, lowest dot first."""
        conflicts = {}
        for name, strategy in self.model.strategies.items():
            if strategy is Strategy.MV_REGISTER:
                with _guarded():
                    dots = fields.values(self._root(name, strategy))
                values = [fields.parsed(dots[dot]) for dot in sorted(dots)]
                if len(values) > 1:
                    conflicts[name] = [value for value in values if value is not fields.MISSING]
        return conflicts

    def write(self, new: Json, touched: Collection[str], now: float) -> None:
        """Write the fields of `new` that are `touched`; a missing one is removed.

        Raises InvalidInput, after which the document is not to be used.
        """
        self._change(self.value(), new, touched, now)

    def delete(self, now: float) -> None:
        """Delete the object on all replicas; its content stays until it is purged."""
        with _guarded():
            self._doc.get_map("meta").insert("deleted", True)
            self._stamp(now)

    def stored(self) -> bytes:
        """Return the document with its history, quick to load; raises InvalidInput TOO_LARGE."""
        return self._export(loro.ExportMode.Snapshot())

    def exported(self) -> bytes:
        """Return the document for other replicas: uncompressed, so that its size is bounded."""
        return self._export(loro.ExportMode.Updates(_nothing()))

    def merge(self, blob: bytes) -> None:
        """Take over the changes of a blob of `stored` or `exported`, known ones again.

        Raises InvalidInput for a blob that is truncated, altered or too large.
        """
        if len(blob) > MAX_BLOB_BYTES:
            raise _too_large(len(blob))
        with _guarded():
            status = self._doc.import_(blob)
        if status.pending:
            raise InvalidInput(
                "the document cannot be read", why="a part of its history is missing", fix=_AGAIN
            )

    def read_all(self) -> None:
        """Read every value of the document, also those that no field shows."""
        with _guarded():
            self._doc.get_deep_value()

    def foreign(self, blob: bytes) -> None:
        """Check a blob that another installation exported, before it is merged.

        Raises InvalidInput if it is compressed (its size would not be bounded), has more than
        MAX_FOREIGN_WRITES writes (a few bytes each, and much memory once imported), or has changes
        under the peer number of this document that this document never made: two writers share a
        number then, and nothing after that would converge.
        """
        if len(blob) > MAX_BLOB_BYTES:
            raise _too_large(len(blob))
        with _guarded():
            about = loro.LoroDoc.decode_import_blob_meta(blob, True)
            if about.mode != loro.EncodedBlobMode.Updates:
                raise InvalidInput(
                    "the document cannot be read", why="it is not a list of changes", fix=_AGAIN
                )
            writes = (peer_span.counter for peer_span in about.partial_end_vv.sub_iter(_nothing()))
            if (count := sum(write.end - write.start for write in writes)) > MAX_FOREIGN_WRITES:
                raise InvalidInput(f"the document has {count} writes", Code.TOO_LARGE, fix=_AGAIN)
            theirs = about.partial_end_vv.get_last(self._peer)
            if theirs is None:
                return
            ours = self._doc.oplog_vv.get_last(self._peer)
            twin = _new()
            twin.import_(blob)
            span = loro.IdSpan(self._peer, loro.CounterSpan(0, theirs + 1))
            shared = ours is not None and ours >= theirs
            if not shared or _writes(self._doc, span) != _writes(twin, span):
                raise InvalidInput(
                    "the document has changes under the number of this installation, which it "
                    "never made",
                    why="a copy of this installation's state was written to elsewhere",
                    fix="export it there again after the router has started there once",
                )

    def _export(self, mode: loro.ExportMode) -> bytes:
        with _guarded():
            blob = self._doc.export(mode)
        if len(blob) > MAX_BLOB_BYTES:
            raise _too_large(len(blob))
        return blob

    def _root(self, name: str, strategy: Strategy) -> Any:
        key = f"{strategy}:{quote(name, safe='')}"
        if strategy is Strategy.RGA_TEXT:
            return self._doc.get_text(key)
        return self._doc.get_list(key) if strategy is Strategy.LOG_RGA else self._doc.get_map(key)

    def _change(self, old: Json, new: Json, touched: Collection[str], now: float) -> None:
        with _guarded():
            for name in sorted(touched):
                if name in old or name in new:
                    self._write(name, old.get(name, fields.MISSING), new.get(name, fields.MISSING))
            self._stamp(now)
        self.exported()  # what can be kept can be sent, though it is kept compressed

    def _write(self, name: str, old: Any, new: Any) -> None:
        strategy = self.model.strategy(name)
        if strategy is Strategy.LWW_REGISTER:
            registers = self._doc.get_map("registers")
            if new is fields.MISSING:
                registers.delete(name)
            else:
                registers.insert(name, fields.text(new))
            return
        root = self._root(name, strategy)
        if strategy is Strategy.MV_REGISTER:
            self._replace_dots(root, None if new is fields.MISSING else fields.text(new))
            return
        empty = fields.EMPTY[strategy]
        before, after = (empty if value is fields.MISSING else value for value in (old, new))
        fields.check(name, strategy, before, after)
        marks = self._doc.get_map("marks")
        if new is not fields.MISSING:
            marks.insert(name, True)
        elif name in fields.values(marks):
            marks.delete(name)
        match strategy:
            case Strategy.RGA_TEXT:
                fields.splice(root, before, after)
            case Strategy.GROW_ONLY_SET:
                for item in map(fields.text, after):
                    root.insert(item, True)
            case Strategy.OR_MAP:
                self._write_map(root, before, after)
            case Strategy.COUNTER:
                key = str(self._peer)
                own = fields.values(root).get(key, 0)
                root.insert(key, fields.count(own + after - before))
            case Strategy.FLAG:
                self._replace_dots(root, True if after else None)
            case Strategy.LOG_RGA:
                for item in after[len(before) :]:
                    root.push(fields.text(item))

    def _write_map(self, root: Any, before: Json, after: Json) -> None:
        seen: dict[str, list[str]] = {}
        for key, _, name in fields.entries(root):
            seen.setdefault(key, []).append(name)
        for key in sorted(before.keys() | after.keys()):
            new = fields.text(after[key]) if key in after else None
            if new is None or key not in before or fields.text(before[key]) != new:
                for name in seen.get(key, ()):
                    root.delete(name)
                if new is not None:
                    root.insert(fields.text([key, self._dot()]), new)

    def _replace_dots(self, root: Any, new: str | bool | None) -> None:
        """Delete the dots that this write saw, then add its own."""
        for dot in fields.values(root):
            root.delete(dot)
        if new is not None:
            root.insert(self._dot(), new)

    def _dot(self) -> str:
        # Each dot takes an operation of this peer, so the numbers after a commit begin beyond all.
        last = self._doc.oplog_vv.get_last(self._peer)
        self._dots += 1
        return f"{self._peer:016x}:{(0 if last is None else last + 1) + self._dots:08x}"

    def _stamp(self, now: float) -> None:
        times = self._doc.get_map("changed")
        key = str(self._peer)
        if fields.values(times).get(key) == now:  # Loro leaves out a write of the same value
            now = math.nextafter(now, math.inf)
        times.insert(key, now)
        self._doc.commit()
        self._dots = 0


@contextmanager
def _guarded() -> Iterator[None]:
    """Turn Loro's errors and panics, which are no `Exception`, into InvalidInput."""
    try:
        yield
    except BaseException as error:
        if type(error) is BaseException or type(error).__name__ == "PanicException":
            raise InvalidInput(
                "the document cannot be read", why=str(error)[:200], fix=_AGAIN
            ) from None
        raise


# The stub of Loro leaves its constructors untyped.
def _new() -> loro.LoroDoc:
    return loro.LoroDoc()  # type: ignore[no-untyped-call]


def _nothing() -> loro.VersionVector:
    return loro.VersionVector()  # type: ignore[no-untyped-call]


def _too_large(size: int) -> InvalidInput:
    return InvalidInput(
        f"the object has {size} bytes with its history; at most {MAX_BLOB_BYTES} are kept",
        Code.TOO_LARGE,
        fix="create a new object with what is needed, delete this one, run: capdex state purge",
    )


def _writes(doc: loro.LoroDoc, span: loro.IdSpan) -> list[Any]:
    """Return what a span wrote to maps: two writers did so at other places, or with other times.

    Loro joins and divides operations on texts and lists as it likes, so these are left out.
    """
    changes = orjson.loads(doc.export_json_in_id_span(span))
    operations = (operation for change in changes for operation in change["ops"])
    return [operation for operation in operations if operation["container"].endswith(":Map")]
