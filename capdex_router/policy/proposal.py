"""The proposal: what is about to happen, as one value that cannot change. Pure.

A person is asked by its text. What a yes grants, the line of the audit log and the key of an answer
that comes later are made of the same value, so nothing can be granted that was not shown.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, Literal

import orjson

from capdex.json import Json
from capdex_router.model.requests import HostRequest, MountedRequest, ProcessRequest, Request
from capdex_router.policy.grants import EVERY_TOOL, Grant
from capdex_router.policy.permissions import MAX_PART_CHARS, line, target
from capdex_router.policy.quoting import escaped, quoted, shortened, tree, visible

INSTALL: Final = "install"  # the target of the grant by which a package is offered at all
DAY_S: Final = 86_400.0

Kind = Literal["call", "grant", "install", "learn", "mount", "remove", "upgrade"]


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that a tool does: the right that it needs (empty for none), and how it is shown.

    The first line is for the audit log, too; the others show what else is sent.
    """

    target: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that a person has to agree to.

    `summary` is one sentence of ours. `digest` is that of the content that runs, `signer` who
    signed it. `command` is what a person runs to agree outside of the agent's host. `input` is the
    canonical JSON of a call's input, without secrets; `input_sha256` is over the input itself.
    `changes` say what is new to what was agreed to before, `facts` are further lines of ours,
    `words` those of its author by label. A yes grants `granted` to `tool`, for `days` or for as
    long as the content is the same. Raises ValueError if it would grant what no access shows.
    """

    kind: Kind
    summary: str
    capability_id: str
    version: str
    digest: str
    command: tuple[str, ...]
    signer: str = ""
    tool: str = EVERY_TOOL
    accesses: tuple[Access, ...] = ()
    input: bytes | None = None
    input_sha256: str | None = None
    changes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    granted: tuple[str, ...] = ()
    days: float | None = None

    def __post_init__(self) -> None:
        if not {access.target for access in self.accesses}.issuperset(self.granted):
            raise ValueError("a proposal grants only what it shows")

    @property
    def key(self) -> bytes:
        """The sha256 of all of it: an answer counts for the proposal with this key alone."""
        value = asdict(self) | {"input": None if self.input is None else self.input.decode()}
        return hashlib.sha256(sorted_json(value)).digest()

    @property
    def lines(self) -> tuple[str, ...]:
        """Every line of ours, in the order in which a person should read them."""
        return tuple(self.rows())

    def rows(self) -> Iterator[str]:
        """Yield the lines one by one: an input may have very many."""
        yield from self.changes
        for access in self.accesses:
            yield from access.lines
        if self.input is not None:
            yield "input:" if self.input != b"{}" else "input: nothing"
            yield from (f"  {row}" for row in tree(orjson.loads(self.input)))
        yield from self.facts
        if self.signer:
            yield f"signed by: {shortened(self.signer)}"
        yield f"content: sha256 {self.digest}"
        same = "as long as the content is the same"
        lasting = same if self.days is None else f"for {self.days:g} days"
        yield from (f"granted {lasting}: {escaped(right)}" for right in self.granted)

    def grants(self, now: float) -> list[Grant]:
        """Return what a yes at a time (seconds since 1970) grants."""
        until = None if self.days is None else now + self.days * DAY_S
        return [
            Grant(self.capability_id, self.digest, self.tool, right, until)
            for right in self.granted
        ]

    def audited(self) -> Json:
        """Return what the audit log says of it."""
        entry: Json = {
            "capability_id": self.capability_id,
            "version": self.version,
            "digest": self.digest,
            "touches": [access.lines[0] for access in self.accesses],
            "asked": list(dict.fromkeys(access.target for access in self.accesses)),
        }
        more = {"signer": self.signer, "input_sha256": self.input_sha256}
        return entry | {name: value for name, value in more.items() if value}

    def to_json(self) -> Json:
        """Return it for programs: what is asked, and the lines of the question."""
        return {**self.audited(), "kind": self.kind, "summary": self.summary,
                "lines": list(self.lines), "command": shlex.join(self.command)}  # fmt: skip


def accessed(request: Request, given: Json | None = None, tool: str = "") -> Access:
    """Return the access of a request; `given` is the input of the call that makes it."""
    prefix = f"{tool}: " if tool else ""
    return Access(target(request), tuple(f"{prefix}{row}" for row in _shown(request, given)))


def _shown(request: Request, given: Json | None) -> Iterator[str]:
    yield line(request)
    if isinstance(request, ProcessRequest) and request.folder:
        does = "may change" if request.writable else "reads"
        yield f"  {does} the folder {quoted(request.folder, MAX_PART_CHARS)}"
    if isinstance(request, MountedRequest):
        yield f"  the command of this server: {line(ProcessRequest(request.argv))}"
    if not isinstance(request, HostRequest):
        return
    if request.query:
        yield f"  with the query {shortened(request.query, MAX_PART_CHARS)}"
    for name, value in request.headers:
        yield f"  with the header {escaped(name)}: {quoted(value, MAX_PART_CHARS)}"
    for secret, place in request.secrets:
        where = place if place.startswith(("query ", "cookie ")) else f"header {place}"
        yield f"  with the secret {escaped(secret)} in the {visible(where)}"
    if request.body is not None:
        try:
            body = orjson.loads(request.body)
        except orjson.JSONDecodeError:  # a form
            yield f"  with the form {shortened(request.body.decode())}"
            return
        if sorted_json(body) == sorted_json(given):  # in Python true equals 1, and 1 equals 1.0
            yield "  with the input as its JSON body"
        else:
            yield "  with an empty JSON body" if body in ({}, []) else "  with the JSON body:"
            yield from (f"    {row}" for row in tree(body))


def sorted_json(value: object) -> bytes:
    """Return a value as JSON with its keys in order."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
