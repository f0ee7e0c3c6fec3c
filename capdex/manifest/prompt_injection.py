"""Text that may steer a model behind its user's back: found, scored, labelled, never cleared.

Every string of a package is read as a model reads it: NFKC, format characters removed. The rules
are shapes that public write-ups of prompt injection and tool poisoning show, and the words that
jailbreak prompts have in common (`jailbreak_words`); a text without a finding is a text without a
finding, not a safe one. Verdicts do not depend on them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

import re2

from capdex.diagnostics import Path, show, walk
from capdex.manifest import jailbreak_words
from capdex.problems import Reason

MAX_EXCERPT_CHARS: Final = 80
_ASCII: Final = bytes(range(128))


class Label(StrEnum):
    """Weight of a finding."""

    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class InjectionFinding:
    """Match of a rule: the path of the string, and an excerpt, or the phrases that weighed most."""

    code: Reason
    path: Path
    excerpt: str

    @property
    def message(self) -> str:
        """The excerpt as a message quotes it; phrases with points as they are."""
        return self.excerpt if self.code is Reason.LINT_JAILBREAK else show(self.excerpt)


_OWNED: Final = r"(?:all |any |every |the |your |my |of |these |those |other )*"
_OVERRIDE: Final = (
    rf"\b(?:ignore|disregard|forget|override|bypass|overrule)\s+{_OWNED}"
    r"(?:(?:previous|prior|above|earlier|preceding|existing|former|system|safety|developer|original)"
    r"\s+)+(?:instruction|prompt|rule|message|guideline|direction|command|polic|restriction)"
    r"|(?:忽略|无视).{0,6}(?:以上|上述|之前|先前|前面|此前|系统|原有|所有|一切).{0,6}(?:指令|指示|提示|规则)|無視.{0,8}(?:指示|命令|プロンプト)|(?:指示|命令|プロンプト).{0,8}無視"
    r"|игнорир\S* .{0,30}(?:предыдущ|прежн|прошл)\S* (?:инструкц|указан|правил)"
    r"|\bi[ ._*-]g[ ._*-]n[ ._*-]o[ ._*-]r[ ._*-]e\b"
    r"|(?:이전|위의).{0,8}(?:지시|명령).{0,8}무시"
    r"|\bignor(?:ez|e|a|ad|iere|ieren) (?:\S+ ){0,3}"
    r"(?:instructions? (?:précédentes?|antérieures?)|instrucciones (?:anteriores|previas)"
    r"|instruções anteriores|(?:vorherigen|bisherigen|vorigen) anweisungen|istruzioni precedenti)"
)
_PERSON: Final = "(?:the |your )?(?:user|human|person|operator)"
_SECRECY: Final = (
    r"\b(?:do not|don't|dont|never|must not|without)\s+(?:ever\s+)?"
    r"(?:(?:mention|tell|inform|notify|alert)(?:ing)?\s+(?:about\s+)?"
    r"(?:this|it|any of this)\b\W*(?:$|[.;!\n]|to)"
    r"|(?:(?:tell|inform|notify|alert)(?:ing)?|(?:mention|reveal|disclose)[^.!?\n]{1,40}\bto)\s+"
    rf"{_PERSON}s?\b(?:\s+to\b)?|let\s+{_PERSON}s?\s+know\b)"
    rf"|\bkeep\s+(?:this|it)\s+(?:a )?(?:secret|hidden)\s+from\s+{_PERSON}"
)
_TOKENS: Final = (
    r"<\|?(?:im_start|im_end|im_sep|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|"
    r"system|user|assistant|end)\|>|\[/?inst\]|<</?sys>>|<s>[^<\[\n]+</s>|</s>|<(?:start|end)_of_turn>"
)
_KEYS: Final = (
    r"(?:~|\$home|%userprofile%|/root|/home/\w+)?/?\B\.(?:ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc)\b"
    r"(?:/\S+)?|\bid_(?:rsa|ed25519|ecdsa)\b(?:\.pub\b)?|/etc/(?:passwd|shadow)\b"
)
_ARGUMENT: Final = (
    r"\b(?:pass|send|include|put|append|attach|copy|insert|add|provide|forward)\s[^.\n]{0,60}"
    r"\b(?:(?:entire|full|whole|complete)\s+(?:conversation|chat|message)(?:\s+history)?"
    r"|(?:conversation|chat|message)\s+history|system prompt|(?:previous|prior|earlier) messages"
    r"|(?:its|their) (?:file )?contents?|the (?:file contents?|contents)"
    r"|the content of (?:\S+ ){0,3}files?)\b[^.\n]{0,40}\b(?:as|in|into|to|with|through|via)\b"
)

_LETTERS: Final = r"[^\s\d'\"`{}|<>()\[\].,:;=*/_#$&!?]+(?:'\w+)?"
_WORDS: Final = rf"{_LETTERS}(?:,? {_LETTERS})+[.,:;!?]*(?:\s|$)"  # no value of a field of code

# Each shape with its weight and its RE2 pattern, on text in lower case.
_SHAPES: Final = (
    (Reason.LINT_OVERRIDE, Label.HIGH, _OVERRIDE),
    (
        Reason.LINT_HIDDEN_TAG,
        Label.HIGH,
        r"<\s*/?\s*(?:important|system|hidden|instructions?|admin|assistant|developer)\s*>"
        r"|<\s*/\s*secret\s*>",  # <secret> alone is a place to fill in
    ),
    (Reason.LINT_SECRECY, Label.HIGH, _SECRECY),
    (Reason.LINT_CONTROL_TOKENS, Label.HIGH, _TOKENS),
    (
        Reason.LINT_EXFILTRATION,
        Label.HIGH,
        r"!\[[^\]\n]*\]\(\s*<?https?://[^)\s]*(?:\{|%7b|\$\{)"
        r"|<img[^>]{0,200}src=[^>]{0,200}//[^>\s]{0,200}\{",
    ),
    (Reason.LINT_CONVERSATION, Label.MEDIUM, _ARGUMENT),
    (Reason.LINT_SECRET_PLACE, Label.HIGH, _KEYS),
    (
        Reason.LINT_HIDDEN_MARKDOWN,
        Label.MEDIUM,
        r"\[//\]:\s*#|\[(?:comment|_metadata_[^\]\n]*)\]:\s*<?[#>]|<!--",
    ),
    (
        Reason.LINT_ROLE_PLAY,
        Label.MEDIUM,
        rf"(?m)^\s*(?:system|assistant|developer)\s*:\s{{0,4}}(?:{_WORDS}|[^\x00-\x7f]{{6}})"
        r"|\byou are now (?:in )?(?:dan|developer mode|jailbroken|unrestricted)\b"
        r"|\byou have no (?:limits|restrictions|rules)\b",
    ),
    (
        Reason.LINT_ENCODED,
        Label.MEDIUM,
        r"[a-z0-9+/]{160,}={0,2}|\bdata:[\w/+.-]*;base64,[a-z0-9+/]{16}",
    ),
)
LABELS: Final = {code: label for code, label, _ in _SHAPES} | {
    Reason.LINT_FOREIGN_TOOL: Label.HIGH,
    Reason.LINT_JAILBREAK: Label.MEDIUM,
    Reason.LINT_DECEPTIVE_NAME: Label.MEDIUM,
    Reason.LINT_IMITATION: Label.MEDIUM,
    Reason.LINT_SECRET_VALUE: Label.MEDIUM,
}
_WEIGHTS: Final = {Label.HIGH: 60, Label.MEDIUM: 25}

# An identifier of another tool, and an order about it in the same sentence.
_ORDER: Final = (
    r"\b(?:(?:when|whenever|if|before|after|instead of|once|do not|don't|dont|never)\s+(?:you\s+)?"
    r"(?:(?:call|use|run|invoke|calling|using)\s+)?|(?:call|calling|use|using|invoke)\s+)"
    r"(?:the\s+)?(?:tool\s+|function\s+)?[\"'`]?([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b[^.\n]{0,80}"
    r"\b(?:always|must|instead|never|first|required)\b"
)
_QUOTED: Final = (
    "\\B'[^'\\n]{0,160}'|\"[^\"\\n]{0,160}\"|`[^`\\n]{0,160}`"
    "|“[^”\\n]{0,160}”|‘[^’\\n]{0,160}’|「[^」\\n]{0,160}」"
)
_MENTION: Final = (
    r"(?:\bif\b|\bsays?\b|\bcontain(?:s|ing)?\b|\bphrases?\b|\bsuch as\b|\blike\b|\be\.g\."
    r"|\bfor example\b|\bpatterns?\b|\binputs?\b|\bquot(?:e|es|ing)\b|\btext\b|\bwords?\b"
    r"|\bread(?:s|ing)?\b|attacks?\b|inject|jailbreak|malicious|adversarial|suspicious|scan|detect"
    r"|override\b|hijack|indicators?\b)[^.!?\n]{0,60}"
    # a line above a list introduces each item
    r"(?::\**\n(?:\s*(?:[-*+] [^\n]*|```\w*)\n)*\s*[-*+] )?$"
)
_NEGATED: Final = (
    r"(?:\b(?:do|does|did|must|should|shall|may|can|could|will|would) ?(?:not|n['’]?t)|\bcannot"
    r"|\bnever|\battempts? to)\s+(?:ever\s+)?(?:\w+ly\s+)?$"
)
# Matches that are something else: a very long word or a protein, text struck through, a public key,
# what people are not told to do, that a tool is called first or used instead, and a field's value.
_ELSE: Final = {
    Reason.LINT_ENCODED: re2.compile(r"[a-z]+"),
    Reason.LINT_CONTROL_TOKENS: re2.compile(r"<s>.+</s>"),
    Reason.LINT_SECRET_PLACE: re2.compile(r"[~$%\w./-]*id_\w+\.pub\W*"),
    Reason.LINT_SECRECY: re2.compile(r".*\btell(?:ing)?\s+(?:the |your )?\w+\s+to"),
    Reason.LINT_FOREIGN_TOOL: re.compile(
        r"(?:call|use|using|calling|invoke)\s.*(?:first|instead|required)"
        r"|(?:call|use|invoke)\s[^(—]*[(—].*"
        r"|(?:if|when|whenever)\s+(?:the )?[\"'`]?[a-z0-9]+_\w+\b(?![\"'`]?(?: tool| function)?"
        r" (?:(?:is|was|gets) )?(?:available|called|used|invoked|run|return|respond)).*",
        re.DOTALL,
    ),
}
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_INNER_FENCE: Final = re.compile(r"(?m)^[ \t]*(?:[-*+>]|\d+[.)]).*?(?:```|~~~)")
_TICKED: Final = re.compile(r"(?<![`\\])`(?!`)[^`\n]+`(?!`)")
# Nearly every text matches none of these rules, and one search shows it.
_ANY: Final = "|".join(f"(?:{x})" for x in (*(shape[2] for shape in _SHAPES), _ORDER))


@cache
def _compiled(pattern: str) -> Any:
    """Return the compiled pattern; all take 4 MB, which a process that lints no text saves."""
    return re2.compile(pattern)


def lint(
    document: object, *, own_names: frozenset[str] = frozenset()
) -> Iterator[InjectionFinding]:
    """Iterate over the matches of the rules in all strings of a JSON-able value, keys too.

    `own_names` are the package's tools and their parameters: an order about another's is a finding.
    """
    # The shapes end and begin at line ends, too: one search of all texts, a line or more each.
    whole = plain("\n".join(text for _, text in _strings(document)))
    words = jailbreak_words.words(whole)
    if _compiled(_ANY).search(whole) is None and not jailbreak_words.learnt().may_be_enough(words):
        return
    for path, text in _strings(document):
        yield from _judge(path, text, own_names)


def score(codes: Iterable[str]) -> int:
    """From 0 (nothing found) to 100: what the different codes found weigh together."""
    return min(100, sum(_WEIGHTS[LABELS[code]] for code in _own(codes)))


def label(codes: Iterable[str]) -> Label | None:
    """The gravest label of the codes found; None where the rules found nothing."""
    labels = {LABELS[code] for code in _own(codes)}
    return max(labels, key=lambda x: _WEIGHTS[x], default=None)


def lint_summary(codes: Iterable[str]) -> dict[str, Any]:
    """Return the summary in answers: `{"score": 60, "label": "high", "codes": ["LINT_OVERRIDE"]}`.

    Codes of other problems are passed over; where there is nothing else the label is None.
    """
    own = sorted(_own(codes))
    return {"score": score(own), "label": label(own), "codes": own}


def _own(codes: Iterable[str]) -> set[Reason]:
    return {Reason(code) for code in codes if code in LABELS}


def plain(text: str) -> str:
    """The text as a model reads it: NFKC, without format characters, in lower case."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFKC", text)
    odd = composed.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    for character in set(odd.decode("utf-8", "surrogatepass")):
        if unicodedata.category(character) == "Cf":
            composed = composed.replace(character, "")
    return composed.lower()


