"""Read what an import is made of: a file or a URL, bounded in bytes, depth and time."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any, Final

import orjson
import yaml
from typing_extensions import override
from yaml.composer import Composer

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.limits import MAX_DEPTH
from capdex.net.files import unreadable
from capdex.yaml.scalars import TooManyDigits, resolve_plain
from capdex_publisher.authoring.imports.report import DOCUMENT, Note

MAX_SOURCE_BYTES: Final = 32 * 1024 * 1024
MAX_SOURCE_DEPTH: Final = 2 * MAX_DEPTH
MAX_SOURCE_NODES: Final = 3_000_000
TIMEOUT_S: Final = 30.0
WEB: Final = ("http://", "https://")
_PLAIN: Final = "plain"  # the tag of text without quotes
_MERGE: Final = "tag:yaml.org,2002:merge"
# Each match ends, with the text if need be, so that none is looked at again.
_TEXT: Final = rb'"(?:[^"\\]|\\.)*+(?:"|\Z)'
_COMMENT: Final = re.compile(_TEXT + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA: Final = re.compile(_TEXT + rb"|(?<=[\w\]}\"])(\s*+),(?=\s*+[\]}])", re.DOTALL)


async def read_source(source: str) -> tuple[bytes, str]:
    """Return the bytes of a file, or of an http(s) URL with the URL that it led to, else "".

    Raises UsageError UNREADABLE, InvalidInput TOO_LARGE, or Unavailable.
    """
    if not source.startswith(WEB):
        return read_file(Path(source)), ""
    import aiohttp

    from capdex.net.connection import proxy_of
    from capdex.net.rpc.aiohttp_transport import words_of

    name = shown(source)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(source, max_redirects=5, proxy=proxy_of(source)) as response,
        ):
            if response.status != 200:
                raise _unavailable(name, f"it answered with status {response.status}")
            data = bytearray()
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > MAX_SOURCE_BYTES:
                    raise _too_large(name)
            return bytes(data), str(response.url)
    except TimeoutError:
        raise _unavailable(name, f"it did not answer in {TIMEOUT_S:g} s") from None
    except (aiohttp.ClientConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise _unavailable(name, words_of(error, proxy_of(source))) from None
    except (aiohttp.ClientError, ValueError) as error:  # its text may have the whole URL
        raise _unavailable(name, type(error).__name__) from None


def shown(source: str) -> str:
    """Return a file as it is, and a URL without user, password and query, which may be keys."""
    if not source.startswith(WEB):
        return source
    scheme, _, rest = re.split("[?#]", source, maxsplit=1)[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; raises UsageError UNREADABLE or InvalidInput TOO_LARGE."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise unreadable(str(path), error.strerror or "") from None
    if len(data) > MAX_SOURCE_BYTES:
        raise _too_large(str(path))
    return data


def utf8(data: bytes) -> tuple[bytes, list[Note]]:
    """Return a text in UTF-8, and what was changed for it.

    A text in UTF-16 begins with a byte order mark; other bytes are taken for Latin-1, or for
    Windows-1252 where one of them is a control character to Latin-1.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        note = Note(DOCUMENT, "encoding", "changed", "UTF-16", "UTF-8")
        return data.decode("utf-16", "replace").encode(), [note]
    try:
        data.decode()
    except UnicodeDecodeError:
        name = "Windows-1252" if any(0x80 <= x < 0xA0 for x in data) else "Latin-1"
        note = Note(DOCUMENT, "encoding", "changed", name, "UTF-8")
        return data.decode(name, "replace").encode(), [note]
    return data, []


def parse(data: bytes, name: str) -> Any:
    """Return the value of JSON, with comments or without, or of YAML.

    Raises InvalidInput for what is neither, is too deep, or has a key twice in one object.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.lstrip().startswith(b"<"):
            fix = "give the address of what the page shows, such as https://HOST/openapi.json"
            raise _malformed(name, "it is a page or XML, and neither JSON nor YAML", fix) from None
        if not data.lstrip().startswith((b"{", b"[", b"//", b"/*")):
            return _checked(_parse_yaml(data, name), name)
        data = _LAST_COMMA.sub(_shortened, _COMMENT.sub(_shortened, data))
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise _malformed(name, f"it is not JSON: {error}") from None
    _checked(value, name)
    try:  # orjson takes the last of two
        json.loads(data, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except ValueError as error:
        raise _malformed(name, str(error)) from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError if a key stands twice."""
    keys = set[str]()
    for key, _ in pairs:
        if key in keys:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object")
        keys.add(key)


