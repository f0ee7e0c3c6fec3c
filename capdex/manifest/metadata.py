"""The `metadata` section: NIP-7's fields and those of P10a."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import re2

from capdex.diagnostics import show
from capdex.errors import InvalidInput
from capdex.manifest.fields import Fields
from capdex.manifest.prompt_injection import plain
from capdex.manifest.tools import BUILT_IN
from capdex.manifest.urls import url_fault
from capdex.problems import Reason
from capdex.uri import CapabilityURI

MAX_TITLE_CHARS: Final = 128  # one line of a list
MAX_SUMMARY_CHARS: Final = 120  # CMP's one-liner
MAX_DESCRIPTION_BYTES: Final = 2048
MAX_TAGS: Final = 10
MAX_LANGUAGES: Final = 64
MAX_LANGUAGE_CHARS: Final = 35  # RFC 5646, 4.4.1
MAX_EXAMPLES: Final = 32
MAX_EXAMPLE_BYTES: Final = 1024
MAX_NAMES: Final = 64  # models, features or permissions named
MAX_WORD_CHARS: Final = 128
MAX_SCOPE_CHARS: Final = 128
MAX_DID_CHARS: Final = 512
WELL_KNOWN: Final = "/.well-known/"  # RFC 8615: files that speak for a whole host

DOMAINS: Final = (
    *("productivity", "knowledge", "weather", "travel", "finance", "communication"),
    *("development", "language", "health", "education", "media", "home", "data", "other"),
)
KNOWN: Final = (
    *("id", "name", "description", "triggers", "memory_scope", "permissions", "llm_requirements"),
    *("signature", "author", "publisher", "summary", "domain", "tags", "languages", "license"),
    *("homepage", "proof", "repository", "examples"),
)

LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*", re.ASCII)  # BCP 47, well-formed
CAIP10 = re.compile(r"[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}", re.ASCII)
EIP155 = re.compile(r"eip155:[1-9][0-9]{0,31}:0x[0-9a-fA-F]{40}", re.ASCII)


def read_id(metadata: Fields) -> CapabilityURI | None:
    """`metadata.id`: a capability URI with one exact version (NIP-7, P1)."""
    text = metadata.get("id", str, required=True)
    if text is None:
        return None
    try:
        return CapabilityURI.exact(text)
    except InvalidInput as error:
        metadata.findings.error(Reason.BAD_ID, metadata.at("id"), error.line, hint=error.fix)
        return None


def read_domain(metadata: Fields) -> str:
    """The domain, `other` where there is none or an unknown one."""
    domain = metadata.text("domain", most_chars=MAX_WORD_CHARS)
    if domain is None or domain in DOMAINS:
        return domain or "other"
    message = f"{show(domain)} is not one of the domains, so this counts as other"
    hint = metadata.findings.suggest(domain, DOMAINS) or f"domains are {', '.join(DOMAINS)}"
    metadata.findings.warn(Reason.BAD_VALUE, metadata.at("domain"), message, hint=hint)
    return "other"


def read_languages(metadata: Fields) -> tuple[str, ...]:
    """Language tags (BCP 47)."""
    languages = metadata.placed_texts(
        "languages", most=MAX_LANGUAGES, most_chars=MAX_LANGUAGE_CHARS
    )
    for path, language in languages.items():
        if not LANGUAGE.fullmatch(language):
            message = f"{show(language)} is not a valid language tag"
            metadata.findings.error(Reason.BAD_VALUE, path, message, hint="write en or zh-Hant")
    return tuple(languages.values())


def read_link(metadata: Fields, name: str) -> str | None:
    """A web address shown to people: http or https."""
    url = metadata.text(name, one_line=True)
    if url is not None and (complaint := url_fault(url, schemes=("https", "http"))):
        metadata.wrong(name, f"{name} is refused: {complaint}")
        return None
    return url


def read_proof(metadata: Fields, homepage: str | None) -> str | None:
    """`proof`: the https address, on the homepage's host, of a file that names name and publisher.

    None with a warning for another value: a proof never changes a verdict.
    """
    value: str | None = metadata.values.get("proof")
    if value is None or (complaint := _proof_fault(value, homepage)) is None:
        return value
    example = "https://example.com/.well-known/capdex.json"
    metadata.findings.warn(
        Reason.BAD_VALUE,
        metadata.at("proof"),
        f"proof is passed over: {complaint}",
        hint=f"write an address on the host of homepage, like {example}",
    )
    return None


def _proof_fault(proof: object, homepage: str | None) -> str | None:
    if not isinstance(proof, str):
        return "it is not text"
    if fault := url_fault(proof):
        return fault
    path = urlsplit(proof).path
    if not path.startswith(WELL_KNOWN):
        return f"its path does not begin with {WELL_KNOWN}"
    if not {".", ".."}.isdisjoint(unquote(path).split("/")):
        return "a part of its path is . or .., so it may lead elsewhere"
    if urlsplit(proof).netloc.lower() != urlsplit(homepage or "").netloc.lower():
        return "its host is not that of homepage"
    return None


def read_permissions(metadata: Fields) -> tuple[str, ...]:
    """`permissions.require`: the state verbs the capability uses."""
    fields = metadata.mapping("permissions")
    if fields is None:
        return ()
    fields.note_unknown(("require",))
    names = fields.placed_texts("require", most=MAX_NAMES, most_chars=MAX_WORD_CHARS)
    for path, name in names.items():
        if name not in BUILT_IN:
            message = f"{show(name)} is not a permission known here"
            hint = metadata.findings.suggest(name, BUILT_IN)
            metadata.findings.warn(Reason.BAD_VALUE, path, message, hint=hint)
    return tuple(names.values())


def read_llm_requirements(metadata: Fields) -> dict[str, Any]:
    """`llm_requirements` as written; its four known fields are checked."""
    fields = metadata.mapping("llm_requirements")
    if fields is None:
        return {}
    known = ("model_family", "specific_model_uri", "min_context_window", "required_features")
    fields.note_unknown(known)
    fields.texts("model_family", most=MAX_NAMES, most_chars=MAX_WORD_CHARS)
    fields.text("specific_model_uri", most_chars=2048, one_line=True)
    window = fields.get("min_context_window", int)
    if window is not None and window < 1:
        fields.wrong("min_context_window", "a context window has at least one token")
    fields.texts("required_features", most=MAX_NAMES, most_chars=MAX_WORD_CHARS)
    return fields.values


def read_examples(metadata: Fields, tools: Collection[str]) -> tuple[dict[str, Any], ...]:
    """`examples`: what a person says, and the tool call that should come of it."""
    examples = []
    for i, item in enumerate(metadata.items("examples", MAX_EXAMPLES)):
        fields = Fields.of(item, (*metadata.at("examples"), i), metadata.findings)
        if fields is None:
            continue
        fields.note_unknown(("say", "tool", "input"))
        say = fields.text("say", required=True, most_bytes=MAX_EXAMPLE_BYTES)
        tool = fields.text("tool", most_chars=MAX_WORD_CHARS)
        fields.get("input", dict)
        if tool is not None and tool not in tools:
            message = f"no tool is named {show(tool)}"
            path, hint = fields.at("tool"), metadata.findings.suggest(tool, tools)
            metadata.findings.warn(Reason.BAD_VALUE, path, message, hint=hint)
        if say is not None:
            examples.append(fields.values)
    return tuple(examples)


def read_publisher(metadata: Fields) -> str | None:
    """`metadata.publisher`: the publishing account as CAIP-10 (P6)."""
    publisher = metadata.text("publisher", most_chars=MAX_DID_CHARS, one_line=True)
    if publisher is None:
        return None
    shape = EIP155 if publisher.startswith("eip155:") else CAIP10
    if not shape.fullmatch(publisher):
        message = f"{show(publisher)} is not a CAIP-10 account"
        metadata.wrong("publisher", message, hint="write eip155:<chain id>:0x<address>")
    return publisher


# Marks of a registry, and the words beside them, on text as `plain` returns it. The last lines have
# *official* and *verified* in other languages: RE2 knows no borders of words in other scripts.
_IMITATION: Final = re2.compile(
    r"[✓✔✅☑🗸🗹⍻🛡⛨🔒🏅🎖🥇⭐★]"
    r"|\b(?:ver[il]f[il]ed|off[il]c[il]a[il]|aud[il]ted|cert[il]f[il]ed|endorsed|authent[il]c)\b"
    r"|\b(?:officiel|oficial|offiziell|ufficiale|verificad[oa]|verifiziert|verifie|certifie)\b"
    r"|官方|已验证|已驗證|已认证|已認證|認証済|検証済|официальн|проверено|رسمي|موثق"
)
_GAPS: Final = re.compile(r"(?<=\b\w)\W{1,3}(?=\w\b)")  # in `v e r i f i e d`
_STAND_INS: Final = str.maketrans("01345_ғєя", "oieas fer")  # none of Unicode's confusables
# Unicode's names of letters in a box, of small capitals, and of those with hooks and strokes.
_DRAWN: Final = re.compile(r"(?:.*LATIN|REGIONAL).* LETTER (?:SMALL CAPITAL )?(\w)(?: WITH .*)?")
_USED: Final = re2.compile(
    r"\b(?:using|uses?|via|against|follow(?:s|ing)?) (?:the )?(?:\w+['’]s )?"
    r"(?:\w+[ /-]){0,2}official\b"
)


def imitated_mark(text: str) -> str | None:
    """The mark or word of a title, summary or tag that a reader could take for a check's result.

    Letters that look like ASCII ones are read as such, too.
    """
    read = _USED.sub(" ", plain(text))
    match = _IMITATION.search(read) or _IMITATION.search(_as_seen(read))
    return match and str(match.group())


def _as_seen(text: str) -> str:
    """The text with plain letters for those drawn like them, and for digits; words unspaced."""
    known = unicodedata.normalize("NFKD", text).translate(_table()).upper().translate(_table())
    drawn = ((x, _DRAWN.fullmatch(unicodedata.name(x, ""))) for x in known)
    letters = "".join(m[1] if m else x for x, m in drawn if unicodedata.category(x)[0] != "M")
    return _GAPS.sub("", letters.lower().translate(_STAND_INS))


# The table is Unicode's confusables (UTS 39), cut to what looks like an ASCII letter or digit.
_WORD: Final = re.compile(r"[^\W_]+")


def deceptive_word(text: str) -> tuple[str, str] | None:
    """The first word of a name that reads as another, and that other; None when there is none.

    A word does if it mixes ASCII letters with letters that only look like such, or consists of the
    latter in a name that is otherwise ASCII: a name in Greek or Russian is not a deception.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    read_as = [word.translate(_table()) for word in words]
    otherwise_ascii = "".join(read_as).isascii() and any(x.isascii() and x.isalpha() for x in words)
    for word, seen in zip(words, read_as, strict=True):
        mixed = any(c.isascii() and c.isalpha() for c in word)
        if seen != word and (mixed or (seen.isascii() and otherwise_ascii)):
            return word, seen
    return None


@cache
def _table() -> dict[int, str]:
    document = json.loads(files("capdex").joinpath("data/confusables.json").read_text("utf-8"))
    rows: dict[str, str] = document["lookalikes"]
    return {int(code, 16): ascii_ for ascii_, codes in rows.items() for code in codes.split()}
