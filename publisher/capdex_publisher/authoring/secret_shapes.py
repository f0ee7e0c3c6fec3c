"""Texts of a package that look like secrets: keys of known services, by their names, or by chance.

A published package is public for good. Hashes, UUIDs, CIDs and DIDs are no secrets.
"""

from __future__ import annotations

import math
import re
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from capdex.diagnostics import Path, show, walk
from capdex.encoding.multiformats import decode_multibase
from capdex.errors import InvalidInput
from capdex.manifest.bindings.http_auth import SECRET_WORDS, is_secret_name

_KNOWN: Final = {
    "a private key": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n)*[\w+/=:, -]{16}",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,})",
    "a token of GitLab": r"\bgl(?:pat|dt|ft|imt|rt|rtr|soat|cbt|ffct|agent|oas)-[\w-]{20,}",
    "an access key of AWS": r"\bA(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}\b|\bABSK[\w+/]{100,}",
    "a key of OpenAI or Anthropic": r"\bsk-(?:[\w-]{0,40}-)?(?=\w*\d)\w{16}[\w-]*",
    "a key of Stripe": r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}",
    "a key of Google": r"\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,})",
    "a token of Slack": (
        r"\bxox[a-z]-(?=(?:[a-zA-Z_-]{,80}\d){3})[\w-]{20,}"
        r"|\bhooks\.slack\.com/\w+/[TE]\w+/\w+/[\w/]{16,}"
    ),
    "a token of Telegram": r"(?<!\d)\d{8,10}:AA[\w-]{33}",
    "a token of Discord": r"\b[MNO][A-Za-z\d]{23,25}\.[\w-]{6}\.[\w-]{27,}",
    "a webhook of Discord": r"\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,}/[\w-]{60,}",
    "a key of Azure": (
        r"\b(?:AccountKey|SharedAccessKey)=[\w+/]{40,}|(?<![\w.~-])[\w.~]{3}\dQ~[\w.~-]{31,34}(?![\w.~-])"
        r"|\bwebhook\.office\.com/webhookb2/[\w-]{36}@[\w-]{36}/\w+/\w{32}"
    ),
    "a token of Facebook": r"(?<!\d)\d{15,16}(?:\||%7C)[\w-]{27,40}(?![\w-])",
    "a token of npm or PyPI": r"\b(?:npm_\w{36}|pypi-[\w-]{50,})",
    "a token of Hugging Face": r"\bhf_[A-Za-z]{34}\b",
    "a key of SendGrid": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "a token of a service": (
        r"\b(?:do[opr]_v1_[0-9a-f]{64}|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|sbp_[0-9a-f]{40}|hvs\.[\w-]{24,}"
        r"|gsk_\w{40,}|pplx-\w{40,}|ntn_\w{40,}|dckr_pat_[\w-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
        r"|(?:key-|fc-|dapi)[0-9a-f]{32}\b|glptt-[0-9a-f]{40}|pat\w{14}\.[0-9a-f]{64}"
        r"|[0-9a-f]{32}-us\d{1,2}\b|(?:pul|rubygems|sntryu|xkeysib)[-_][0-9a-f]{40}|LTAI[A-Za-z0-9]{20}\b"
        r"|dt0c01\.\w{24}\.\w{40}|hvb\.[\w-]{100}|[ps]at\.\w{22}\.\w{24}\.\w{20}|\w{14}\.atlasv1\.[\w-]{40}"
        r"|s-s4t2(?:ud|af)-[0-9a-f]{64}|A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){4}-[A-Z0-9]{5}\b)"
    ),
    "a JSON Web Token": r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "a password": (
        r"\bcurl\b(?:[^\\\n]|\\.|\\\n){,200} (?:-u {0,2}|--user[ =]{1,2})[\"']?[\w.@-]*:[\"']?"
        r"(?!//)(?=[^\s\"']*(?:\d|[a-z][A-Z]))[^\s\"':$<>{}]{8,}"
    ),
    "a password in a URL": r"\b[a-z][a-z0-9+.-]{0,20}://([\w.~%-]*):(?!\1@)[^\s/?#@:\\\"'<>()\[\]{}|^]{4,}@(?!localhost\b|127\.)\w",
}
_SHAPES: Final = tuple((what, re.compile(pattern)) for what, pattern in _KNOWN.items())
_QUERY: Final = re.compile(r"[?&;]([\w.~-]+)=([^&#;\s\"'<>`)]+)")
_ASSIGNED: Final = re.compile(
    r"\b([\w-]{3,40})[\"']?\s*(?:[:=]|\bis\b)\s*[\"'`]?(?:(?i:Bearer|Basic|Token)\s+)?([\w+/=.~-]{12,}+)(?!\()"
)
_RANDOM: Final = re.compile(r"(?<!base64,)(?<![\w/+.:-])[\w-]{32,}(?![\w/+=.-])", re.ASCII)
_IN_PATH: Final = re.compile(r"(?<=/)[\w-]{20,}(?=[/?]|$)", re.ASCII)
_NAMES: Final = re.compile(
    r"(?:.*[-_.])?(?:token|(?:rapid)?api-?key|subscription-?key|pass(?:word|phrase|wd)|pwd"
    r"|private[-_]?key|credentials?)",
    re.IGNORECASE,
)
_WEAK_NAMES: Final = re.compile(r"(?:.*[-_.])?(?:key|app-?_?id|auth\w*|sig)", re.IGNORECASE)
_EXAMPLE: Final = re.compile(
    r"your|demo|example|sample|dummy|placeholder|change|insert|replace|secret|redacted|xxxx|\*\*\*"
    r"|\.\.\.|…|[{}<>\[\]$]|:pass|:token@|123456789|abcdef|000000|abc123|pass(?:word|wd)?123"
    r"|SflKxwRJSMeKKF2QT4fw",  # of the token of jwt.io
    re.IGNORECASE,
)
_PREFIXES: Final = re.compile("_test_|^AGE-SECRET-KEY-")  # words of keys that are no examples
_PUBLIC: Final = re.compile(  # a UUID, a CID, a DID's key, a hash
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:Qm|z)[1-9A-HJ-NP-Za-km-z]{34,}"
    r"|b[a-z2-7]{50,}|(?:0x)?[0-9a-fA-F]+|sha\d+-.*",
    re.ASCII,
)
_OWN: Final = ("id", "author", "publisher", "signature")  # of metadata: public by their nature
MIN_CHARS: Final = 8
MIN_BITS: Final = 3.0  # of a character of a key; of words there are fewer that differ


