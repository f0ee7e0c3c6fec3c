"""Bearer tokens: a file of names and tokens, or of names and SHA-256 of tokens."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from capdex.errors import Code, UsageError

MIN_TOKEN_CHARS: Final = 16  # shorter ones can be guessed
MAX_TOKENS: Final = 1000  # each request is compared with all
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 §2.1
_HASHED: Final = re.compile(r"sha256:([0-9a-f]{64})")


class Tokens:
    """The tokens of a node, kept as SHA-256; `name_of` compares in constant time."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = dict(names)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a file of lines `NAME TOKEN` or `NAME sha256:HEX`; raises UsageError.

        Empty lines and lines that begin with `#` are skipped.
        """
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(
                f"cannot read {path}", Code.UNREADABLE, why=why, fix="check the path"
            ) from None
        names: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                name, digest = _read_line(path, number, line)
                names[digest] = name
        if not names or len(names) > MAX_TOKENS:
            what = f"{path} must have 1 to {MAX_TOKENS} tokens"
            raise UsageError(what, Code.CONFIG, fix="write one a line")
        return cls(names)

    def name_of(self, token: bytes) -> str | None:
        """Return the name of a token, None for an unknown one."""
        given = hashlib.sha256(token).digest()
        matched = None
        for digest, name in self._names.items():  # all of them, so that the time says nothing
            if hmac.compare_digest(digest, given):
                matched = name
        return matched


def _read_line(path: Path, number: int, line: str) -> tuple[str, bytes]:
    words = line.split()
    if len(words) == 2:
        name, token = words
        if hashed := _HASHED.fullmatch(token):
            return name, bytes.fromhex(hashed[1])
        if _TOKEN.fullmatch(token) and len(token) >= MIN_TOKEN_CHARS:
            return name, hashlib.sha256(token.encode("ascii")).digest()
    raise UsageError(  # without the line, which may have a token in it
        f"{path}:{number} has no name and token",
        Code.CONFIG,
        why=f"a line is a name, a blank, and a token of {MIN_TOKEN_CHARS} or more characters"
        " or its sha256:HEX",
        fix="make a token with: openssl rand -hex 32",
    )
