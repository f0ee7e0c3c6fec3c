"""The words of a schema that say what a tool is for."""

from __future__ import annotations


def words_of(schema: object) -> str:
    """Return the names of a schema's properties, and what is said of them and of its parts."""
    found: list[str] = []
    open_ = [schema]
    while open_:
        part = open_.pop()
        if isinstance(part, list):
            open_ += part
        elif isinstance(part, dict):
            found += part["properties"] if isinstance(part.get("properties"), dict) else ()
            found.append(part["description"] if isinstance(part.get("description"), str) else "")
            open_ += part.values()
    return " ".join(map(str, found))