def secret_like(value: object) -> Iterator[tuple[Path, str]]:
    """Yield the path of each text in a package that looks like a secret, and why, never all of it.

    `value` is the package as JSON.
    """
    for path, text in walk(value):
        if isinstance(text, str) and not (path[:1] == ("metadata",) and path[-1] in _OWN):
            # In a schema the name of a value stands above these words.
            at = path[:-1] if path[-1:] in (("default",), ("const",)) else path
            name = at[-1] if at and isinstance(at[-1], str) else ""
            if path[-2:-1] in (("enum",), ("examples",)) and len(path) > 2:
                text = f"{path[-3]}: {text}"
            is_url = path[:1] == ("tool_bindings",) and path[-1] == "url"
            if why := _why(name, text) or (_chance(_IN_PATH, text, 20) if is_url else ""):
                yield path, why


def known_secret(text: str) -> str:
    """Return why a text seems to hold a secret of a known shape; else nothing."""
    for what, shape in _SHAPES:
        for match in shape.finditer(text):
            if not _is_example(_PREFIXES.sub("", match[0])):
                return _said(match[0], f"which looks like {what}")
    return ""


def _why(name: str, text: str) -> str:
    """Return why a text that stands under a name looks like a secret; else nothing."""
    if known := known_secret(text):
        return known
    for key, given in [(name, text), *_QUERY.findall(text)]:
        value = given.rpartition(" ")[2] if given.count(" ") == 1 else given  # `Bearer …`
        named = SECRET_WORDS.fullmatch(key) or _NAMES.fullmatch(key)
        plain = len(value) < MIN_CHARS or bool(re.search(r"[\s{}]|://", value))
        if plain or is_secret_name(value) or _is_example(value):
            continue
        if named and _is_coin(key, value):
            continue
        if named or (_WEAK_NAMES.fullmatch(key) and _is_random(value, 16)):
            return _said(value, f"and {show(key)} is the name of a secret")
    for key, value in _ASSIGNED.findall(text):
        named = SECRET_WORDS.fullmatch(key) or _NAMES.fullmatch(key)
        named = named or key.lower() == "authorization"
        if named and _is_random(value, 12) and not (_is_example(value) or _is_coin(key, value)):
            return _said(value, f"and {show(key)} is the name of a secret")
    return _chance(_RANDOM, text, 32)


def _chance(shape: re.Pattern[str], text: str, least: int) -> str:
    for match in shape.finditer(text):
        mixed = not match[0].islower() and not match[0].isupper()
        mixed = mixed and len(re.findall("[0-9]+", match[0])) > 2  # names have a date or a version
        public = _PUBLIC.fullmatch(match[0]) or _is_example(match[0])
        public = public or _is_address(match[0]) or _is_encoded(match[0])
        if mixed and _is_random(match[0], least) and not public:
            return _said(match[0], "which is as random as a key")
    return ""


def _said(secret: str, why: str) -> str:
    return f"this holds {show(secret[:4] + '…')} with {len(secret)} characters, {why}"


def _is_example(text: str) -> bool:
    return bool(_EXAMPLE.search(text)) or len(set(text[4:])) < 5


def _is_coin(name: str, text: str) -> bool:
    """True for the address of a token of a chain."""
    is_evm = re.fullmatch("0x[0-9a-fA-F]{40}", text) is not None
    return name.lower().endswith("token") and (is_evm or _is_address(text))


def _is_address(text: str) -> bool:
    """True for an account or a contract of a chain in base58, by its length or its checksum."""
    if not 25 < len(text) < 45:
        return False
    try:
        data = decode_multibase(f"z{text}")
    except InvalidInput:
        return False
    digest = sha256(sha256(data[:-4]).digest()).digest()
    return len(data) == 32 or (len(data) == 25 and data[-4:] == digest[:4])


def _is_encoded(text: str) -> bool:
    """True for words in base64 of which none is random: these hold no key."""
    try:
        said = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (ValueError, UnicodeDecodeError):
        return False
    return said.isprintable() and not any(_is_random(x, 12) for x in re.split(r"\W+", said))


def _is_random(text: str, least: int) -> bool:
    """True for letters and digits without an order, as words and dates are not."""
    if (
        len(text) < least
        or sum(x.isdigit() for x in text) < 3
        or sum(x.isalpha() for x in text) < 3
    ):
        return False
    counts = Counter(text).values()
    bits = -sum(x / len(text) * math.log2(x / len(text)) for x in counts)
    return bits >= MIN_BITS
