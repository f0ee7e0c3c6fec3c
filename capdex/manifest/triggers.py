"""Triggers (P9): what a router matches a message with."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import re2

from capdex.diagnostics import Findings, Path, show
from capdex.manifest.fields import Fields
from capdex.problems import Reason

MAX_TRIGGERS: Final = 64
MAX_PATTERN_BYTES: Final = 512  # 20 000 nested groups take RE2 half a minute to compile
MAX_PATTERN_MEMORY: Final = 1 << 20  # of the compiled program; larger ones only count high
MAX_KEYWORD_CHARS: Final = 128
MAX_PHRASE_BYTES: Final = 1024
MAX_SIGN_BITS_CHARS: Final = 4096  # 16 384 dimensions in base16, more than any model has

# What people say of things that no one capability is about: a pattern that matches a third of it
# would bring its capability up all day.
UNRELATED: Final = (
    "What is the weather like in Oslo tomorrow?",
    "Please write a short poem about my cat.",
    "How many miles are 12 kilometres?",
    "Remind me to call the dentist on Friday at 9.",
    "Summarise this article in three sentences.",
    "I would like to book a table for two.",
    "Translate good morning into Portuguese.",
    "Which of these stocks rose most last year?",
    "Fix the bug in my Python function.",
    "明天提醒我买牛奶",
    "今日の会議は何時からですか",
    "¿Cuál es la capital de Perú?",
)
MAX_UNRELATED: Final = 4
_UNRELATED: Final = "\n".join(UNRELATED)
_ANCHOR: Final = re.compile(r"[$^]|\\[Az]")  # what the ends of a line are not the same to

TYPES: Final = ("regex", "keyword", "embedding")

MODEL = re.compile(r"[^@\s]{1,128}@[^@\s]{1,64}")
# The multibase alphabets a vector of sign bits is likely to come in.
MULTIBASE = re.compile(
    r"f[0-9a-f]+|b[a-z2-7]+|z[1-9A-HJ-NP-Za-km-z]+|u[A-Za-z0-9_-]+|m[A-Za-z0-9+/]+", re.ASCII
)

_FORM: Final = "write {type: keyword, value: …}"


class Trigger(NamedTuple):
    """A trigger; `model` is set for an embedding given as sign bits."""

    type: str
    value: str
    model: str | None = None


def compile_pattern(pattern: str) -> Any:
    """Compile a regex trigger in RE2 with its memory bounded; raises `re2.error`."""
    options = re2.Options()
    options.max_mem = MAX_PATTERN_MEMORY
    options.log_errors = False
    return re2.compile(pattern, options)


def read_triggers(metadata: Fields, *, lint: bool = True) -> tuple[Trigger, ...]:
    """The usable triggers of a package; the others are among the findings.

    With `lint` so are patterns that match too much, which takes longer than all else.
    """
    items = metadata.items("triggers", MAX_TRIGGERS)
    if not items and metadata.values.get("triggers") in (None, []):
        metadata.findings.warn(
            Reason.MISSING_FIELD,
            metadata.at("triggers"),
            "there are no triggers, so no router picks this capability by itself",
        )
    path = metadata.at("triggers")
    read = (_read(item, (*path, i), metadata.findings, lint) for i, item in enumerate(items))
    return tuple(trigger for trigger in read if trigger is not None)


def _read(item: object, path: Path, findings: Findings, lint: bool) -> Trigger | None:
    fields = Fields.of(item, path, findings, Reason.BAD_TRIGGER, hint=_FORM)
    if fields is None:
        return None
    fields.note_unknown(("type", "value", "model"))
    type_ = fields.text("type", required=True)
    value = fields.get("value", str, required=True)
    if type_ is None or value is None:
        return None
    model: str | None = None
    match type_:
        case "regex":
            usable = _check_pattern(value, fields, lint)
        case "keyword":
            usable = fields.fits("value", value, MAX_KEYWORD_CHARS, one_line=True)
        case "embedding":
            model = fields.text("model")
            usable = _check_embedding(value, model, fields)
        case _:
            usable = fields.one_of("type", type_, TYPES, "a trigger type")
    return Trigger(type_, value, model) if usable else None


def _check_pattern(pattern: str, fields: Fields, lint: bool) -> bool:
    if not fields.fits("value", pattern, most_bytes=MAX_PATTERN_BYTES):
        return False
    try:
        compiled = compile_pattern(pattern)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args else "refused"
        hint = "RE2 has no look-around and no back-references: write a simpler pattern or a keyword"
        fields.wrong("value", f"RE2 cannot compile {show(pattern)}: {show(why)[1:-1]}", hint=hint)
        return False
    if not lint:
        return True
    if compiled.search("") is not None:
        matched, hint = "every message", "name at least one word that must be there"
    elif _matched(compiled, pattern) >= MAX_UNRELATED:
        matched = "messages that have nothing to do with one another"
        hint = "name what the capability is about"
    else:
        return True
    what = f"{show(pattern)} matches {matched}"
    fields.findings.warn(Reason.BAD_TRIGGER, fields.at("value"), what, hint)
    return True


def _matched(compiled: Any, pattern: str) -> int:
    """Count the unrelated messages that a pattern matches; one search suffices if none does."""
    if not _ANCHOR.search(pattern) and compiled.search(_UNRELATED) is None:
        return 0
    return sum(compiled.search(text) is not None for text in UNRELATED)


def _check_embedding(value: str, model: str | None, fields: Fields) -> bool:
    if "model" not in fields.values:
        return fields.fits("value", value, most_bytes=MAX_PHRASE_BYTES)
    if model is None or not MODEL.fullmatch(model):
        fields.wrong("model", "a model is named with its version", hint="write id@version")
        return False
    if len(value) > MAX_SIGN_BITS_CHARS or not MULTIBASE.fullmatch(value):
        message = f"an embedding of a model is multibase, at most {MAX_SIGN_BITS_CHARS} characters"
        fields.wrong("value", message, hint="without a model, value is a phrase to embed")
        return False
    return True