def _judge(path: Path, text: str, own: frozenset[str]) -> Iterator[InjectionFinding]:
    read = plain(text)
    heaviest = jailbreak_words.learnt().heaviest(jailbreak_words.words(read))
    if heaviest is not None:
        yield InjectionFinding(Reason.LINT_JAILBREAK, path, heaviest.explain(MAX_EXCERPT_CHARS))
    if _compiled(_ANY).search(read) is None:
        return
    quoted = [match.span() for match in _compiled(_QUOTED).finditer(read)]
    for code, _, pattern in _SHAPES:
        hidden = code is Reason.LINT_HIDDEN_MARKDOWN
        for match in _compiled(pattern).finditer(_outside_code(text, read) if hidden else read):
            if _is_harmless(code, path, read, match):
                continue
            if not _mentioned(read, match.start(), match.end(), quoted):
                yield InjectionFinding(code, path, _excerpt(match.group()))
                break
    for match in _orders(read):
        is_own = match.group(1) in own
        if not is_own and not _is_harmless(Reason.LINT_FOREIGN_TOOL, path, read, match):
            yield InjectionFinding(Reason.LINT_FOREIGN_TOOL, path, _excerpt(match.group()))
            break


def _orders(read: str) -> Iterator[Any]:
    """Matches of orders about tools, and those within them: one that is none may hold another."""
    for outer in _compiled(_ORDER).finditer(read):
        text = outer.group()
        while match := _compiled(_ORDER).search(text):
            yield match
            text = text[match.end(1) :]


