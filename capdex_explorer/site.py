"""Values that pages are made from: parts of the node, a request, and the view that answers it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, InvalidInput
from capdex.json import Json
from capdex.uri import PREFIX, CapabilityURI
from capdex_explorer.samples import Samples
from capdex_service.http.parameters import pairs
from capdex_service.queries.reader import Reader

_ACCOUNT: Final = re.compile(r"0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class Site:
    """The parts that pages read.

    `status` returns the JSON of `/status`; `validate` returns the `verdict` and the `problems` of a
    package file that a client sent, and `close` ends what it uses.
    `block_explorers` are the sites that show a chain's blocks, by chain id.
    """

    reader: Reader
    status: Callable[[], Awaitable[Json]]
    validate: Callable[[bytes, str], Awaitable[Json]]
    close: Callable[[], Awaitable[None]]
    samples: Samples = field(default_factory=Samples)
    block_explorers: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page: parameters of the path and of the query, and the node's address.

    Parameters that no page knows are passed over: links on other sites carry them.
    """

    path: str
    parts: Mapping[str, str]
    query: Mapping[str, tuple[str, ...]]
    base: str
    form: Mapping[str, bytes] = field(default_factory=dict)
    client: str = ""  # the text by which its client is counted

    @classmethod
    def read(cls, path: str, parts: Mapping[str, str], query: bytes, base: str) -> PageRequest:
        """Read a request; raises InvalidInput for a query that is not UTF-8 or has NUL."""
        fields: dict[str, tuple[str, ...]] = {}
        for name, value in pairs(query):
            if "\0" in value:
                raise InvalidInput(f"{name[:64]} has a NUL character")
            fields[name] = (*fields.get(name, ()), value)
        return cls(path, parts, fields, base)

    def text(self, name: str, default: str = "") -> str:
        """Return the first value of a parameter without white space around it."""
        return self.query.get(name, (default,))[0].strip()

    def values(self, name: str) -> tuple[str, ...]:
        """Return all values of a parameter that are not empty."""
        return tuple(value for value in self.query.get(name, ()) if value.strip())

    def number(self, name: str, default: int, most: int = 10**15) -> int:
        """Return a parameter that is a whole number from 1; raises InvalidInput."""
        text = self.text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 15 or not 1 <= int(text) <= most:
            raise InvalidInput(f"{name} is not a whole number from 1 to {most}")
        return int(text)

    def before_event(self) -> tuple[int, int] | None:
        """Return the block and log index that the page before ended with; None for the first."""
        block = self.number("before", 0)
        return (block, self.number("log", 0)) if block else None

    def events_page(self, events: list[Json], most: int) -> Json:
        """Return the first `most` events of a history, and the addresses of its other pages."""
        shown, older = events[:most], None
        if len(events) > most:
            block, log = shown[-1]["block_number"], shown[-1]["log_index"]
            older = self.address(before=str(block), log=str(log) if log else None)
        newest = self.address(before=None, log=None) if self.text("before") else None
        return {"events": shown, "newest_events": newest, "older_events": older}

    def address(self, **changes: str | Sequence[str] | None) -> str:
        """Return the path with the query and these changes of it; None removes a parameter."""
        query = {key: list(value) for key, value in self.query.items() if any(value)}
        for key, value in changes.items():
            query.pop(key, None)
            if value:
                query[key] = [value] if isinstance(value, str) else list(value)
        return self.path + (f"?{urlencode(query, doseq=True)}" if query else "")


class CacheTag(NamedTuple):
    """What a cached page depends on: a name (empty: many), and a block that is to become final."""

    name: str
    final_at: int | None = None


NO_TAG: Final = CacheTag("")


@dataclass(frozen=True, slots=True)
class View:
    """What answers a request: a template and its data, which are the page's JSON, too.

    It depends on the index alone, as its `cache_tag` says, unless it is `live`: then it must
    not be stored. `linked_data` is its JSON-LD, `feed` is the address of its feed,
    `canonical` is its address if it has several.
    """

    template: str
    title: str
    data: Json
    description: str = ""
    status: int = 200
    live: bool = False
    linked_data: Json | None = None
    feed: str = ""
    canonical: str = ""
    cache_tag: CacheTag = NO_TAG


Page = Callable[[Site, PageRequest], Awaitable[View]]


class FormRefused(Exception):
    """A form was refused by an error, which is shown on the page of the form as it was filled in.

    The template of the `view` gets the error as `refused`.
    """

    def __init__(self, error: CapdexError, view: View) -> None:
        super().__init__(str(error))
        self.error, self.view = error, view


def is_uri(text: str) -> bool:
    """Return whether a person means a capability URI: it has the prefix, or a version after @."""
    return text.startswith(PREFIX) or "@" in text


def account_in(text: str) -> str | None:
    """Return the account (EIP-55) that a text names in any case; None for any other text."""
    return checksum_address(bytes.fromhex(text[2:])) if _ACCOUNT.fullmatch(text) else None


def address_of(uri: CapabilityURI) -> str:
    """Return the address of the release that a URI means, or of its name without a version."""
    return f"/c/{uri.name}" + (f"/{quote(str(uri.selector))}" if uri.selector else "")


def not_found(what: str, fix: str = "") -> InvalidInput:
    """Return the error of an address that names nothing."""
    return InvalidInput(what, Code.NOT_FOUND, fix=fix or "search for it")


def release_tag(release: Json) -> CacheTag:
    """Return the cache tag of a page about a release, which is in the JSON of answers.

    What became of the name that replaces a deprecated one is on its pages, too.
    """
    chain = release["chain"]
    if release["status"]["replaced_by"]:
        return NO_TAG
    waits = chain["finality"] != "finalized"
    return CacheTag(release["name"], chain["block_number"] if waits else None)
