"""Building the value of a YAML file from libyaml's events (P7).

Everything but the events is done here, one by one and without recursion, so that a limit holds
before anything is built (PyYAML's own composer dies of 100 kB of `[`). Plain scalars follow the
YAML 1.2 core schema, except that a number with a leading zero is text (`010`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml as pyyaml

from capdex.characters import describe, forbidden
from capdex.findings import MAX_PROBLEMS, Findings, Path, Place, show
from capdex.layout import Layout
from capdex.numbers import MAX_NUMBER_CHARS, TooManyDigits, resolve_plain
from capdex.problems import Reason
from capdex.spans import Mapping, Scalar, Style

MAX_DEPTH = 32  # deeper than any schema people write, far below every reader's stack
MAX_NODES = 10_000  # keys, scalars and collections: what one release may cost its readers
MAX_SCALAR_BYTES = 128 * 1024  # twice the largest field of the format

# Plain text that YAML 1.1 readers take for a truth value, another number, a time or a date.
_READ_OTHERWISE = re.compile(
    r"(?i:yes|no|on|off)|[-+]?0[0-9_]+|[-+]?[1-9][0-9_]*_[0-9_]*|[-+]?0b[01_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.ASCII,
)
_STYLES = {"'": Style.QUOTED, '"': Style.QUOTED, "|": Style.BLOCK, ">": Style.BLOCK}


def place(text: str, index: int) -> Place:
    """Line and column, from 1, of a character in `text`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


class Stop(Exception):
    """Reading cannot go on; the reason is among the findings."""


class _Frame:
    """A collection being filled. `path` is None where nothing inside has a place of its own."""

    __slots__ = ("at", "end", "flow", "key", "keys", "path", "start", "value", "want_key")

    def __init__(self, path: Path | None, value: Any, start: int, at: Place, flow: bool) -> None:
        self.path = path
        self.value: Any = value
        self.start = start
        self.at = at
        self.flow = flow
        self.keys: dict[str, Scalar] = {}
        self.key: str | None = None  # None: the coming value is dropped
        self.want_key = isinstance(value, dict)
        self.end = 0