def _shortened(match: re.Match[bytes]) -> bytes:
    """Return a text of JSON as it is, and a space for a comment or a comma."""
    return match[0] if match[0].startswith(b'"') else b" "


class _BoundedLoader(Composer, yaml.CSafeLoader):
    """Composes in Python, within bounds: PyYAML's composer in C dies of a megabyte of `[`.

    An alias counts as all that it stands for, so that merged mappings are bounded, too. Plain text
    is read as that of a package: `no`, `12:30`, `2020-01-31` and `01` are text.
    """

    def __init__(self, data: bytes) -> None:
        yaml.CSafeLoader.__init__(self, data)
        Composer.__init__(self)
        self._depth = self._count = 0
        self._sizes: dict[str, int] = {}  # of what has an anchor

    @override
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        before = self._count
        self._depth += 1
        if self._depth > MAX_SOURCE_DEPTH:
            raise yaml.YAMLError(f"it nests deeper than {MAX_SOURCE_DEPTH} levels")
        node = super().compose_node(parent, index)
        self._depth -= 1
        is_alias = isinstance(event, yaml.AliasEvent)
        self._count += self._sizes.get(event.anchor, MAX_SOURCE_NODES) if is_alias else 1
        if self._count > MAX_SOURCE_NODES:
            raise yaml.YAMLError(f"with its aliases it has more than {MAX_SOURCE_NODES} values")
        if event.anchor and not is_alias:
            self._sizes[event.anchor] = self._count - before
        return node

    @override
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                key.tag = "tag:yaml.org,2002:str"  # as in JSON: 200, true and null, too
                key.value = sys.intern(key.value)  # PyYAML merges by identity: the first one holds
                if key.value in keys:
                    line = key.start_mark.line + 1
                    raise yaml.YAMLError(f"line {line}: {key.value[:80]!r} stands twice")
                keys.add(key.value)
        return node

    @override
    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _MERGE if value == "<<" else _PLAIN
        above: Any = super()
        return str(above.resolve(kind, value, implicit))


def _plain(_: Any, node: Any) -> Any:
    try:
        return resolve_plain(node.value)
    except TooManyDigits:
        pass
    try:
        return float(node.value)
    except ValueError:
        return math.inf


_BoundedLoader.add_constructor(_PLAIN, _plain)


def _parse_yaml(data: bytes, name: str) -> Any:
    try:
        return yaml.load(data, Loader=_BoundedLoader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError, ValueError, UnicodeError) as error:
        why = str(error).partition("\n")[0]
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            why = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise _malformed(name, f"it is neither JSON nor YAML: {why}") from None


def _checked(value: Any, name: str) -> Any:
    """Return a value; raises InvalidInput if it is too deep. Aliases are not followed twice."""
    level, seen = [value], set[int]()
    for _ in range(MAX_SOURCE_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict | list) and id(node) not in seen:
                seen.add(id(node))
                below += node.values() if isinstance(node, dict) else node
        level = below
        if not level:
            return value
    raise _malformed(name, f"it nests deeper than {MAX_SOURCE_DEPTH} levels")


def _malformed(
    name: str, why: str, fix: str = "correct the file, or export it again"
) -> InvalidInput:
    return InvalidInput(f"{name} cannot be read", why=why, fix=fix)


def _too_large(name: str) -> InvalidInput:
    what, why = f"{name} is too large", f"it has more than {MAX_SOURCE_BYTES} bytes"
    return InvalidInput(what, Code.TOO_LARGE, why=why, fix="give a smaller part of it")


def _unavailable(source: str, why: str) -> Unavailable:
    what, fix = f"{source} could not be fetched", "save it as a file, and give the file"
    return Unavailable(what, Code.SERVICE_UNAVAILABLE, why=why, fix=fix)