def _is_harmless(code: Reason, path: Path, read: str, match: Any) -> bool:
    """True if a match is something else than its shape: by itself, or by where it stands."""
    if code in _ELSE:
        return _ELSE[code].fullmatch(match.group()) is not None
    if code in (Reason.LINT_OVERRIDE, Reason.LINT_CONVERSATION):
        before = read[max(0, match.start() - 40) : match.start()]
        return _compiled(_NEGATED).search(before) is not None
    is_tag = code is Reason.LINT_HIDDEN_TAG  # a prompt consists of instructions
    return is_tag and path == ("prompt",) and "instruction" in match.group()


def _outside_code(text: str, read: str) -> str:
    """Return a text as it is read with blanks for its code, which pages show.

    Fences that may be none on a page, in HTML or beside those of lists and quotes, are left.
    """
    if any(text.count(mark) != read.count(mark) for mark in "`~"):
        return read  # NFKC makes such marks of others
    outside = _TICKED.sub(lambda x: " " * len(x[0]), read)
    if _INNER_FENCE.search(read):
        return outside
    lines = outside.split("\n")
    fence, begin, html = "", 0, False
    for at, line in enumerate(read.split("\n")):
        mark = _FENCE.match(line)
        html = not fence and line.strip() != "" and (html or line.lstrip().startswith("<"))
        if mark and not fence and not html:
            fence, begin = mark[1], at
        elif mark and fence and mark[1].startswith(fence) and not mark[2].strip():
            lines[begin:at] = [" " * len(x) for x in lines[begin:at]]
            fence = ""
    return "\n".join(lines)


def _mentioned(text: str, start: int, end: int, quoted: list[tuple[int, int]]) -> bool:
    """True if a match is only mentioned: quoted, and introduced as a thing that is said."""
    for first, last in quoted:
        if first < start and end < last:
            return _compiled(_MENTION).search(text[max(0, first - 400) : first]) is not None
    return False


def _strings(document: object) -> Iterator[tuple[Path, str]]:
    """Every string of a value with its path; a key stands at the path of its mapping."""
    for path, value in walk(document):
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            yield path, "\n".join(value)


def _excerpt(text: str) -> str:
    return text if len(text) <= MAX_EXCERPT_CHARS else text[: MAX_EXCERPT_CHARS - 1] + "…"
