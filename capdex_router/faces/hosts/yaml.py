"""Edits of YAML that leave every other byte as it is. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from capdex.errors import InvalidInput

_STEP: Final = 2
_WIDTH: Final = 1 << 30  # no line is folded


def read(text: str) -> Any:
    """Return the value of a text, an empty object for one of comments alone.

    Raises InvalidInput with line and column.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput("the file cannot be read", why=f"{place}{error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput("the file cannot be read", why=str(error)) from None
    return {} if content is None else content


def put(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the text with `value` at a path of keys; mappings on the way are made.

    Raises InvalidInput for a broken text, and for one with aliases.
    """
    key, node = None, _root(text)
    for number, name in enumerate(path):
        place = _index(node, name)
        if place < 0:
            for below in reversed(path[number + 1 :]):
                value = {below: value}
            return _inserted(text, key, node, {name: value})
        key, node = node.value[place]
    return f"{text[: _stop(key)]}: {_flow(value)}{text[_end(text, node) :]}"


def remove(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the member at a path, if it is there; raises as `put`."""
    key, node = None, _root(text)
    for name in path[:-1]:
        key, node = node.value[place] if (place := _index(node, name)) >= 0 else (key, None)
    place = _index(node, path[-1])
    if place < 0:
        return text
    start, end = node.value[place][0].start_mark.index, _end(text, node.value[place][1])
    if len(node.value) == 1:
        rest = text[_end(text, node) :]
        return text[: _stop(key)] + ": {}" + rest if key else text[: _start(node)] + "{}" + rest
    if node.flow_style and place:
        return text[: _end(text, node.value[place - 1][1])] + text[end:]
    if node.flow_style:
        return text[:start] + text[_start(node.value[1][0]) :]
    start = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end) + 1
    return text[:start] + text[after:] if after else text[:start].rstrip("\r\n")


def _root(text: str) -> Any:
    """Return the node of a text, None if it holds nothing. Marks of nodes count characters."""
    read(text)
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
        raise InvalidInput("the file cannot be edited", why="it has YAML aliases")
    return yaml.compose(text, yaml.SafeLoader)


def _index(node: object, name: str) -> int:
    """Return the number of the member of a mapping that readers take, -1 if there is none."""
    if not isinstance(node, yaml.MappingNode):
        return -1
    numbers = [number for number, (key, _) in enumerate(node.value) if key.value == name]
    return numbers[-1] if numbers else -1


def _inserted(text: str, key: Any, node: Any, new: Any) -> str:
    """Return the text with one member more in a mapping: the value of `key`, or the whole file."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if node is None:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{_block(new, 0, newline)}{newline}"
    members = node.value if isinstance(node, yaml.MappingNode) else []
    if members and node.flow_style:
        inside = text[: _stop(node) - 1].rstrip()
        comma = "" if inside.endswith(",") else ","
        return f"{inside}{comma} {_flow(new)[1:-1]}{text[_stop(node) - 1 :]}"
    if members:
        end = _end(text, node)
        line = text[end:].split(newline, 1)[0]  # a comment may stand behind the last value
        indent = node.start_mark.column
        block = _block(new, indent, newline)
        return f"{text[:end]}{line}{newline}{' ' * indent}{block}{text[end + len(line) :]}"
    rest = text[_end(text, node) :]
    if key is None:
        return text[: _start(node)] + _block(new, 0, newline) + rest
    indent = key.start_mark.column + _STEP
    block = _block(new, indent, newline)
    return f"{text[: _stop(key)]}:{newline}{' ' * indent}{block}{rest}"


def _start(node: Any) -> int:
    return int(node.start_mark.index)


def _stop(node: Any) -> int:
    return int(node.end_mark.index)


def _end(text: str, node: Any) -> int:
    """Return where the last character of a value is: the mark of a block is behind blank lines."""
    if isinstance(node, yaml.ScalarNode):
        return len(text[: _stop(node)].rstrip()) if node.style in ("|", ">") else _stop(node)
    if node.flow_style:
        return _stop(node)
    last = node.value[-1]
    return _end(text, last[1] if isinstance(node, yaml.MappingNode) else last)


def _flow(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(value: object, indent: int, newline: str) -> str:
    written = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"{newline}{' ' * indent}".join(written.rstrip("\n").split("\n"))
