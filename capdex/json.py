"""JSON objects whose members are not known before they are read, and the levels of a value."""

from collections.abc import Iterator
from json import loads
from typing import Any

Json = dict[str, Any]


def exact(text: str | bytes) -> Any:
    """Return a JSON value in which a whole number keeps all its digits; raises ValueError."""
    import orjson  # the help of a command does without it

    orjson.loads(text)  # which refuses more, and rounds an integer of more than 64 bits
    try:
        return loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def object_of(value: object) -> Json:
    """Return an object; an empty one in place of any other value."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list; an empty one in place of any other value."""
    return value if isinstance(value, list) else []


def objects_in(value: object) -> list[Json]:
    """Return the objects in a list; none of any other value."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def levels(value: object) -> Iterator[list[Any]]:
    """Yield a JSON value, then all values in it, then all in these, and so on."""
    level = [value]
    while level:
        yield level
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner += node.values()
            elif isinstance(node, list | tuple):
                inner += node
        level = inner