class Composer:
    """Builds the value from libyaml's events, iteratively and within the limits."""

    def __init__(self, text: str, marks: dict[Path, Place], findings: Findings) -> None:
        self.value: Any = None
        self.scalars: dict[Path, Scalar] = {}
        self.mappings: dict[Path, Mapping] = {}
        self._source = text
        self._marks = marks
        self._findings = findings
        self._stack: list[_Frame] = []
        self._nodes = 0
        self._ascii = text.isascii()
        self._index = self._byte = 0  # one known pair, moved along
        self._text = self._clean()

    def compose(self) -> None:
        """Read every event; raises Stop where reading cannot go on."""
        documents = 0
        layout = Layout(self._text)
        for event in self._events():
            for index, message, hint in layout.faults(event):
                path = self._around()
                if isinstance(event, pyyaml.CollectionEndEvent):
                    path = self._stack[-1].path or path
                at = place(self._text, index)
                self._findings.error(Reason.YAML_SYNTAX, path, message, hint=hint, at=at)
            match event:
                case pyyaml.ScalarEvent():
                    self._scalar(event)
                case pyyaml.MappingStartEvent():
                    self._open(event, {})
                case pyyaml.SequenceStartEvent():
                    self._open(event, [])
                case pyyaml.CollectionEndEvent():
                    self._close(event)
                case pyyaml.AliasEvent():
                    self._alias(event)
                case pyyaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self._refuse(event, "a package is one document; a second one starts here")
                        raise Stop
                    if event.version or event.tags:
                        self._refuse(event, "directives (%YAML, %TAG) are not allowed")
        if not documents:
            self._findings.error(Reason.YAML_SYNTAX, (), "the file is empty")
            raise Stop

    def _clean(self) -> str:
        """The source with a space for each forbidden character, so that one run finds all."""
        found = list(forbidden(self._source))
        if not found:
            return self._source
        first: dict[str, int] = {}
        for index in found:
            first.setdefault(self._source[index], index)
        times_of = Counter(self._source[index] for index in found)
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
        for index in found:
            pieces.append(self._source[start:index])
            start = index + 1
        return " ".join([*pieces, self._source[start:]])

    def _events(self) -> Iterator[Any]:
        try:
            yield from pyyaml.parse(self._text, Loader=pyyaml.CSafeLoader)
        except pyyaml.MarkedYAMLError as error:  # libyaml has no other for clean text
            mark = error.problem_mark or error.context_mark
            at = self._mark_place(mark) if mark is not None else (1, 1)
            what = ": ".join(x for x in (error.context, error.problem) if x)
            self._findings.error(Reason.YAML_SYNTAX, self._path() or (), what, at=at)
            raise Stop from None

    def _mark_place(self, mark: Any) -> Place:
        return place(self._text, min(mark.index, len(self._text)))

    def _start(self, event: Any) -> Place:
        mark = event.start_mark
        if mark.index == len(self._text):  # libyaml adds the line end that the last line lacks
            return place(self._text, mark.index)
        return mark.line + 1, mark.column + 1

    def _path(self) -> Path | None:
        """Where the coming value belongs."""
        if not self._stack:
            return ()
        frame = self._stack[-1]
        if frame.path is None:
            return None
        if isinstance(frame.value, list):
            return (*frame.path, len(frame.value))
        return None if frame.key is None else (*frame.path, frame.key)

    def _around(self) -> Path:
        """The innermost path that is known, for problems."""
        for frame in reversed(self._stack):
            if frame.path is not None:
                return frame.path if frame is not self._stack[-1] else self._path() or frame.path
        return ()

    def _refuse(self, event: Any, message: str) -> None:
        at = self._start(event)
        self._findings.error(Reason.YAML_FEATURE, self._around(), message, at=at)

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._findings.error(
                Reason.TOO_MANY,
                self._around(),
                f"the file has more than {MAX_NODES} keys and values",
                at=self._start(event),
            )
            raise Stop

    def _check_properties(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse(event, f"the anchor &{show(event.anchor)[1:-1]} is not allowed")
        if event.tag is not None:
            self._refuse(event, f"the tag {show(event.tag)[1:-1]} is not allowed")

    def _open(self, event: Any, value: Any) -> None:
        self._count(event)
        self._check_properties(event)
        at = self._start(event)
        path = self._path()
        if self._stack and self._stack[-1].want_key:
            self._refuse(event, "a key is text; a list or mapping as a key is not allowed")
            path = None
        if len(self._stack) >= MAX_DEPTH:
            message = f"nesting goes deeper than {MAX_DEPTH} levels"
            self._findings.error(Reason.TOO_DEEP, self._around(), message, at=at)
            raise Stop
        if path is not None:
            self._marks[path] = at
        start = self._byte_at(event.start_mark.index)
        self._stack.append(_Frame(path, value, start, at, bool(event.flow_style)))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        end = self._byte_at(event.end_mark.index) if frame.flow else frame.end
        if frame.path is not None and isinstance(frame.value, dict):
            self.mappings[frame.path] = Mapping(frame.start, end, frame.flow, *frame.at, frame.keys)
        self._put(frame.value, end)

    def _alias(self, event: Any) -> None:
        self._count(event)
        self._refuse(event, f"the alias *{show(event.anchor)[1:-1]} is not allowed")
        if (path := self._path()) is not None:
            self._marks[path] = self._start(event)
        self._put(None, self._byte_at(event.end_mark.index))

    def _scalar(self, event: Any) -> None:
        self._count(event)
        self._check_properties(event)
        at = self._start(event)
        text: str = event.value
        style = _STYLES.get(event.style, Style.PLAIN)
        start, end = self._byte_at(event.start_mark.index), self._byte_at(event.end_mark.index)
        if end - start > MAX_SCALAR_BYTES:
            message = f"this value has {end - start} bytes; at most {MAX_SCALAR_BYTES} are allowed"
            self._findings.error(Reason.TOO_LARGE, self._around(), message, at=at)
        rest = self._text[event.end_mark.index :] if style is Style.BLOCK else "more"
        if not rest.strip(" ") and self._text[-1] != "\n":
            message = "the file ends inside this block; readers differ on its last line end"
            hint = "end the file with a line feed"
            self._findings.error(Reason.YAML_SYNTAX, self._around(), message, hint=hint, at=at)
        value: Any = text
        if style is Style.PLAIN and event.tag is None:
            value = self._resolve(text, at)
        elif event.style == '"':
            self._check_escapes(text, at)
        scalar = Scalar(value, start, end, style, *at)
        if self._stack and self._stack[-1].want_key:
            self._key(scalar, text, event)
            return
        path = self._path()
        if path is not None:
            self._marks[path] = at
            self.scalars[path] = scalar
        self._put(value, end)

    def _resolve(self, text: str, at: Place) -> Any:
        try:
            value = resolve_plain(text)
        except TooManyDigits as error:
            self._findings.error(
                Reason.BAD_VALUE, self._around(), str(error), hint="put it in quotes", at=at
            )
            return text
        if isinstance(value, str):
            if len(text) <= MAX_NUMBER_CHARS and _READ_OTHERWISE.fullmatch(text):
                self._note_reading(f"{show(text)} is text here, but not to every YAML reader", at)
        elif isinstance(value, float) and text.lstrip("+-") != repr(abs(value)):
            self._note_reading(f"{show(text)[1:-1]} is the number {value!r} here", at)
        return value

    def _note_reading(self, message: str, at: Place) -> None:
        hint = "put it in quotes if text is meant"
        self._findings.note(Reason.BAD_VALUE, self._around(), message, hint=hint, at=at)

    def _check_escapes(self, text: str, at: Place) -> None:
        for index in forbidden(text):
            message = f"{describe(text[index])} is written here as an escape"
            self._findings.error(Reason.FORBIDDEN_CHARACTER, self._around(), message, at=at)
            break

    def _key(self, scalar: Scalar, text: str, event: Any) -> None:
        frame = self._stack[-1]
        frame.want_key = False
        frame.key = None
        if not isinstance(scalar.value, str):
            self._refuse(event, f"a key is text; {show(text)[1:-1] or 'an empty key'} is not")
        elif text == "<<":
            self._refuse(event, "the merge key << is not allowed")
        elif event.start_mark.index and self._text[event.start_mark.index - 1] == "?":
            # libyaml splits `?foo` off in a flow, YAML 1.2 readers do not
            self._refuse(event, "a question mark stands right before this key")
        elif text in frame.keys:
            first = frame.keys[text]
            self._findings.error(
                Reason.DUPLICATE_KEY,
                (*self._around(), text),
                f"the key {show(text)} stands here again, after line {first.line}",
                at=(scalar.line, scalar.column),
            )
        else:
            frame.keys[text] = scalar
            frame.key = text

    def _put(self, value: Any, end: int) -> None:
        if not self._stack:
            self.value = value
            return
        frame = self._stack[-1]
        frame.end = max(frame.end, end)
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.want_key:  # a collection or an alias stood where a key belongs
            frame.want_key = False
            frame.key = None
        else:
            if frame.key is not None:
                frame.value[frame.key] = value
            frame.key = None
            frame.want_key = True

    def _byte_at(self, index: int) -> int:
        """The byte offset of a character index; cheap near the one asked before."""
        if self._ascii:
            return index
        low, high = sorted((self._index, index))
        between = len(self._source[low:high].encode())
        self._byte += between if index == high else -between
        self._index = index
        return self._byte
