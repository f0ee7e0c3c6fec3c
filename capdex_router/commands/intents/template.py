"""Command templates: `inbox delete --ids {ids} --confirm` becomes an argument list. Pure.

No shell reads a template or a value. A placeholder is one element, alone (`{query}`) or glued to an
option (`--regexp={query}`). A value never becomes an option: a placeholder that is glued or stands
behind `--` takes any text; another one takes no text that begins with `-`. `[options]` stands for
all parameters with an `option`; where it stands, the items of a list are elements.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Self

from msgspec import Meta

from capdex.errors import InvalidInput

MAX_CHARS: Final = 2_000
MAX_VALUE_CHARS: Final = 32 * 1024  # Linux takes 128 KiB an argument
OPTIONS: Final = "[options]"
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f]*\Z"
Text = Annotated[str, Meta(max_length=500, pattern=ONE_LINE)]
Type = Annotated[str, Meta(pattern=r"^(string|integer|number|boolean|array<(string|integer)>)\Z")]
_PLACEHOLDER: Final = re.compile(r"(--?[A-Za-z0-9][\w.-]*=)?\{([A-Za-z_]\w{0,63})\}")
_OPTION: Final = re.compile("--.")
_OPERATOR: Final = re.compile(r"[|&;<>]+\d?|\d?[<>]+&?\d?|.*(?:\$\(|`).*", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an intent (CMP v0.1.0, 4.1, ParamDef); `default` is None if there is none."""

    name: str
    type: Type = "string"
    required: bool = False
    default: Any = None
    description: Text = ""
    enum: Annotated[tuple[Any, ...], Meta(max_length=64)] = ()
    option: Text = ""  # "--flag", "--num=" and a value, or "--num " and a value as an element

    @property
    def item_type(self) -> str:
        """The type of the items of a list; empty if it is none."""
        return self.type[len("array<") : -1] if self.type.startswith("array<") else ""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the list: the text `literal`, or `literal` and the value of `name`.

    `joined` is true if the template has a space where `literal` has `=`.
    """

    literal: str
    name: str | None = None
    sheltered: bool = True
    joined: bool = False


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A parsed template, valid from birth; `elements[0]` names the program."""

    text: str
    elements: tuple[Element, ...]
    parameters: tuple[Parameter, ...]

    @classmethod
    def parse(cls, text: str, parameters: tuple[Parameter, ...] = ()) -> Self:
        """Parse a template; raises InvalidInput. A placeholder without a parameter is required."""
        if len(text) > MAX_CHARS or _CONTROL.search(text):
            raise _wrong(text, f"it is over {MAX_CHARS} characters or has control characters")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise _wrong(text, str(error)) from None
        elements: list[Element] = []
        for word in words:
            if word == OPTIONS:
                elements += [Element(x.option, x.name) for x in parameters if x.option]
            else:
                elements.append(_element(word, text, behind=Element("--") in elements))
        if not elements or elements[0].name or not elements[0].literal.strip():
            raise _wrong(text, "its first word must name the program")
        if elements[0].literal.startswith("-"):
            raise _wrong(text, "its program begins with '-'")
        used = {element.name for element in elements if element.name}
        known = {parameter.name for parameter in parameters}
        if unused := sorted(known - used):
            raise _wrong(text, f"it has no placeholder for {', '.join(unused)}")
        missing = sorted(used - known)
        return cls(
            text,
            tuple(elements),
            (*parameters, *(Parameter(name, required=True) for name in missing)),
        )

    def argv(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the argument list for some values, the program's name first.

        A parameter without a value and a default leaves out its element, and the option before it.
        Raises InvalidInput for a missing value and for one that the placeholder does not take.
        """
        return tuple(text for text, _ in self._filled(values))

    def display(self, values: Mapping[str, Any]) -> str:
        """Return the command as a person would type it. Nothing ever runs this text."""
        parts = []
        for text, element in self._filled(values):
            if element.name is None:
                parts.append(shlex.quote(text))
                continue
            value = text.removeprefix(element.literal)
            numeric = self._parameter(element.name).type in ("integer", "number", "boolean")
            literal = element.literal[:-1] + " " if element.joined else element.literal
            parts.append(literal + (value if numeric else _quoted(value)))
        return " ".join(parts)

    def options(self) -> tuple[str, ...]:
        """Return the options that the template itself writes, in order."""
        options = []
        for element in self.elements[1:]:
            if element.name is None and element.literal == "--":
                break
            if element.literal.startswith("-") and element.literal != "-":
                options.append(element.literal.partition("=")[0].rstrip())
        return tuple(options)

    def sheltered(self, valued: Collection[str]) -> Self:
        """Return this template with each placeholder glued to its option or behind one `--`.

        `valued` holds the options that take a value (from the tool's help); one of a single dash
        has it as the next element, since not all programs read `-n=5` or `-n5`.
        """
        if OPTIONS in self.text:  # its help says where `--` stands
            return self
        options: list[Element] = []
        operands: list[Element] = []
        behind = False
        for element in self.elements[1:]:
            previous = options[-1].literal if options else ""
            if not behind and element.literal == "--" and element.name is None:
                behind = True
            elif behind or (element.name and not element.literal and previous not in valued):
                operands.append(Element(element.literal, element.name))
            elif element.name and not element.literal:
                end = "=" if previous.startswith("--") else " "
                options[-1] = Element(previous + end, element.name, joined=end == "=")
            else:
                options.append(element)
        dashes = [Element("--")] if operands else []
        elements = (self.elements[0], *options, *dashes, *operands)
        return type(self)(self.text, elements, self.parameters)

    def _filled(self, values: Mapping[str, Any]) -> list[tuple[str, Element]]:
        filled: list[tuple[str, Element]] = []
        spread = OPTIONS in self.text
        for element in self.elements:
            if element.name is None:
                filled.append((element.literal, element))
                continue
            parameter = self._parameter(element.name)
            value = values.get(element.name)
            value = parameter.default if value is None else value
            if value is not None:
                items = [value]
                if spread and parameter.item_type and isinstance(value, list):
                    items, parameter = value, replace(parameter, type=parameter.item_type)
                for item in items:
                    filled += _written(element, _text(item, parameter), parameter)
            elif parameter.required:
                raise InvalidInput(
                    f"the command needs a value for {element.name}",
                    why=f"its template is {self.text}",
                    fix=f"give {element.name} in the input",
                )
            elif not spread and not element.literal:
                before = filled[-1][1]
                if before.name is None and _OPTION.match(before.literal):
                    filled.pop()
        return filled

    def _parameter(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.name == name)


def _element(word: str, text: str, *, behind: bool) -> Element:
    match = _PLACEHOLDER.fullmatch(word)
    if match:
        return Element(match[1] or "", match[2], sheltered=behind or bool(match[1]))
    if "{" in word or "}" in word:
        raise _wrong(text, f"a placeholder stands alone or glued as --name={{value}}: {word!r}")
    if _OPERATOR.fullmatch(word):
        raise _wrong(text, f"no shell reads a template, and {word!r} is for one")
    return Element(word)


def _written(element: Element, text: str, parameter: Parameter) -> list[tuple[str, Element]]:
    if parameter.option and parameter.type == "boolean":
        return [(element.literal, Element(element.literal))] if text == "true" else []
    apart = element.literal.endswith(" ")
    if (apart or not element.sheltered) and text.startswith("-"):
        raise _refused(parameter, "a value that begins with '-' would be an option")
    if apart:
        option = element.literal[:-1]
        return [(option, Element(option)), (text, Element("", element.name))]
    return [(element.literal + text, element)]


def _text(value: object, parameter: Parameter) -> str:
    if parameter.enum and value not in parameter.enum:
        raise _refused(parameter, f"it must be one of {', '.join(map(str, parameter.enum))}")
    if parameter.item_type:
        if not isinstance(value, list):
            raise _refused(parameter, "it must be a list")
        parts = [_scalar(item, parameter.item_type, parameter) for item in value]
        if any("," in part or not part for part in parts):
            raise _refused(
                parameter, "its items are joined by commas; none may be empty or have one"
            )
        text = ",".join(parts)
    else:
        text = _scalar(value, parameter.type, parameter)
    if len(text) > MAX_VALUE_CHARS:
        raise _refused(parameter, f"it has over {MAX_VALUE_CHARS} characters")
    return text


def _scalar(value: object, kind: str, parameter: Parameter) -> str:
    if kind == "boolean" and isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bool):
        raise _refused(parameter, f"it must be of type {kind}")
    if kind == "integer" and isinstance(value, int) and abs(value) < 1 << 64:
        return str(value)
    if kind == "number" and isinstance(value, int | float) and abs(value) < 1e300:
        return str(value)
    if kind != "string" or not isinstance(value, str):
        raise _refused(parameter, f"it must be of type {kind}")
    if "\0" in value:
        raise _refused(parameter, "an argument cannot hold NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refused(parameter, "it has half of a surrogate pair") from None
    return value


def _quoted(value: str) -> str:
    shown = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", value)
    return "'" + shown.replace("'", "'\"'\"'") + "'"


def _refused(parameter: Parameter, why: str) -> InvalidInput:
    return InvalidInput(
        f"the value of {parameter.name} is refused",
        why=why,
        fix="give another value: the input schema says which",
    )


def _wrong(text: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"the command template {text[:80]!r} is wrong",
        why=why,
        fix="correct it: words apart, each value as {name}",
    )
