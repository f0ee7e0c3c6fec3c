"""Build the value of a YAML file from libyaml's events (P7).

Everything but the events is done here, one by one and without recursion, so that a limit holds
before anything is built (PyYAML's own composer dies of 100 kB of `[`). Plain scalars follow the
YAML 1.2 core schema, except that a number with a leading zero is text (`010`).

A package has hundreds of events and hardly ever a fault: the place and the path of one are worked
out for a problem only, and what can only be wrong with odd texts is only asked of those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import yaml as pyyaml

from capdex.diagnostics import MAX_PROBLEMS, Findings, Path, show
from capdex.limits import MAX_DEPTH
from capdex.problems import Reason
from capdex.yaml.characters import describe, forbidden
from capdex.yaml.scalars import MAX_NUMBER_CHARS, WORDS, TooManyDigits, resolve_plain
from capdex.yaml.source_map import Collection, Outline, place
from capdex.yaml.strictness import Layout, LayoutFault

MAX_NODES = 10_000  # keys, scalars and collections: what one release may cost its readers
MAX_SCALAR_BYTES = 128 * 1024  # twice the largest field of the format

# Plain text that YAML 1.1 readers take for a truth value, another number, a time or a date.
_TRUTHS = ("yes", "no", "on", "off")
_READ_OTHERWISE = re.compile(
    rf"(?i:{'|'.join(_TRUTHS)})|[-+]?0[0-9_]+|[-+]?[1-9][0-9_]*_[0-9_]*|[-+]?0b[01_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.ASCII,
)
# Only such plain text is anything but text, or may be to others.
_BLOCK: Final = ("|", ">")
_NUMERIC: Final = frozenset("+-.0123456789")


class Stop(Exception):
    """Reading cannot go on; the reason is among the findings."""


class Nested(Exception):
    """libyaml gave no events, since at this character of the text it met its level 1 000."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class Composer:
    """Builds the value from libyaml's events, iteratively and within the limits."""

    def __init__(self, text: str, findings: Findings) -> None:
        self._source = text
        self._findings = findings
        self._text = self._clean()
        self.outline = Outline(text, self._text)
        self._layout = Layout(self._text)
        self._stack = [self.outline.root]
        self._nodes = 0
        self._faults = 0
        self._may_be_large = len(text) * 4 > MAX_SCALAR_BYTES
        self._has_question = "?" in text

    def compose(self) -> Any:
        """Read every event, and return the value; raises Stop or Nested where it cannot go on."""
        try:
            self._read(pyyaml.CSafeLoader(self._text).get_event)
        except pyyaml.MarkedYAMLError as error:  # libyaml has no other for clean text
            mark = error.problem_mark or error.context_mark
            at = (1, 1) if mark is None else place(self._text, min(mark.index, len(self._text)))
            what = ": ".join(x for x in (error.context, error.problem) if x)
            if mark is not None and "maximum nesting depth" in what:
                raise Nested(mark.index) from None
            path, whole = self._path(self._stack)
            hint = "indent with spaces, not with a tab" if "tab character" in what else ""
            self._findings.error(Reason.YAML_SYNTAX, path if whole else (), what, hint=hint, at=at)
            raise Stop from None
        if not self.outline.root.value:
            self._findings.error(Reason.YAML_SYNTAX, (), "the file is empty")
            raise Stop
        return self.outline.root.value[0]

    def _read(self, next_event: Callable[[], Any]) -> None:
        documents, layout, stack = 0, self._layout, self._stack
        while (event := next_event()) is not None:
            end = event.end_mark.index
            if layout.comment < end:
                self._misplaced(event, layout.comments(event.start_mark.index, end))
            kind = type(event)
            if kind is pyyaml.ScalarEvent:
                self._scalar(stack[-1], event)
            elif kind is pyyaml.MappingStartEvent:
                self._open(stack[-1], event, {})
            elif kind is pyyaml.SequenceStartEvent:
                self._open(stack[-1], event, [])
            elif kind is pyyaml.MappingEndEvent or kind is pyyaml.SequenceEndEvent:
                self._close(stack[-1], event, end)
            elif kind is pyyaml.AliasEvent:
                self._alias(stack[-1], event)
            elif kind is pyyaml.DocumentStartEvent:
                documents += 1
                self._begin(event, documents)

    def _clean(self) -> str:
        """The source with a space for each forbidden character, so that one run finds all."""
        places = list(forbidden(self._source))
        if not places:
            return self._source
        first: dict[str, int] = {}
        for index in places:
            first.setdefault(self._source[index], index)
        times_of = Counter(self._source[index] for index in places)
        for character, index in list(first.items())[:MAX_PROBLEMS]:
            times = times_of[character]
            more = f", {times} times in all" if times > 1 else ""
            hint = "use LF line ends" if character == "\r" else ""
            self._findings.error(
                Reason.FORBIDDEN_CHARACTER,
                (),
                f"{describe(character)} stands here{more}",
                hint=hint,
                at=place(self._source, index),
            )
        pieces, start = [], 0
        for index in places:
            pieces.append(self._source[start:index])
            start = index + 1
        return " ".join([*pieces, self._source[start:]])

    # ------------------------------------------------------------------------------- problems

    def _path(self, stack: list[Collection]) -> tuple[Path, bool]:
        """Return the path of the next value as far as known, and True if that is all of it."""
        path: list[str | int] = []
        for around in stack[1:]:
            step = len(around.value) if around.is_list else around.key
            if step is None:
                return tuple(path), False
            path.append(step)
        return tuple(path), True

    def _error(self, code: Reason, message: str, *, event: object, hint: str = "") -> None:
        path, _ = self._path(self._stack)
        self._findings.error(code, path, message, hint=hint, at=self.outline.place(event))

    def _refuse(self, event: object, message: str) -> None:
        self._error(Reason.YAML_FEATURE, message, event=event)

    def _misplaced(self, event: object, faults: Iterable[LayoutFault]) -> None:
        for index, message, hint in faults:
            self._faults += 1
            if self._faults > MAX_PROBLEMS:  # telling the place of one costs time
                return
            path, _ = self._path(self._stack)
            if isinstance(event, pyyaml.CollectionEndEvent):
                closing, whole = self._path(self._stack[:-1])
                path = closing if whole and closing else path
            at = place(self._text, index)
            self._findings.error(Reason.YAML_SYNTAX, path, message, hint=hint, at=at)

    def _count(self, event: object) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            message = f"the file has more than {MAX_NODES} keys and values"
            self._error(Reason.TOO_MANY, message, event=event)
            raise Stop

    def _check_properties(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse(event, f"the anchor &{show(event.anchor)[1:-1]} is not allowed")
        if event.tag is not None:
            self._refuse(event, f"the tag {show(event.tag)[1:-1]} is not allowed")

    # --------------------------------------------------------------------------------- events

    def _begin(self, event: Any, documents: int) -> None:
        if documents > 1:
            self._refuse(event, "a package is one document; a second one starts here")
            raise Stop
        if event.version or event.tags:
            self._refuse(event, "directives (%YAML, %TAG) are not allowed")

    def _open(self, around: Collection, event: Any, value: Any) -> None:
        self._count(event)
        self._check_properties(event)
        if around.wants_key:
            self._refuse(event, "a key is text; a list or mapping as a key is not allowed")
        if len(self._stack) > MAX_DEPTH:
            message = f"nesting goes deeper than {MAX_DEPTH} levels"
            self._error(Reason.TOO_DEEP, message, event=event)
            raise Stop
        indent = around.indent if event.flow_style else event.start_mark.column
        collection = Collection(event, value, indent)
        if around.is_list:
            around.inner[len(around.value)] = collection
        elif around.key is not None:
            around.inner[around.key] = collection
        self._stack.append(collection)

    def _close(self, closing: Collection, event: Any, end: int) -> None:
        around = self._stack[-2]
        if closing.flow and not around.flow:
            start, indent = closing.event.start_mark.index, closing.indent
            self._misplaced(event, self._layout.lines(start, end, indent, comments=True))
        self._stack.pop()
        closing.closed = True
        self._put(around, closing.value, closing)

    def _alias(self, around: Collection, event: Any) -> None:
        self._count(event)
        self._refuse(event, f"the alias *{show(event.anchor)[1:-1]} is not allowed")
        self._put(around, None, event)

    def _scalar(self, around: Collection, event: Any) -> None:
        text, style = event.value, event.style
        if not style:
            if text == "-" and around.flow:
                at = event.start_mark.index
                self._misplaced(
                    event, [LayoutFault(at, "a lone - is not text here", "put it in quotes")]
                )
        elif style in _BLOCK or event.start_mark.line != event.end_mark.line:
            self._misplaced(event, self._layout.styled(event, around.indent))
        self._count(event)
        tag = event.tag
        if tag is not None or event.anchor is not None:
            self._check_properties(event)
        if self._may_be_large:
            self._check_size(event)
        value: Any = text
        if not style:
            if tag is None and (text in WORDS or text[0] in _NUMERIC or text.lower() in _TRUTHS):
                value = self._resolve(text, event)
        elif style == '"':
            if not (text.isascii() and text.isprintable()):
                self._check_escapes(text, event)
        elif style in _BLOCK:
            self._check_end(event)
        if around.wants_key:
            self._key(around, event, text, value)
        else:
            self._put(around, value, event)

    def _check_size(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        size = self.outline.byte_at(end) - self.outline.byte_at(start)
        if size > MAX_SCALAR_BYTES:
            message = f"this value has {size} bytes; at most {MAX_SCALAR_BYTES} are allowed"
            self._error(Reason.TOO_LARGE, message, event=event)

    def _check_end(self, event: Any) -> None:
        if self._text[-1] != "\n" and not self._text[event.end_mark.index :].strip(" "):
            message = "the file ends inside this block; readers differ on its last line end"
            hint = "end the file with a line feed"
            self._error(Reason.YAML_SYNTAX, message, event=event, hint=hint)

    def _check_escapes(self, text: str, event: object) -> None:
        for index in forbidden(text):
            message = f"{describe(text[index])} is written here as an escape"
            self._error(Reason.FORBIDDEN_CHARACTER, message, event=event)
            break

    def _resolve(self, text: str, event: object) -> Any:
        try:
            value = resolve_plain(text)
        except TooManyDigits as error:
            self._error(Reason.BAD_VALUE, str(error), event=event, hint="put it in quotes")
            return text
        if isinstance(value, str):
            if len(text) <= MAX_NUMBER_CHARS and _READ_OTHERWISE.fullmatch(text):
                self._note(event, f"{show(text)} is text here, but not to every YAML reader")
        elif isinstance(value, float) and text.lstrip("+-") != repr(abs(value)):
            self._note(event, f"{show(text)[1:-1]} is the number {value!r} here")
        return value

    def _note(self, event: object, message: str) -> None:
        path, _ = self._path(self._stack)
        hint, at = "put it in quotes if text is meant", self.outline.place(event)
        self._findings.note(Reason.BAD_VALUE, path, message, hint=hint, at=at)

    def _key(self, around: Collection, event: Any, text: str, value: Any) -> None:
        around.wants_key = False
        if not isinstance(value, str):
            self._refuse(event, f"a key is text; {show(text)[1:-1] or 'an empty key'} is not")
        elif text == "<<":
            self._refuse(event, "the merge key << is not allowed")
        elif self._has_question and self._text.endswith("?", 0, event.start_mark.index):
            # libyaml splits `?foo` off in a flow, YAML 1.2 readers do not
            self._refuse(event, "a question mark stands right before this key")
        elif text in around.keys:
            line = around.keys[text].start_mark.line + 1
            path, _ = self._path(self._stack)
            self._findings.error(
                Reason.DUPLICATE_KEY,
                (*path, text),
                f"the key {show(text)} stands here again, after line {line}",
                at=self.outline.place(event),
            )
        else:
            around.keys[text] = event
            around.key = text

    def _put(self, around: Collection, value: object, node: object) -> None:
        if around.is_list:
            around.inner[len(around.value)] = node
            around.value.append(value)
        elif around.wants_key:  # a collection or an alias stood where a key belongs
            around.wants_key = False
        else:
            key = around.key
            if key is not None:
                around.value[key] = value
                around.inner[key] = node
                around.key = None
            around.wants_key = True
