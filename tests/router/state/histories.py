"""Random histories of one object on several replicas, held against plain Python for each kind.

The oracle knows operations and which of them each operation had seen, and nothing of the encodings.
Where two writes of a register are concurrent it accepts either, as long as all replicas agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from capdex.json import Json
from capdex_router.state.object import StateObject
from capdex_router.state.strategies import Model, Strategy, model

KINDS = ("a/b", "mv", "text", "set", "map", "n", "flag", "log")
SCHEMA: Json = {
    "properties": {
        name: {"x-crdt": str(strategy)} for name, strategy in zip(KINDS, Strategy, strict=True)
    }
}
KEYS = ("k", "é/", "\0", "$inc")
VALUES: list[Any] = [0, 1.5, "x", None, [1, {"a": 2}], {"": True}, "日", False]


@dataclass(frozen=True, eq=False)
class Op:
    """One write of one field: what it was, what it made, and all that its replica knew."""

    name: str
    before: Any
    after: Any  # absent where the field was removed
    seen: frozenset[Op]


ABSENT = object()


@dataclass
class Replica:
    """A document, and the operations that it must show."""

    document: StateObject
    known: set[Op] = field(default_factory=set)
    times: set[float] = field(default_factory=set)
    deleted: bool = False


@dataclass(frozen=True)
class Sent:
    """An export, with what it must bring."""

    blob: bytes
    known: frozenset[Op]
    times: frozenset[float]
    deleted: bool


def run(seed: int) -> None:
    """Run one history; raises AssertionError where a replica shows what it must not."""
    random = Random(seed)  # noqa: S311 - random numbers here are not secret
    history = History(random)
    for _ in range(random.randint(3, 40)):
        history.step()
    history.finish()


class History:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.model: Model = model("did:nuwa:state:demo#v1", SCHEMA)
        self.clock = 1_000.0
        self.letters = iter(range(0x4E00, 0x9FFF))
        count = random.randint(2, 5)
        self.replicas = [
            Replica(StateObject(self.model, random.getrandbits(63) or 1)) for _ in range(count)
        ]
        self.sent: list[Sent] = []
        for replica in self.replicas[: random.randint(1, count)]:  # one id made on several
            self.create(replica)
        self.send(self.replicas[0])
        for replica in self.replicas:
            if not replica.known:
                self.receive(replica, self.sent[0])

    def step(self) -> None:
        replica = self.random.choice(self.replicas)
        match self.random.random():
            case x if x < 0.6 and not replica.deleted:
                self.write(replica)
            case x if x < 0.62 and not replica.deleted:
                self.clock += 1
                replica.document.delete(self.clock)
                replica.times.add(self.clock)
                replica.deleted = True
            case x if x < 0.8:
                self.send(replica)
            case _ if self.sent:  # also one that is long known, or older than what is known
                self.receive(replica, self.random.choice(self.sent))
        if self.random.random() < 0.2:
            peer = replica.document._peer
            replica.document = StateObject.load(self.model, peer, replica.document.stored())

    def finish(self) -> None:
        for replica in self.replicas:
            self.send(replica)
        last = self.sent[-len(self.replicas) :]
        for replica in self.replicas:
            for sent in self.random.sample(last * 2, len(last) * 2):
                self.receive(replica, sent)
        values = [replica.document.value() for replica in self.replicas]
        assert all(value == values[0] for value in values), values
        conflicts = [replica.document.conflicts() for replica in self.replicas]
        assert all(found == conflicts[0] for found in conflicts), conflicts

    def create(self, replica: Replica) -> None:
        self.clock += 1
        fields = self.random.sample(KINDS, self.random.randint(1, len(KINDS)))
        value = {name: self.other(name, ABSENT) for name in fields}
        peer = replica.document._peer
        replica.document = StateObject.create(self.model, peer, value, self.clock)
        self.note(replica, {}, value, fields)

    def write(self, replica: Replica) -> None:
        self.clock += 1
        old = replica.document.value()
        new = dict(old)
        touched = self.random.sample(KINDS, self.random.randint(1, 3))
        for name in touched:
            after = self.other(name, old.get(name, ABSENT))
            if after is ABSENT:
                new.pop(name, None)
            else:
                new[name] = after
        replica.document.write(new, touched, self.clock)
        self.note(replica, old, new, touched)
        self.check(replica)

    def note(self, replica: Replica, old: Json, new: Json, touched: Iterable[str]) -> None:
        seen = frozenset(replica.known)
        replica.times.add(self.clock)
        for name in touched:
            if name in old or name in new:
                before, after = old.get(name, ABSENT), new.get(name, ABSENT)
                replica.known.add(Op(name, before, after, seen))

    def send(self, replica: Replica) -> None:
        known, times = frozenset(replica.known), frozenset(replica.times)
        self.sent.append(Sent(replica.document.exported(), known, times, replica.deleted))

    def receive(self, replica: Replica, sent: Sent) -> None:
        replica.document.foreign(sent.blob)
        replica.document.merge(sent.blob)
        replica.known |= sent.known
        replica.times |= sent.times
        replica.deleted |= sent.deleted
        self.check(replica)

    def other(self, name: str, old: Any) -> Any:
        """Return another value for a field that its strategy accepts, or ABSENT."""
        random = self.random
        removed = random.random() < 0.1 and name not in ("set", "log")
        if removed and old is not ABSENT:
            return ABSENT
        match name:
            case "text":
                text = "" if old is ABSENT else old
                start = random.randint(0, len(text))
                end = random.randint(start, len(text))
                new = "".join(chr(next(self.letters)) for _ in range(random.randint(0, 3)))
                return text[:start] + new + text[end:]
            case "set":
                return [*([] if old is ABSENT else old), *random.sample(VALUES, 2)]
            case "map":
                entries = {} if old is ABSENT else dict(old)
                key = random.choice(KEYS)
                if key in entries and random.random() < 0.4:
                    del entries[key]
                else:
                    entries[key] = random.choice(VALUES)
                return entries
            case "n":
                return (0 if old is ABSENT else old) + random.randint(-5, 5)
            case "flag":
                return random.random() < 0.5
            case "log":
                return [*([] if old is ABSENT else old), *random.choices(VALUES, k=2)]
            case _:
                return random.choice(VALUES)

    def check(self, replica: Replica) -> None:
        """Compare a replica with what the oracle expects of its operations."""
        document = replica.document
        value, conflicts = document.value(), document.conflicts()
        assert document.deleted == replica.deleted
        assert document.changed == max(replica.times, default=0)
        assert value.keys() <= set(KINDS)
        for name in KINDS:
            shown = value.get(name, ABSENT)
            ops = [op for op in replica.known if op.name == name]
            CHECKS[name](ops, shown, conflicts)
            if name not in ("a/b", "mv"):
                check_mark(ops, shown)


def latest(ops: list[Op]) -> list[Op]:
    """The operations that no other one had seen."""
    return [op for op in ops if not any(op in other.seen for other in ops)]


def text_of(value: Any) -> str:
    return "absent" if value is ABSENT else repr(value)


def check_register(ops: list[Op], shown: Any, _: Json) -> None:
    expected = {text_of(op.after) for op in latest(ops)} or {"absent"}
    assert text_of(shown) in expected, (shown, expected)


def check_values(ops: list[Op], shown: Any, conflicts: Json) -> None:
    expected = [text_of(op.after) for op in latest(ops) if op.after is not ABSENT]
    found = [text_of(x) for x in conflicts.get("mv", () if shown is ABSENT else (shown,))]
    assert Counter(found) == Counter(expected)
    assert shown is ABSENT or text_of(shown) == found[0]


def check_text(ops: list[Op], shown: Any, _: Json) -> None:
    texts = [("" if op.after is ABSENT else op.after) for op in ops]
    gone = {
        c
        for op, after in zip(ops, texts, strict=True)
        if op.before is not ABSENT
        for c in set(op.before) - set(after)
    }
    text = "" if shown is ABSENT else shown
    assert len(set(text)) == len(text)
    assert set(text) == {c for one in texts for c in one} - gone
    for one in texts:  # the order that anybody saw stays
        assert [c for c in text if c in one] == [c for c in one if c in text]


def check_set(ops: list[Op], shown: Any, _: Json) -> None:
    expected = {text_of(item) for op in ops for item in op.after}
    found = [text_of(item) for item in ([] if shown is ABSENT else shown)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def check_map(ops: list[Op], shown: Any, _: Json) -> None:
    found = {} if shown is ABSENT else shown
    for key in KEYS:
        writes = []
        for op in ops:
            before, after = (
                ABSENT if x is ABSENT else x.get(key, ABSENT) for x in (op.before, op.after)
            )
            if text_of(before) != text_of(after):
                writes.append((op, after))
        last = latest([op for op, _ in writes])
        expected = {text_of(after) for op, after in writes if op in last and after is not ABSENT}
        if expected:
            assert text_of(found.get(key, ABSENT)) in expected
        else:
            assert key not in found


def check_counter(ops: list[Op], shown: Any, _: Json) -> None:
    sums = [[0 if x is ABSENT else x for x in (op.before, op.after)] for op in ops]
    assert (0 if shown is ABSENT else shown) == sum(after - before for before, after in sums)


def check_flag(ops: list[Op], shown: Any, _: Json) -> None:
    assert (shown is True) == any(op.after is True for op in latest(ops))


def check_log(ops: list[Op], shown: Any, _: Json) -> None:
    new = [
        text_of(item)
        for op in ops
        for item in op.after[0 if op.before is ABSENT else len(op.before) :]
    ]
    found = [text_of(item) for item in ([] if shown is ABSENT else shown)]
    assert Counter(found) == Counter(new)
    for op in ops:
        rest = iter(found)
        assert all(text_of(item) in rest for item in op.after), "a log keeps its order"


def check_mark(ops: list[Op], shown: Any) -> None:
    """An empty field is shown if it was written, and not if it was removed since."""
    if shown is ABSENT or not shown:
        possible = {op.after is not ABSENT for op in latest(ops)} or {False}
        assert (shown is not ABSENT) in possible


CHECKS = {
    "a/b": check_register, "mv": check_values, "text": check_text, "set": check_set,
    "map": check_map, "n": check_counter, "flag": check_flag, "log": check_log,
}  # fmt: skip
